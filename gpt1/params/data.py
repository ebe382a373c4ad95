"""`gpt1 profile`: params.yaml for the data at hand, which are linked under data/raw, and what a run
will download or leave out.
"""

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gpt1.base.errors import UserError
from gpt1.base.files import RAW
from gpt1.params.profile import compose, on_data, requested
from gpt1.params.schema import PARAMS, refuse_without_stage, validate, variants_with_stage
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.find import find_sources
from gpt1.tasks.table import all_sources


def compose_profile(
    name: str,
    overrides: Sequence[str],
    data: Path | None,
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None,
) -> None:
    """Write params.yaml for a profile, its overrides, the tasks, and the data at hand or to be
    downloaded, and say what will run, and how to get what is left out.

    Raises UserError and leaves params.yaml as it was.
    """
    added = added_variants(compose(name, overrides)["variants"])
    overrides = [*added, *overrides]
    whole = requested(name, overrides, tasks)
    if data is not None:
        link_sources(data.expanduser())
    present = {path.name for path in RAW.glob("*") if path.is_dir() and any(path.iterdir())}
    values = on_data(whole, present, tasks or (), downloads)
    params = validate(values)
    refuse_without_stage(params)
    words = shlex.join([name, *overrides])
    for option, names in (("tasks", tasks), ("download", downloads)):
        words += f" --{option} {','.join(names)}" if names else ""
    write_yaml(PARAMS, values, f"gpt1 profile {words}")
    for source in params.download:
        for remote in DOWNLOADS[source]:
            size = f"{remote.bytes_ / 1e6:,.2f} MB" if remote.bytes_ else "size not published"
            host, licence = urlsplit(remote.address).hostname, all_sources()[source].licence
            print(f"to download: {remote.name}, {size}, from {host}; licence: {licence}")
    print(
        f"{PARAMS}: profile {name}, books from data/{params.sources['books'].folder}/books (in"
        f" captions: {params.clean.corpus_name}, by clean.corpus_name), tasks"
        f" {', '.join(params.tasks)}"
    )
    for override in added:
        print(f"kept, for dvc.yaml has a stage of it: {override}")
    for absent in {**whole["tasks"], **whole["zero_shot"]}:
        if absent not in params.sources:
            offer = f", or --download {absent}" if absent in DOWNLOADS else ""
            print(f"left out: {absent}; to have it {all_sources()[absent].how_to_get}{offer}")


def added_variants(recorded: Collection[str]) -> list[str]:
    """Overrides that give today's params.yaml its variants again that the profile does not know
    and somebody has added a stage of: without them DVC would read no stage at all.
    """
    today = read_yaml(PARAMS).get("variants", {}) if PARAMS.is_file() else {}
    names = (today.keys() & variants_with_stage()) - {*recorded}
    return [f"variants.{name}={json.dumps(today[name])}" for name in sorted(names)]


def link_sources(folder: Path) -> None:
    """Link what `folder` holds under data/raw. Raises UserError where it holds nothing known or a
    real folder stands in the way.
    """
    places = find_sources(folder, all_sources().values())
    if not any(places.values()):
        raise UserError(
            f"--data {folder} is no folder that holds one of a known name (books, SNLI, RACE, …);"
            " docs/tasks.md lists them"
        )
    for name, path in places.items():
        link = RAW / name
        if path and link.exists() and not link.is_symlink():
            raise UserError(f"{link} is your own; move it away before linking {path} in its place")
        if path:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(path.resolve())
