"""`gpt1 submission`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 submission glue.zip            this run's answers to GLUE's tests

    gpt1 submission glue.zip --fill     with constant answers where the run has none
"""


def submission(
    file: Annotated[Path, argument("The zip.")],
    fill: Annotated[
        bool,
        typer.Option(
            "--fill",
            help="Write constant answers for tasks that the run lacks (the server wants all eleven"
            " files).",
        ),
    ] = False,
) -> None:
    """Make the files of GLUE's leaderboard from this run."""
    from gpt1.exchange.submission import make

    for name, source in make(file.expanduser(), fill).items():
        typer.echo(f"{name:<12} {source}")
