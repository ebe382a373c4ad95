"""A book's bytes as text, without Project Gutenberg's licence, or why they are no text."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from gpt1.corpus.files import CorpusFile, read_whole

CONTROL_SHARE = 0.001  # more control characters than one in a thousand: not text
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"),
    (b"", "utf-8", "utf-8"),
)
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
# one of these stands in every mark of Project Gutenberg: looked for first, quicker than the pattern
TELLING = ("utenberg", "UTENBERG", "SMALL PRINT")
MARK = re.compile(
    r"^[ \t]*(?:"
    r"(?P<begins>\*\*\*[ \t]*START OF (?:THE |THIS )?PROJECT"
    r" GUTENBERG(?:[^*]{0,400}\*\*\*)?|\*END[* ]*THE SMALL PRINT!)"
    r"|\*\*\*[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG|END OF (?:THE |THIS )?PROJECT"
    r" GUTENBERG(?:['’]S)? )[^\n]*\n?",
    re.MULTILINE | re.IGNORECASE,
)
HEADER = 100_000  # a beginning longer than this is no licence, and is kept
SMALL_PRINT = 20_000  # the same between two marks of a beginning
TAIL = 10  # so many times as long as what follows, it is the book, and the mark stands at its end


class NotTextError(Exception):
    """Why a file is not text."""


class Book(NamedTuple):
    """A book decoded."""

    text: str  # without the licence
    encoding: str
    stripped: int  # bytes of licence
    licensed: bool  # whether it has the licence's mark


def read_book(book: CorpusFile) -> Book:
    """Read a book. A byte-order mark decides the encoding, else UTF-8, else windows-1252. Raises
    NotTextError, UserError.
    """
    data, most = read_whole(book), CONTROL_SHARE
    mark, encoding, codec = next(row for row in BYTE_ORDER_MARKS if data.startswith(row[0]))
    data = data.removeprefix(mark)
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        if mark:
            raise NotTextError(f"starts with the mark of {encoding} but is not that") from None
        encoding, codec, most = "windows-1252", "cp1252", 0.0
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            raise NotTextError("neither UTF-8 nor windows-1252") from None
    if "\0" in text:
        raise NotTextError("holds NUL characters")
    controls = len(CONTROL.findall(text))
    if controls > most * len(text):
        raise NotTextError(f"{controls:,} control characters among {len(text):,}")
    kept, licensed = body(text)
    return Book(kept, encoding, len(data) - len(kept.encode(codec)), licensed)


def body(text: str) -> tuple[str, bool]:
    """Return a text without the licence, a line break between its spans, and whether a mark began
    the book.
    """
    spans, header, begin, marked = list[str](), "", 0, False  # begin -1: before no book
    for start, stop, begins in (*marks(text), (len(text), len(text), False)):
        before = text[begin:start] if begin >= 0 else ""
        if begins and begin >= 0 and len(before) <= (SMALL_PRINT if marked else HEADER):
            header = max(header, before, key=len)
        elif begin >= 0:
            spans += [header] * (len(header) > TAIL * len(before)) + [before]
            header = ""
        begin, marked = (stop, True) if begins else (-1, marked)
    return "\n".join(filter(None, spans)), marked


def marks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the marks of the licence, characters [start, stop), and whether the book begins
    there.
    """
    if any(word in text for word in TELLING):
        for match in MARK.finditer(text):
            yield match.start(), match.end(), match["begins"] is not None
