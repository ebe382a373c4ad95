"""`gpt1 profile`."""

from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated

from gpt1.commands.options import Overrides, argument, option

EXAMPLES = """
Examples:

    gpt1 profile demo                        the made-up town, no data needed

    gpt1 profile small --data ~/corpora      link what is there, name what is not

    gpt1 profile small finetune.epochs=2     the same data, two epochs

    gpt1 profile small "finetune.seeds=[0,1,2]" tasks.cola.train_rows=1000

    gpt1 profile small --tasks snli,rte      these tasks only, and the books

    gpt1 profile small --download all        download what is not there

    gpt1 profile evening --download all --accept race --books bookcorpusopen
"""


def profile(
    name: Annotated[
        str, argument("A profile in conf/: demo, town, small, evening, official or paper.")
    ],
    overrides: Overrides = None,
    data: Annotated[
        Path | None,
        option(
            "A folder with books and task files (layout: data/README.md); linked under data/raw."
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        option("These tasks only, comma-separated. Default: all whose data are there."),
    ] = None,
    download: Annotated[
        str | None,
        option("Sources to download into data/raw, comma-separated; all: what is not there."),
    ] = None,
    books: Annotated[
        str | None,
        option("Books to download, pg19 or bookcorpusopen, perhaps with @COMMIT. Default: pg19."),
    ] = None,
    accept: Annotated[
        str | None, option("Sources whose terms you accept, comma-separated: race.")
    ] = None,
) -> None:
    """Compose params.yaml from a profile and say which data it will run on."""
    from gpt1.estimate import lines
    from gpt1.params.data import compose_profile, download_sources, link_sources
    from gpt1.params.profile import requested
    from gpt1.params.schema import read_params

    def names(text: str | None) -> list[str]:
        return (text or "").replace(",", " ").split()

    changed, chosen = overrides or [], None if tasks is None else names(tasks)
    if data is not None:
        link_sources(data.expanduser())
    if download is not None or books:
        download_sources(requested(name, changed, chosen), names(download), books, names(accept))
    import_released()
    compose_profile(name, changed, chosen)
    print(*lines(read_params())[-2:], sep="\n", flush=True)
    if Path(".dvc").is_dir():
        from flows.graph import outlook, read_graph

        print(outlook(read_graph(())))
    print("next: gpt1 run")


def import_released() -> None:
    """Import the authors' files in data/raw. Raises UserError where they are not whole."""
    from gpt1.base.files import RAW

    folder = RAW / "official"
    if (folder / "params_shapes.json").is_file():
        from gpt1.exchange.incoming import read_authors, write_import

        print("official: importing the authors' weights")
        with TemporaryDirectory(prefix=".official-", dir=RAW) as temporary:
            write_import(read_authors(folder), imported := Path(temporary, "official"))
            kept = folder.rename(Path(mkdtemp(prefix="authors-", dir=RAW), "official"))
            imported.rename(folder)
        print(f"the authors' files are in {kept} now")
