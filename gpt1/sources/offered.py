"""What can be downloaded of the sources that a run wants: which of them, how large, from where,
under which licence.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gpt1.base.errors import UserError, perhaps
from gpt1.sources.addresses import DOWNLOADS, Remote
from gpt1.sources.table import Source

ALL = "all"


class Offer(NamedTuple):
    """A source to be downloaded, in words: its files, their size, hosts in the order in which they
    are asked, what checks them.
    """

    name: str
    files: str
    size: str
    hosts: str
    checked: str
    licence: str


def chosen(
    names: Sequence[str],
    rows: Mapping[str, Any],
    present: Collection[str],
    sources: Mapping[str, Source],
) -> list[str]:
    """Those of `names` ("all": of all that a run wants and that can be downloaded) that are not in
    data/raw.

    rows: the run's rows of `sources` in params.yaml. Raises UserError for a name that the run does
    not want, or that no program may download, saying how to get it.
    """
    if not names:
        raise UserError(
            f"--download names no source; expected {ALL}, or some of"
            f" {', '.join(name for name in DOWNLOADS if name in rows)}"
        )
    for name in names:
        if name == ALL:
            continue
        if name not in sources or name not in rows:
            raise UserError(
                f"--download {name}: this run wants no such source{perhaps(name, rows)} (expected"
                f" {ALL}, or some of {', '.join(one for one in DOWNLOADS if one in rows)})"
            )
        if name not in DOWNLOADS:
            raise UserError(
                f"--download {name}: no program may download it: {sources[name].how_to_get}"
            )
    return [
        name
        for name, row in rows.items()
        if name in DOWNLOADS
        and name not in present
        and (name in names or (ALL in names and row["folder"] == "raw"))
    ]


def megabytes(remotes: Sequence[Remote]) -> str:
    """The size of files in words, as far as it was published."""
    known = sum(remote.bytes_ or 0 for remote in remotes)
    words = [f"{known / 1e6:,.2f} MB"] if known else []
    return " and ".join(
        [*words, *(["not published"] if any(remote.bytes_ is None for remote in remotes) else [])]
    )


def offer(source: Source, cache: Path) -> Offer:
    """What is to be downloaded of a source, in words."""
    remotes = DOWNLOADS[source.name]
    there = not lacking(source.name, cache)
    hosts = dict.fromkeys(
        str(urlsplit(address).hostname) for remote in remotes for address in remote.addresses
    )
    checks = dict.fromkeys(
        (
            f"{remote.checksum.kind}: {remote.checksum.publisher}"
            if remote.checksum
            else "recorded at first use"
        )
        for remote in remotes
    )
    files = ", ".join(remote.name for remote in remotes[:2]) + (
        f" and {len(remotes) - 2} more" if len(remotes) > 2 else ""
    )
    return Offer(
        source.name,
        files,
        "in the cache" if there else megabytes(remotes),
        ", ".join(hosts),
        "; ".join(checks),
        source.licence,
    )


def lacking(name: str, cache: Path) -> list[Path]:
    """Places in the cache where files of a source do not lie yet."""
    return [
        cache / name / remote.name
        for remote in DOWNLOADS[name]
        if not (cache / name / remote.name).is_file()
    ]
