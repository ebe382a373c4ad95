"""Books: which there are, how each is encoded, where it may be cut, and which are held out (paper, section 4.1: the corpus)."""

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpt1.errors import UserError

BLOCK_BYTES = 250_000
PIECE_BYTES = 4_000_000  # a book longer than this is cleaned in pieces, on several cores
CONTROL_SHARE = 0.001  # more control characters than one in a thousand: not text
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig", "utf-8"), (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
                    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"))
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
WHAT_TO_DO = "put .txt files there, or run gpt1 profile PROFILE --data FOLDER, where FOLDER/books holds them"


@dataclass(frozen=True)
class Book:
    """A book: its name (relative path with forward slashes) and its file."""

    name: str
    path: Path


@dataclass(frozen=True)
class Piece:
    """Bytes [start, stop) of a book's file: whole lines; `tags_before`: a `<` stands somewhere before it in the book."""

    book: Book
    codec: str
    start: int
    stop: int
    tags_before: bool


@dataclass(frozen=True)
class Inspection:
    """What one pass over a book finds: its encoding and pieces, or why it is not text."""

    book: Book
    bytes_: int
    encoding: str
    pieces: tuple[Piece, ...]
    problem: str


class _NotTextError(Exception):
    """Why a file is not text."""


def list_books(folder: Path) -> list[Book]:
    """Every .txt file under `folder`, sorted by name. Raises UserError where the folder is missing, unreadable or without books."""
    if not folder.is_dir():
        raise UserError(f"expected a folder of books at {folder}, found {'a file' if folder.exists() else 'none'}; {WHAT_TO_DO}")
    try:
        paths = [path for path in folder.rglob("*") if path.suffix.lower() == ".txt" and not path.is_dir()]
    except OSError as error:
        raise UserError(f"{folder} cannot be read ({error.strerror}); make it readable, or {WHAT_TO_DO}") from None
    books = sorted((Book(path.relative_to(folder).as_posix(), path) for path in paths), key=lambda book: book.name)
    if not books:
        raise UserError(f"no book in {folder}: expected .txt files, found {sum(1 for _ in folder.rglob('*'))} other entries; {WHAT_TO_DO}")
    for book in books:
        if not book.name.isprintable():
            raise UserError(f"the book's name {book.name!a} has characters that cannot be written down; rename the file")
    return books


def inspect(book: Book) -> Inspection:
    """Read a book once, in bounded memory: a byte-order mark decides its encoding, else UTF-8, else windows-1252. Raises UserError."""
    try:
        size = book.path.stat().st_size
        with book.path.open("rb") as file:
            head = file.read(4)
        mark, label, codec = next(((mark, label, codec) for mark, label, codec in BYTE_ORDER_MARKS if head.startswith(mark)),
                                  (b"", "utf-8", "utf-8"))
        try:
            return Inspection(book, size, label, _scan(book, codec, len(mark), CONTROL_SHARE), "")
        except UnicodeDecodeError:
            if mark:
                return Inspection(book, size, "", (), f"starts with the mark of {label} but is not that")
        try:
            return Inspection(book, size, "windows-1252", _scan(book, "cp1252", 0, 0.0), "")
        except UnicodeDecodeError:
            return Inspection(book, size, "", (), "neither UTF-8 nor windows-1252")
    except _NotTextError as why:
        return Inspection(book, size, "", (), str(why))
    except OSError as error:
        raise UserError(f"the book {book.path} cannot be read ({error.strerror}); make it readable or take it out") from None


def refuse_binary(inspections: Iterable[Inspection]) -> None:
    """Raise one UserError that names the books which are not text (the first five), and how many there are."""
    refused = [inspection for inspection in inspections if inspection.problem]
    if refused:
        named = ", ".join(f"{inspection.book.name} ({inspection.problem})" for inspection in refused[:5])
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise UserError(f"expected books as text (UTF-8, UTF-16 with a mark, or windows-1252), found {len(refused)} that are not: "
                        f"{named}{more}; take them out of the corpus or save them as UTF-8")


def _scan(book: Book, codec: str, start: int, control_share: float) -> tuple[Piece, ...]:
    """The pieces of a book, each some whole lines. Raises UnicodeDecodeError or _NotTextError."""
    pieces = []
    position, characters, controls, tags, tags_before = start, 0, 0, False, False
    for text in _decoded(book.path, codec, start, None):
        characters += len(text)
        controls += len(CONTROL.findall(text))
        if "\0" in text:
            raise _NotTextError("holds NUL characters")
        line_end = text.rfind("\n") + 1
        cut = position + len(text[:line_end].encode(codec))
        if line_end and cut - start >= PIECE_BYTES:
            pieces.append(Piece(book, codec, start, cut, tags_before))
            start, tags_before = cut, tags or "<" in text[:line_end]
        tags = tags or "<" in text
        position += len(text.encode(codec))
    if controls > control_share * characters:
        raise _NotTextError(f"{controls:,} control characters among {characters:,}")
    return (*pieces, Piece(book, codec, start, position, tags_before)) if position > start else tuple(pieces)


def _decoded(path: Path, codec: str, start: int, stop: int | None) -> Iterator[str]:
    """The text of bytes [start, stop) of a file, block by block."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(BLOCK_BYTES if stop is None else min(BLOCK_BYTES, stop - file.tell())):
            yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def read_piece(piece: Piece) -> Iterator[str]:
    """The text of a piece, block by block."""
    return _decoded(piece.book.path, piece.codec, piece.start, piece.stop)


def heldout_draw(name: str, seed: int) -> float:
    """A number in [0, 1) that depends on nothing but a book's name and the seed."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def is_heldout(name: str, seed: int, fraction: float) -> bool:
    """Whether the book `name` is kept out of all training; adding or removing other books never changes it."""
    return heldout_draw(name, seed) < fraction


def heldout_books(names: Iterable[str], seed: int, fraction: float) -> set[str]:
    """The held-out ones of all books. Raises UserError where none is left for training or none is held out."""
    names = set(names)
    if len(names) < 2:
        raise UserError(f"expected two books or more, one of them to hold out, found {len(names)}: a corpus of one book cannot be split; "
                        "add books, or cut the file into several")
    heldout = {name for name in names if is_heldout(name, seed, fraction)}
    draws = sorted(heldout_draw(name, seed) for name in names)
    if not heldout:
        raise UserError(f"shard.heldout_fraction {fraction} with shard.heldout_seed {seed} holds out none of {len(names)} books; "
                        f"the smallest fraction that holds one out is {draws[0] + 5e-5:.4f}: set it, or another seed")
    if heldout == names:
        raise UserError(f"shard.heldout_fraction {fraction} with shard.heldout_seed {seed} holds out all {len(names)} books; "
                        f"set it below {draws[-1]:.4f}, or another seed")
    return heldout
