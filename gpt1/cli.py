"""`gpt1 …`: its commands in order. Modules of gpt1/commands import late, so that help is quick."""

import importlib
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gpt1.base.errors import UserError, run_stage

# in the order in which a person meets them; import is a word of Python's own
COMMANDS = (
    "profile",
    "estimate",
    "run",
    "table",
    "report",
    "sync",
    "submission",
    "generate",
    "predict",
    "import_",
    "export",
    "register",
)
ABOUT = (
    "GPT-1 as a pipeline that anyone can re-run: gpt1 profile composes params.yaml, gpt1 run runs"
    " it, gpt1 table shows the result."
)
ENDING = """
\b
Exit status:
    0    all is well
    1    a stage that failed, or an unexpected error
    2    a mistake that one line names, with what to do
    75   a fault of a network or a disk that may be over soon
    130  ended by Ctrl-C

Colours and progress bars only on a terminal, and no colour where NO_COLOR is set. Each command has examples: gpt1 run --help.
"""
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=ABOUT,
    epilog=ENDING,
)


def show_version(requested: bool) -> None:
    """Print the version and end, where it is asked for."""
    if requested:
        print(f"gpt1 {version('gpt1')}")
        raise typer.Exit


@app.callback()
def gpt1(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Takes nothing itself; makes a group of the application."""


for name in COMMANDS:
    module = importlib.import_module(f"gpt1.commands.{name}")
    examples = module.EXAMPLES.replace("\n\n", "\n").strip()
    function = getattr(module, name)
    first = " ".join(function.__doc__.split("\n\n")[0].split())
    app.command(name.rstrip("_"), epilog=f"\b\n{examples}", short_help=first)(function)


def main() -> None:
    """Run the console script: a mistake ends with one line and a status."""
    run_stage(called)


def called() -> None:
    """Run the command that the command line names. Raises UserError for one that it does not
    understand.
    """
    here = Path("gpt1/cli.py")
    if here.is_file() and not here.samefile(__file__):
        raise UserError(
            f"this gpt1 is that of {Path(__file__).parents[1]}: activate the environment of this"
            " folder (make setup)"
        )
    try:
        status = app(standalone_mode=len(sys.argv) < 2)  # without a word: help
    except typer.TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "gpt1")
        raise UserError(
            f"{path}: {error.format_message().replace('Value error, ', '')} ({path} --help)"
        ) from None
    sys.exit(status or 0)


if __name__ == "__main__":
    main()
