"""docs/cli.md: every command with its options and examples, as help says them. `python
docs/made_commands.py` writes it anew.
"""

from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "cli.md"
RENEW = "python docs/made_commands.py"
WIDTH = 80
HEAD = f"""# Command line

Made from `gpt1 --help` and each command's own; `{RENEW}` makes this page anew, and a test compares.

"""


def surface() -> str:
    """The page: help of the whole, then of each command."""
    from typer.main import get_command

    from gpt1.cli import app

    whole: Any = get_command(app)
    context = whole.make_context("gpt1", [], resilient_parsing=True, terminal_width=WIDTH)
    parts = [help_of(whole, context)]
    for name in whole.list_commands(context):
        command = whole.get_command(context, name)
        parts.append(
            "## gpt1"
            f" {name}\n\n{help_of(command, command.make_context(name, [], parent=context, resilient_parsing=True))}"
        )
    return HEAD + "\n".join(parts)


def help_of(command: Any, context: Any) -> str:
    """What help says, as a block of code."""
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return "\n".join(["```text", *lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(surface(), encoding="utf-8")
    print(f"{PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE} is new")
