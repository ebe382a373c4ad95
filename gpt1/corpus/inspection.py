"""A book's encoding and Project Gutenberg's licence in it, or why it is no text."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpt1.base.errors import UserError
from gpt1.corpus.files import CorpusFile, blocks
from gpt1.corpus.words import lines_and_parts

LONGEST_LINE = 1_000_000  # characters looked at together
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


def marks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the marks of the licence, characters [start, stop), and whether the book begins
    there.
    """
    if any(word in text for word in TELLING):
        for match in MARK.finditer(text):
            yield match.start(), match.end(), match["begins"] is not None


class Body:
    """The spans of a book between marks of the licence, read in parts."""

    HEADER = 100_000  # a beginning longer than this is no licence, and is kept
    SMALL_PRINT = 20_000  # the same between two marks of a beginning
    TAIL = (
        10  # so many times as long as what follows, it is the book, and the mark stands at its end
    )

    def __init__(self, start: int) -> None:
        self.begin: int | None = start
        self.marked = False
        self.header = start, start  # the longest before a mark of this book's beginning
        self.spans: list[tuple[int, int]] = []

    def mark(self, start: int, stop: int, begins: bool) -> None:
        """Take note of a mark at [start, stop)."""
        longest = self.SMALL_PRINT if self.marked else self.HEADER
        if begins and self.begin is not None and start - self.begin <= longest:
            self.header = max(self.header, (self.begin, start), key=_length)
        else:
            self.end(start)
        self.begin, self.marked = (stop, True) if begins else (None, self.marked)

    def end(self, stop: int) -> list[tuple[int, int]]:
        """Return the spans, without empty ones, of a book that ends at `stop`."""
        if self.begin is not None:
            span = self.begin, stop
            before = [self.header] if _length(self.header) > self.TAIL * _length(span) else []
            self.spans += [*before, span]
            self.header, self.begin = (stop, stop), None
        return [span for span in self.spans if span[0] < span[1]]


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def body(text: str) -> tuple[str, bool]:
    """Return a text without the licence, and whether a mark began the book."""
    spans = Body(0)
    for mark in marks(text):
        spans.mark(*mark)
    return "\n".join(text[start:stop] for start, stop in spans.end(len(text))), spans.marked


@dataclass(frozen=True)
class Inspection:
    """What a first reading tells of a book."""

    name: str
    bytes_: int  # of its file
    problem: str = ""  # why it is not text
    encoding: str = ""
    codec: str = ""
    spans: Sequence[tuple[int, int]] = ()  # bytes [start, stop) of the book, unpacked
    stripped: int = 0  # bytes of licence
    licensed: bool = False  # whether it has the licence's mark


class _NotTextError(Exception):
    """Why a file is not text."""


def inspect(book: CorpusFile) -> Inspection:
    """Read a book once, in bounded memory. A byte-order mark decides the encoding, else UTF-8, else
    windows-1252. Raises UserError.
    """
    head = next(blocks(book, 0, 4), b"")
    mark, label, codec = next(row for row in BYTE_ORDER_MARKS if head.startswith(row[0]))
    problem = "neither UTF-8 nor windows-1252"
    try:
        try:
            return _scan(book, label, codec, len(mark), CONTROL_SHARE)
        except UnicodeDecodeError:
            if not mark:
                return _scan(book, "windows-1252", "cp1252", 0, 0.0)
            problem = f"starts with the mark of {label} but is not that"
    except UnicodeDecodeError:
        pass
    except _NotTextError as why:
        problem = str(why)
    return Inspection(book.name, book.path.stat().st_size, problem)


def refuse_binary(inspections: Iterable[Inspection]) -> None:
    """Raise one UserError that counts books that are not text."""
    refused = [inspection for inspection in inspections if inspection.problem]
    if refused:
        named = ", ".join(f"{inspection.name} ({inspection.problem})" for inspection in refused[:5])
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise UserError(
            "expected books as text (UTF-8, UTF-16 with a mark, or windows-1252), found"
            f" {len(refused)} that are not: {named}{more}; take them out of the corpus or save them"
            " as UTF-8"
        )


def _scan(
    book: CorpusFile, encoding: str, codec: str, start: int, control_share: float
) -> Inspection:
    """Read a book from byte `start`. Raises UnicodeDecodeError or _NotTextError."""
    body, position, characters, controls = Body(start), start, 0, 0
    for text in lines_and_parts(codecs.iterdecode(blocks(book, start), codec), LONGEST_LINE):
        characters += len(text)
        controls += len(CONTROL.findall(text))
        if "\0" in text:
            raise _NotTextError("holds NUL characters")
        seen = 0
        for begin, end, begins in marks(text):
            position += len(text[seen:begin].encode(codec))
            after = position + len(text[begin:end].encode(codec))
            body.mark(position, after, begins)
            position, seen = after, end
        position += len(text[seen:].encode(codec))
    if controls > control_share * characters:
        raise _NotTextError(f"{controls:,} control characters among {characters:,}")
    spans = body.end(position)
    stripped = position - start - sum(last - first for first, last in spans)
    size = book.path.stat().st_size
    return Inspection(book.name, size, "", encoding, codec, spans, stripped, body.marked)


def read_book(book: CorpusFile, inspection: Inspection) -> Iterator[str]:
    """Yield a book without the licence, a line break between spans."""
    for number, (start, stop) in enumerate(inspection.spans):
        yield "\n" if number else ""
        yield from codecs.iterdecode(blocks(book, start, stop), inspection.codec)
