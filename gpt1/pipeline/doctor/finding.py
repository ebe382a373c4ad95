"""What an examination finds, and its ways of saying so."""

from typing import Literal, NamedTuple

GB = 1e9
State = Literal["ok", "note", "do"]


class Finding(NamedTuple):
    """One thing looked at: all is well, worth knowing, or something must be done (which says
    what).
    """

    name: str
    state: State
    found: str
    what_to_do: str = ""


def size(bytes_: float) -> str:
    """Bytes as a person says them."""
    return f"{bytes_ / GB:.1f} GB" if bytes_ >= 0.95 * GB else f"{bytes_ / 1e6:.0f} MB"
