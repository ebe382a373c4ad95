"""A book of a corpus: how it is encoded, where it may be cut, where Project Gutenberg's licence
ends and begins, or why it is no text; and what a whole corpus is recognised as.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpt1.base.errors import UserError
from gpt1.corpus.files import CorpusFile, blocks
from gpt1.corpus.gutenberg import Body, marks
from gpt1.corpus.words import lines_and_parts

PIECE_BYTES = 4_000_000  # a book longer than this is cleaned in pieces, on several cores
LONGEST_LINE = 1_000_000  # characters looked at together
CONTROL_SHARE = 0.001  # more control characters than one in a thousand: not text
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"),
)
PG19 = re.compile(
    r"(?:.*/)?(train|validation|test)/[0-9]+\.txt"
)  # https://github.com/google-deepmind/pg19
BOOKSCORPUS = re.compile(r"(toronto\s*)?books?[\s_-]*corpus|book[\s_-]*corpus", re.IGNORECASE)
LICENSED_SHARE = 0.5
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Piece:
    """Bytes [start, stop) of a book's unpacked file: whole lines; `tags_before`: a `<` stands
    somewhere before it in the book.
    """

    book: CorpusFile
    codec: str
    start: int
    stop: int
    tags_before: bool


@dataclass(frozen=True)
class Inspection:
    """What one pass over a book finds: its encoding and pieces, or why it is not text.

    bytes_: of its file. stripped: bytes of Project Gutenberg's licence, which no piece holds;
    licensed: whether the book has its mark.
    """

    book: CorpusFile
    bytes_: int
    encoding: str
    pieces: tuple[Piece, ...]
    problem: str
    stripped: int = 0
    licensed: bool = False


class _NotTextError(Exception):
    """Why a file is not text."""


def inspect(book: CorpusFile) -> Inspection:
    """Read a book once, in bounded memory: a byte-order mark decides its encoding, else UTF-8, else
    windows-1252. Raises UserError.
    """
    head = next(blocks(book, 0, 4), (b"", 0))[0]
    size = book.path.stat().st_size
    mark, label, codec = next(
        ((mark, label, codec) for mark, label, codec in BYTE_ORDER_MARKS if head.startswith(mark)),
        (b"", "utf-8", "utf-8"),
    )
    try:
        try:
            return _scan(book, size, label, codec, len(mark), CONTROL_SHARE)
        except UnicodeDecodeError:
            if mark:
                return Inspection(
                    book, size, "", (), f"starts with the mark of {label} but is not that"
                )
        try:
            return _scan(book, size, "windows-1252", "cp1252", 0, 0.0)
        except UnicodeDecodeError:
            return Inspection(book, size, "", (), "neither UTF-8 nor windows-1252")
    except _NotTextError as why:
        return Inspection(book, size, "", (), str(why))


def refuse_binary(inspections: Iterable[Inspection]) -> None:
    """Raise one UserError that names the books which are not text (the first five), and how many
    there are.
    """
    refused = [inspection for inspection in inspections if inspection.problem]
    if refused:
        named = ", ".join(
            f"{inspection.book.name} ({inspection.problem})" for inspection in refused[:5]
        )
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise UserError(
            "expected books as text (UTF-8, UTF-16 with a mark, or windows-1252), found"
            f" {len(refused)} that are not: {named}{more}; take them out of the corpus or save them"
            " as UTF-8"
        )


def _scan(
    book: CorpusFile, size: int, encoding: str, codec: str, start: int, control_share: float
) -> Inspection:
    """Go through a book from byte `start`. Raises UnicodeDecodeError or _NotTextError."""
    body, position, last_cut, characters, controls = Body(start), start, start, 0, 0
    cuts: list[int] = []
    tags: list[int] = []  # where a `<` stands first in each part between marks
    for text in lines_and_parts(_decoded(book, codec, start, None), LONGEST_LINE):
        characters += len(text)
        controls += len(CONTROL.findall(text))
        if "\0" in text:
            raise _NotTextError("holds NUL characters")
        seen = 0
        for begin, end, begins in marks(text):
            position = _pass(text[seen:begin], codec, position, tags)
            after = position + len(text[begin:end].encode(codec))
            body.mark(position, after, begins)
            position, seen = after, end
        position = _pass(text[seen:], codec, position, tags)
        if text.endswith("\n") and position - last_cut >= PIECE_BYTES and not book.packed:
            cuts.append(position)
            last_cut = position
    if controls > control_share * characters:
        raise _NotTextError(f"{controls:,} control characters among {characters:,}")
    spans = body.end(position)
    edges = [
        (first, last)
        for begin, stop in spans
        for first, last in pairwise([begin, *(cut for cut in cuts if begin < cut < stop), stop])
    ]
    kept = [tag for tag in tags if any(begin <= tag < stop for begin, stop in spans)]
    pieces = tuple(
        Piece(book, codec, first, last, any(tag < first for tag in kept[:1]))
        for first, last in edges
    )
    return Inspection(
        book,
        size,
        encoding,
        pieces,
        "",
        position - start - sum(stop - begin for begin, stop in spans),
        body.marked,
    )


def _pass(text: str, codec: str, position: int, tags: list[int]) -> int:
    """Where a text that begins at byte `position` ends; where its first `<` stands is added to
    `tags`.
    """
    if (found := text.find("<")) >= 0:
        tags.append(position + len(text[:found].encode(codec)))
    return position + len(text.encode(codec))


def _decoded(book: CorpusFile, codec: str, start: int, stop: int | None) -> Iterator[str]:
    """The text of bytes [start, stop) of a book, block by block."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    for block, _ in blocks(book, start, stop):
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def read_piece(piece: Piece) -> Iterator[str]:
    """The text of a piece, block by block."""
    return _decoded(piece.book, piece.codec, piece.start, piece.stop)


def recognised(inspections: Sequence[Inspection], documents: int) -> str:
    """PG-19 (its folders of numbered books), Project Gutenberg (books with its licence), or empty;
    `documents`: files with many each.
    """
    places = [PG19.fullmatch(inspection.book.name) for inspection in inspections]
    if (
        places
        and all(places)
        and not documents
        and any(place and place[1] == "train" for place in places)
    ):
        return "PG-19"
    licensed = sum(inspection.licensed for inspection in inspections)
    return (
        "Project Gutenberg"
        if licensed and licensed >= LICENSED_SHARE * len(inspections) and not documents
        else ""
    )


def refuse_wrong_name(name: str, found: str) -> None:
    """Raise UserError where a corpus that is recognised as another is called BooksCorpus."""
    if found and BOOKSCORPUS.search(name):
        raise UserError(
            f"clean.corpus_name says {name}, but the books are recognised as {found}; the name"
            " stands in every table, so give theirs: gpt1 profile PROFILE"
            f" 'clean.corpus_name={found}'"
        )
