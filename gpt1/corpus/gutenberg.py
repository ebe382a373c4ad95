"""Project Gutenberg's licence around a book: the lines that mark where the book itself begins and
ends.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

TELLING = (
    "utenberg",
    "UTENBERG",
    "SMALL PRINT",
)  # one of these stands in every mark: looked for first, quicker than the patterns
MARK = re.compile(
    r"^[ \t]*(?:"
    r"(?P<begins>\*\*\*[ \t]*START OF (?:THE |THIS )?PROJECT"
    r" GUTENBERG(?:[^*]{0,400}\*\*\*)?|\*END[* ]*THE SMALL PRINT!)"
    r"|\*\*\*[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG|END OF (?:THE |THIS )?PROJECT"
    r" GUTENBERG(?:['’]S)? )[^\n]*\n?",
    re.MULTILINE | re.IGNORECASE,
)


class Mark(NamedTuple):
    """Characters [start, stop) of a text are a mark, the title that may be wrapped included; the
    book begins after it, or ends before.
    """

    start: int
    stop: int
    begins: bool


def marks(text: str) -> Iterator[Mark]:
    """The marks of a text of whole lines, in order."""
    if any(word in text for word in TELLING):
        for found in MARK.finditer(text):
            yield Mark(found.start(), found.end(), found["begins"] is not None)


class Body:
    """Which spans of a book that comes in parts are the book itself; a text without marks is one
    span, the whole.

    Several books in one file, each with its marks, give several spans.
    """

    HEADER = 100_000  # a beginning longer than this is no licence, and is kept
    SMALL_PRINT = 20_000  # the same between two marks of a beginning

    def __init__(self, start: int) -> None:
        self.begin: int | None = start
        self.marked = False
        self.spans: list[tuple[int, int]] = []

    def mark(self, start: int, stop: int, begins: bool) -> None:
        """A mark lies at [start, stop)."""
        if begins:
            if self.begin is not None and start - self.begin > (
                self.SMALL_PRINT if self.marked else self.HEADER
            ):
                self.spans.append((self.begin, start))
            self.begin, self.marked = stop, True
        elif self.begin is not None:
            self.spans.append((self.begin, start))
            self.begin = None

    def end(self, stop: int) -> list[tuple[int, int]]:
        """The spans of a book that ends at `stop`, without empty ones."""
        if self.begin is not None:
            self.spans.append((self.begin, stop))
        return [span for span in self.spans if span[0] < span[1]]


def body(text: str) -> tuple[str, bool]:
    """A whole text without the licence, and whether there was a mark of its beginning."""
    spans = Body(0)
    for mark in marks(text):
        spans.mark(*mark)
    found = spans.end(len(text))
    return (
        (text, False)
        if found == [(0, len(text))]
        else ("\n".join(text[start:stop] for start, stop in found), spans.marked)
    )
