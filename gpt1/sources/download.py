"""Official files through the user's cache of downloads: gone on with where they stopped, tried
again, and checked before they count as there.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from time import sleep
from typing import Any

from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.locks import locked
from gpt1.base.settings import setting
from gpt1.sources.addresses import DOWNLOADS, Remote
from gpt1.sources.table import Source

ABOUT = "download.json"  # beside the files; acquire puts it into its manifest
ALL = "all"
TRIES = 5
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 120
TIMEOUT_SECONDS = (20, 60)  # to connect, between two bytes
MAY_PASS = (408, 425, 429, 500, 502, 503, 504)
CHUNK_BYTES = 1 << 14  # so many at most are asked for twice


def cache_folder() -> Path:
    """The user's cache of downloads; GPT1_CACHE moves it."""
    from platformdirs import user_cache_path

    given = setting("GPT1_CACHE")
    return (Path(given).expanduser() if given else user_cache_path("gpt1")) / "downloads"


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
    known = [name for name in DOWNLOADS if name in rows]
    for name in names or [""]:
        if name != ALL and name not in rows:
            raise UserError(
                f"--download {name}: this run wants no such source (expected"
                f" {ALL}, or some of {', '.join(known)})"
            )
        if name not in (ALL, *known):
            raise UserError(
                f"--download {name}: no program may download it: {sources[name].how_to_get}"
            )
    return [
        name
        for name, row in rows.items()
        if name in known
        and name not in present
        and (name in names or (ALL in names and row["folder"] == "raw"))
    ]


def fetch(source: str, remote: Remote, most_bytes: int) -> Path:
    """One file of a source, whole and checked: from the cache, or from its address. Returns where
    it lies.

    Two that want the same file at once share one download. Raises UserError, and TemporaryError
    where a later try may go well.
    """
    target = cache_folder() / source / remote.name
    by_hand = f"put it there by hand as {target}, or go without {source}: gpt1 profile"
    with locked(target.with_name(f".{remote.name}.lock")):
        if not target.is_file():
            if setting("GPT1_OFFLINE") == "1":
                raise UserError(f"GPT1_OFFLINE forbids to download {remote.name}: {by_hand}")
            partial = target.with_name(f".{remote.name}.partial")
            receive(remote, partial, most_bytes, by_hand)
            refuse_other(partial, remote)
            partial.replace(target)
        refuse_other(target, remote)
    return target


def receive(remote: Remote, partial: Path, most_bytes: int, by_hand: str) -> None:
    """Bring a partial file to its end, on from where it stopped. What came is not checked here.
    Raises UserError, TemporaryError.
    """
    from requests import RequestException, Session
    from requests.adapters import HTTPAdapter
    from tqdm import tqdm
    from urllib3 import Retry

    retry = Retry(
        TRIES,
        connect=0,  # those, and what breaks later, are tried again below
        read=0,
        backoff_factor=FIRST_WAIT_SECONDS,
        status_forcelist=MAY_PASS,
        raise_on_status=False,
        retry_after_max=LONGEST_WAIT_SECONDS,
    )
    with Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        for number in range(TRIES):
            start = partial.stat().st_size if partial.is_file() else 0
            asked = {"Range": f"bytes={start}-"} if start else {}
            try:
                with session.get(
                    remote.address,
                    headers={"Accept-Encoding": "identity"} | asked,
                    stream=True,
                    timeout=TIMEOUT_SECONDS,
                ) as answer:
                    if start and answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                        return  # all of it had come
                    answer.raise_for_status()
                    on = answer.status_code == HTTPStatus.PARTIAL_CONTENT
                    with (
                        partial.open("ab" if on else "wb") as file,
                        tqdm(
                            initial=file.tell(),
                            total=remote.bytes_,
                            unit="B",
                            unit_scale=True,
                            desc=remote.name,
                            disable=None,
                        ) as bar,
                    ):
                        for block in answer.iter_content(CHUNK_BYTES):
                            file.write(block)
                            bar.update(len(block))
                            if file.tell() > (remote.bytes_ or most_bytes):
                                break  # no checksum will fit
                    return
            except RequestException as error:
                came = partial.stat().st_size if partial.is_file() else 0
                code = error.response.status_code if error.response is not None else None
                why = f"status {code}" if code else type(error).__name__
                line = f"{remote.address} did not give the file ({why}, {came:,} bytes came)"
                if code is not None and code not in MAY_PASS:
                    raise UserError(f"{line}; {by_hand}") from None
                if code is not None or number + 1 == TRIES:
                    raise TemporaryError(f"{line}; try again later, or {by_hand}") from None
                print(f"{line}; again", file=sys.stderr, flush=True)
                sleep(FIRST_WAIT_SECONDS * 2**number)


def refuse_other(path: Path, remote: Remote) -> None:
    """Raise UserError where a file has not the published checksum; it is kept beside, for it may be
    the only copy of what a person put there.
    """
    summed = hashlib.new("sha1" if remote.kind == "git" else remote.kind, usedforsecurity=False)
    if remote.kind == "git":
        summed.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(CHUNK_BYTES):
            summed.update(block)
    if summed.hexdigest() != remote.checksum:
        aside = path.replace(path.with_name(f"{remote.name}.other"))
        raise UserError(
            f"{path}: expected {remote.kind} {remote.checksum}, as published by {remote.publisher},"
            f" found {summed.hexdigest()}; it is now {aside.name}: look at what came (a web page?),"
            " and run the same command again to download it anew"
        )


def import_weights(files: Path, folder: Path) -> None:
    """Fill `folder` with what `gpt1 import` makes of the released files, in a process of its own.
    Raises UserError where it refuses.
    """
    made = folder / ".imported"
    command = [sys.executable, "-m", "gpt1.cli", "import", str(files), "--to", str(made)]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
        raise UserError("the downloaded weights could not be imported; the line above says why")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    shutil.rmtree(made)
