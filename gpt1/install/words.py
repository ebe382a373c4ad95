"""What a set-up says to a person."""

import re
import sys

CPU_HINT = "make setup TORCH_INDEX=https://download.pytorch.org/whl/cpu"


class SetupError(Exception):
    """What is wrong and what to do, in one line."""


def say(text: str) -> None:
    """One line on stderr, which escapes a name that the terminal cannot show."""
    print(text, file=sys.stderr, flush=True)


def without_secrets(text: str) -> str:
    """The text without what stands before the @ of an address."""
    return re.sub(r"//[^/@\s]*@", "//", text)
