"""`gpt1 submission`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 submission glue.zip            of this run's answers to GLUE's tests

    gpt1 submission glue.zip --fill     constant answers to what the run lacks
"""


def submission(
    file: Annotated[Path, argument("The zip.")],
    fill: Annotated[
        bool,
        typer.Option(
            "--fill",
            help="Give constant answers to files that the run has none to; the server "
            "wants all eleven.",
        ),
    ] = False,
) -> None:
    """Make the files of GLUE's leaderboard from this run."""
    from gpt1.exchange.submission import make

    for name, source in make(file.expanduser(), fill).items():
        typer.echo(f"{name:<12} {source}")
