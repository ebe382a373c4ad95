"""What the page's own tables are made of: cells with a tone, and small scales that show a number
between others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpt1.results import document as words
from gpt1.results.records import Record

NONE = words.NONE
Tone = Literal["", "good", "bad", "even", "quiet"]


@dataclass(frozen=True)
class Scale:
    """A score with its interval on a line from 0 to 100, beside the majority class and the paper's
    number; all clipped to the line.
    """

    ours: float
    low: float
    high: float
    majority: float | None
    paper: float | None  # None: there is none, or it does not compare


@dataclass(frozen=True)
class Cell:
    """A value as words, smaller words under it, and how it stands: `mark` is a sign and `means` its
    words, for whom colours say nothing.
    """

    text: str = NONE
    note: str = ""
    tone: Tone = ""
    mark: str = ""
    means: str = ""
    scale: Scale | None = None

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return self.text == NONE and not self.note and self.scale is None


@dataclass(frozen=True)
class Sheet:
    """A table of the page: its caption, a header, and rows as wide whose first cell names the
    row.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def signed(number: float | None) -> str:
    """A difference in points."""
    return NONE if number is None else words.signed(number)


def plain(number: float | None) -> str:
    """A score x 100."""
    return NONE if number is None else words.number(number)


def interval(record: Record, form: str = ".1f") -> str:
    """A record's interval as words, with a word where it is of one seed; NONE without one."""
    low, high = record.get("low"), record.get("high")
    if low is None or high is None:
        return NONE
    return words.bounds(low, high, form) + words.seeds_note(record.get("seeds") or 0)


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
