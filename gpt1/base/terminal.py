"""A terminal: its width, colours where they are wanted, and nothing of a file's that could steer
it.
"""

import json
import sys
from typing import Any

from rich.console import Console

WIDTH = 80  # where there is no terminal


def console() -> Console:
    """Standard output: colours on a terminal and without NO_COLOR only, as wide as the terminal."""
    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=WIDTH, color_system=None)


def plain(text: str) -> str:
    """Text from a file, less all that steers a terminal; tabs and line ends stay as blanks and line
    ends.
    """
    return "".join(
        character for character in text.expandtabs() if character == "\n" or character.isprintable()
    )


def print_json(value: Any) -> None:
    """One JSON value for a program, on standard output; what could steer a terminal stands as an
    escape.
    """
    ascii_ = "utf" not in (sys.stdout.encoding or "utf").lower()
    text = json.dumps(value, indent=1, ensure_ascii=ascii_, allow_nan=False)
    letters = (one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)
    sys.stdout.write("".join(letters) + "\n")
