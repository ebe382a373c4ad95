"""`gpt1 submission`: the files of GLUE's leaderboard."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 submission make glue.zip            of this run's answers to GLUE's tests

    gpt1 submission make glue.zip --fill     constant answers to what the run lacks
"""


def submission(
    action: Annotated[
        Literal["make"],
        argument("make: write a zip of the run's answers to GLUE's test files."),
    ],
    file: Annotated[Path, argument("The zip.")],
    fill: Annotated[
        bool,
        typer.Option(
            "--fill",
            help="Give constant answers to files that the run has none to; the server "
            "wants all eleven.",
        ),
    ] = False,
    data: Annotated[Path, typer.Option(help="The folder data of a run.")] = Path("data"),
    json: Annotated[bool, typer.Option("--json", help="For a program.")] = False,
) -> None:
    """Make the files of GLUE's leaderboard from a run."""
    from gpt1.base.terminal import print_json
    from gpt1.exchange.submission.make import make

    path = file.expanduser()
    made = make(path, data.expanduser(), fill)
    if json:
        files = {
            one.file.name: {"rows": one.file.rows, "constant": one.constant, "source": one.source}
            for one in made
        }
        print_json({"file": str(path), "files": files})
        return
    for one in made:
        typer.echo(f"{one.file.name:<12} {one.file.rows:>7} rows  {one.source}")
    typer.echo(f"{path}: {len(made)} files")
