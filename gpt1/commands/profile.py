"""`gpt1 profile`."""

from pathlib import Path
from typing import Annotated

from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 profile demo                        the made-up town, no data needed

    gpt1 profile small --data ~/corpora      link what is there, name what lacks

    gpt1 profile small finetune.epochs=2     the same data, two epochs

    gpt1 profile small "finetune.seeds=[0,1,2]" tasks.cola.train_rows=1000

    gpt1 profile small --tasks snli,rte      these tasks only, and the books

    gpt1 profile small --download all        what is not there comes from its official address, where that is allowed

    gpt1 profile official --download official,rte

    gpt1 profile paper                       the paper's sizes
"""


def profile(
    name: Annotated[
        str, argument("A profile in conf/: demo, town, small, evening, official or paper.")
    ],
    overrides: Annotated[
        list[str] | None, argument("What differs, as key=value with dotted keys.")
    ] = None,
    data: Annotated[
        Path | None,
        option(
            "A folder with books and task files (layout: data/README.md); linked under data/raw."
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        option("These tasks only, with commas between. Default: all whose data are there."),
    ] = None,
    download: Annotated[
        str | None,
        option(
            "Sources that gpt1 run is to download, with commas between; all: what is not in "
            "data/raw."
        ),
    ] = None,
) -> None:
    """Compose params.yaml from a profile and say which data it will run on."""
    from gpt1.estimate import lines
    from gpt1.params.data import compose_profile
    from gpt1.params.schema import read_params

    def names(text: str | None) -> list[str] | None:
        return None if text is None else text.replace(",", " ").split()

    compose_profile(name, overrides or [], data, names(tasks), names(download))
    print(*lines(read_params())[-2:], sep="\n")
