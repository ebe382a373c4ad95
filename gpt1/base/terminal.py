"""Nothing of a file's that could steer a terminal."""

from gpt1.base.errors import printable


def plain(text: str) -> str:
    """Text from a file, what could steer a terminal as an escape; tabs as blanks."""
    return "\n".join(map(printable, text.expandtabs().split("\n")))
