"""`gpt1 init`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 init my-run                      the made-up town, no data needed; then: cd my-run && gpt1 run

    gpt1 init my-run --profile paper      the paper's sizes

    gpt1 init                             in the folder where you are; after an upgrade of the package: what it wrote there, anew
"""


def init(
    folder: Annotated[Path, argument("Where; made where it is not there. Default: here.")] = Path(),
    profile: Annotated[
        str, typer.Option(help="What params.yaml is composed from: demo, small, paper, official.")
    ] = "demo",
) -> None:
    """Make a project folder, in which runs work without a clone of the code.

    It gets dvc.yaml, params.yaml, conf, flows, settings, a README, git and DVC; gpt1 run, dvc repro
    and the flows work there. What is there and was not written by it stays as it is, and is named.
    """
    from gpt1.pipeline.init import make_folder

    make_folder(folder, profile)
