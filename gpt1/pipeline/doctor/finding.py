"""What an examination finds, and its ways of saying so."""

from typing import Literal, NamedTuple

GB = 1e9


class Finding(NamedTuple):
    """One thing looked at: all is well, worth knowing, or something must be done (which says
    what).
    """

    name: str
    state: Literal["ok", "note", "do"]
    found: str
    what_to_do: str = ""


def well(name: str, found: str, *, noted: bool = False) -> list[Finding]:
    """All is well; `noted`: worth knowing all the same."""
    return [Finding(name, "note" if noted else "ok", found)]


def to_do(name: str, found: str, what_to_do: str) -> list[Finding]:
    """Something must be done."""
    return [Finding(name, "do", found, what_to_do)]


def size(bytes_: float) -> str:
    """Bytes as a person says them."""
    return f"{bytes_ / GB:.1f} GB" if bytes_ >= 0.95 * GB else f"{bytes_ / 1e6:.0f} MB"
