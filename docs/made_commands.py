"""docs/cli.md: every command with its options and examples, as help says them. `python
docs/made_commands.py` writes it anew.
"""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "cli.md"
RENEW = "python docs/made_commands.py"
HEAD = f"""# Command line

Made from `gpt1 --help` and each command's own; `{RENEW}` makes this page anew, and a test compares.

"""
WHOLE_LINES = 10_000  # characters: help then breaks none
ENTRY = re.compile(r"^  (\S.*?)  +(\S.*)$", re.MULTILINE)


def surface() -> str:
    """The page: help of the whole, then of each command."""
    from typer.main import get_command

    from gpt1.cli import app

    whole: Any = get_command(app)
    settings = {"resilient_parsing": True, "terminal_width": WHOLE_LINES}
    context = whole.make_context("gpt1", [], **settings)
    parts = [help_of(whole, context)]
    for name in whole.list_commands(context):
        command = whole.get_command(context, name)
        own = help_of(command, command.make_context(name, [], parent=context, **settings))
        parts.append(f"## gpt1 {name}\n\n{own}")
    return HEAD + "\n\n".join(parts) + "\n"


def help_of(command: Any, context: Any) -> str:
    """What help says: a paragraph a paragraph, an item an option, a block the examples."""
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    text = re.sub(r"^  --help .*\n?", "", text, flags=re.MULTILINE)
    parts = []
    for part in text.replace("\n\nOptions:\n\n", "\n\n").split("\n\n"):
        head, _, lines = part.partition("\n")
        if head.startswith("Usage: "):
            parts.append(f"`{head.removeprefix('Usage: ')}`")
        elif head in ("Arguments:", "Options:", "Commands:"):
            parts.append(ENTRY.sub(r"- `\1`: \2", lines))
        elif head in ("  Examples:", "  Exit status:"):
            block = "\n".join(line.removeprefix("      ") for line in lines.splitlines())
            parts.append(f"{head.strip()}\n\n```text\n{block}\n```")
        else:
            parts.append(part.strip())
    return "\n\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(surface(), encoding="utf-8")
    print(f"{PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE} is new")
