"""A terminal: its width, colours where they are wanted, and nothing of a file's that could steer
it.
"""

import json
import sys
from textwrap import fill
from typing import Any

from rich.console import Console

WIDTH = 80  # where there is no terminal


def console() -> Console:
    """Standard output: colours on a terminal and without NO_COLOR only, as wide as the terminal."""
    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=WIDTH, color_system=None)


def plain(text: str) -> str:
    """Text from a file, what could steer a terminal as an escape; tabs as blanks."""
    return "".join(
        one if one == "\n" or one.isprintable() else json.dumps(one)[1:-1]
        for one in text.expandtabs()
    )


def note_of(text: str, width: int) -> str:
    """A remark as an item of a list, not wider."""
    return fill(f"- {text}", width, subsequent_indent="  ", break_on_hyphens=False)


def print_json(value: Any) -> None:
    """One JSON value for a program, on standard output; what could steer a terminal stands as an
    escape.
    """
    ascii_ = "utf" not in (sys.stdout.encoding or "utf").lower()
    print(plain(json.dumps(value, indent=1, ensure_ascii=ascii_, allow_nan=False)))
