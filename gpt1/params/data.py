"""`gpt1 profile`: params.yaml for the data at hand, which are linked under data/raw, and what a run
will download or leave out.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, RAW
from gpt1.params.profile import compose_run, in_words, link_folder, requested, write_params
from gpt1.params.schema import PARAMS, Params, refuse_without_stage, validate
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.download import lacking, offline
from gpt1.sources.find import find_sources
from gpt1.tasks.table import TASKS, all_sources


def compose_profile(
    name: str,
    overrides: Sequence[str],
    data: Path | None,
    tasks: Sequence[str] | None,
    downloads: Sequence[str] | None,
    from_cache: bool,
) -> None:
    """Write params.yaml for a profile, its overrides, the tasks, and the data at hand or to be
    downloaded.

    from_cache: the cache has to have all that is to be downloaded. Raises UserError and leaves
    params.yaml as it was.
    """
    if data is not None:
        requested(name, overrides, tasks)  # so that a refused profile links nothing
        link_sources(data.expanduser())
    values, left_out = compose_run(name, overrides, tasks, downloads)
    params = validate(values)
    refuse_without_stage(params)
    if from_cache or offline():
        refuse_lacking(params.download)
    write_params(PARAMS, values, f"gpt1 profile {in_words(name, overrides, tasks, downloads)}")
    if params.download:
        show_downloads(params.download)
    show(params, left_out)


def link_sources(folder: Path) -> None:
    """Link what `folder` holds under data/raw. Raises UserError where it holds nothing known or a
    real folder stands in the way.
    """
    if not folder.is_dir():
        raise UserError(
            f"--data {folder} is not a folder; expected one laid out as data/README.md says"
        )
    found = {
        name: path for name, path in find_sources(folder, all_sources().values()).items() if path
    }
    if not found:
        raise UserError(
            f"--data {folder} holds no folder of a known name (books, SNLI, RACE, …);"
            " data/README.md lists them"
        )
    for name, path in found.items():
        link_folder(RAW / name, path)


def show_downloads(names: Collection[str]) -> None:
    """Say what a run will download: what, how large, from where, under which licence."""
    table = Table(
        "to download", "file", "MB", "from", "licence", title_justify="left", pad_edge=False
    )
    for name in names:
        for remote in DOWNLOADS[name]:
            size = f"{remote.bytes_ / 1e6:,.2f}" if remote.bytes_ else "not published"
            host = urlsplit(remote.address).hostname
            table.add_row(name, remote.name, size, host, all_sources()[name].licence)
    Console(highlight=False).print(table)


def refuse_lacking(names: Collection[str]) -> None:
    """Raises UserError where a file that a run would download is not in the cache, so that the run
    would need the network.
    """
    if missing := [str(path) for name in names for path in lacking(name)]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UserError(
            "without the network nothing can be downloaded, and the cache lacks"
            f" {missing[0]}{more}; put the official files there by hand, where they are checked, or"
            " take --offline (GPT1_OFFLINE) away"
        )


def show(params: Params, left_out: list[str]) -> None:
    """Say what will run and what is left out, with how to get it."""
    console = Console(highlight=False)
    corpus = (DATA / params.sources["books"].folder / "books").resolve()
    console.print(
        f"{PARAMS}: profile [bold]{params.profile}[/], corpus from {corpus}, "
        f"{len(params.tasks)} tasks: {', '.join(params.tasks) or 'none'}"
    )
    if left_out:
        table = Table("left out", "how to get it", title_justify="left", pad_edge=False)
        for name in left_out:
            table.add_row(
                TASKS[name].title if name in TASKS else f"{name.upper()} (zero-shot)",
                all_sources()[name].how_to_get,
            )
        console.print(table)
        if offered := [name for name in left_out if name in DOWNLOADS]:
            console.print(
                f"--download {','.join(offered)} (or --download all) brings these from where"
                " they lie",
                markup=False,
            )
    console.print("next: gpt1 run")
