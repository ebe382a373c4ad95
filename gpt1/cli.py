"""`gpt1 …`: which commands there are, in which order; each is loaded from gpt1/commands when it is
called for, so that help is quick.
"""

import importlib
import re
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from gpt1.base.errors import UserError, perhaps, run_stage
from gpt1.base.extras import EXTRAS, there

PANELS = {  # what commands are for -> their names, in the order in which a person meets them
    "Run the paper": ("profile", "estimate", "run"),
    "Look at what came out": ("table", "report", "sync", "submission"),
    "Use a model": ("generate", "predict"),
    "Models in and out": ("import", "export", "register"),
}
KEYWORD = "import"  # of Python: its module and function end with an underscore
ABOUT = (
    "GPT-1 as a pipeline that anyone can re-run: gpt1 profile composes params.yaml, gpt1 run runs"
    " it, gpt1 table shows the result."
)
ENDING = """
\b
Exit status:
    0    all is well
    1    an error that nobody foresaw
    2    a mistake that one line names, with what to do
    75   a fault of a network or a disk that may be over soon
    130  ended by Ctrl-C

Colours and progress bars only on a terminal, and no colour where NO_COLOR is set. gpt1 --install-completion teaches your shell to complete
commands and options. Each command has examples: gpt1 run --help.
"""


def load(name: str) -> Any:
    """A command of gpt1/commands: the function of its name, followed by its examples."""
    place = f"{name}_" if name == KEYWORD else name
    module = importlib.import_module(f"gpt1.commands.{place}")
    examples = [line for line in module.EXAMPLES.splitlines() if line.strip()]
    epilog = "\n".join(
        ["\b", *(line if line[:1] != " " else f"    {line.strip()}" for line in examples)]
    )
    return get_command_from_info(
        CommandInfo(name, callback=getattr(module, place), epilog=epilog),
        pretty_exceptions_short=False,
        rich_markup_mode=None,
    )


class Commands(TyperGroup):
    """The commands of PANELS, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names in order."""
        return [name for names in PANELS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them; None where there is none of that name."""
        return load(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is asked for. Raises UserError, with the one that may have been meant,
        where there is none.
        """
        if (
            args
            and not ctx.resilient_parsing
            and args[0] not in self.list_commands(ctx)
            and not args[0].startswith("-")
        ):
            raise UserError(
                f"no command {args[0]!r}{perhaps(args[0], self.list_commands(ctx))} (gpt1 --help"
                " lists them)"
            )
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """For help: the commands under the heads of their panels, with their first sentences; the
        few options after them.
        """
        widest = max(map(len, self.list_commands(ctx)))
        for title, names in PANELS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(widest), first_sentence(load(name).help)) for name in names]
                )
        with formatter.section("Options"):
            formatter.write_dl(
                [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))]
            )


def first_sentence(text: str) -> str:
    """What a text begins with, up to its first full stop."""
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=ABOUT,
    epilog=ENDING,
)


def show_version(asked: bool) -> None:
    """Print the version and end, where it is asked for."""
    if asked:
        print(f"gpt1 {version('gpt1')}")
        have = there()
        lacking = ", ".join(extra for extra in EXTRAS if extra not in have)
        print(f"extras: {', '.join(have) or 'none'}{lacking and f'; not there: {lacking}'}")
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


def main() -> None:
    """Entry point of the console script: a person's mistake ends with one line and a status, never
    a traceback.
    """
    run_stage(called)


def called() -> None:
    """The command that the command line names. Raises UserError for one that cannot be
    understood.
    """
    try:
        status = app(standalone_mode=len(sys.argv) < 2)  # without a word: help
    except typer.TyperException as error:
        raise UserError(in_one_line(error)) from None
    sys.exit(status or 0)


def in_one_line(error: typer.TyperException) -> str:
    """What the library says of a command line that it does not understand, with what may have been
    meant and where to look.
    """
    path = getattr(getattr(error, "ctx", None), "command_path", "gpt1")
    words = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    wrong = re.search(r"'(.*)' is not one of (.*)", words)
    meant = perhaps(wrong[1], re.findall(r"'([^']+)'", wrong[2])) if wrong else ""
    return f"{path}: {words}{meant} ({path} --help)"


if __name__ == "__main__":
    main()
