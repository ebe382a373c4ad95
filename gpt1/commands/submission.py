"""`gpt1 submission`: the files of GLUE's leaderboard."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gpt1.base.errors import UserError
from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 submission make glue.zip            of this run's answers to GLUE's tests

    gpt1 submission make glue.zip --fill     constant answers to what the run lacks

    gpt1 submission check glue.zip           whether the server would take it

    gpt1 submission check predictions        a folder of the eleven files
"""


def submission(
    action: Annotated[
        Literal["make", "check"],
        argument(
            "make: write a zip of the run's answers to GLUE's test files. check: "
            "name what the server would refuse."
        ),
    ],
    file: Annotated[
        Path,
        argument("The zip; for check, a folder of its files too."),
    ],
    fill: Annotated[
        bool,
        typer.Option(
            "--fill",
            help="With make: give constant answers to files that the run has none to; the server "
            "wants all eleven.",
        ),
    ] = False,
    data: Annotated[Path, typer.Option(help="With make: the folder data of a run.")] = Path("data"),
    json: Annotated[bool, typer.Option("--json", help="For a program.")] = False,
) -> None:
    """Make the files of GLUE's leaderboard from a run, or check such files before the server
    does.
    """
    path = file.expanduser()
    if action == "make":
        _make(path, data.expanduser(), fill, json)
    elif fill:
        raise UserError(
            "--fill is for gpt1 submission make; check changes nothing, leave --fill out"
        )
    else:
        _check(path, json)


def _make(path: Path, data: Path, fill: bool, json: bool) -> None:
    from gpt1.base.terminal import print_json
    from gpt1.exchange.submission.make import make

    made = make(path, data, fill)
    if json:
        files = {
            one.file.name: {"rows": one.file.rows, "constant": one.constant, "source": one.source}
            for one in made
        }
        print_json({"file": str(path), "files": files})
        return
    for one in made:
        typer.echo(f"{one.file.name:<12} {one.file.rows:>7} rows  {one.source}")
    typer.echo(
        f"{path}: {len(made)} files; gpt1 submission check {path} looks at it as GLUE's server"
        " would"
    )


def _check(path: Path, json: bool) -> None:
    from gpt1.base.terminal import print_json
    from gpt1.exchange.submission.board import FILES
    from gpt1.exchange.submission.check import wrong_with

    wrong = wrong_with(path)
    if json:
        print_json({"file": str(path), "wrong": wrong})
    else:
        typer.echo("\n".join(wrong), nl=bool(wrong))
    if wrong:
        raise UserError(
            f"{path}: expected what GLUE's server takes, found {len(wrong)}"
            f" fault{'s' if len(wrong) > 1 else ''}, above; mend them and check again"
        )
    if not json:
        typer.echo(
            f"{path}: {len(FILES)} files, {sum(file.rows for file in FILES):,} predictions, as"
            " GLUE's server takes them"
        )
