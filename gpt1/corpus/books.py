"""Cleaned books: which there are, in which parts, and which are held out of all training (paper,
section 4.1: the corpus).

A file of many documents has DOCUMENT_END after each of them; a document's name is the file's, # and
its row.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gpt1.base.errors import UserError

DOCUMENT_END = "\f"  # white space, so never part of a cleaned word
BOOKS, DOCUMENTS = "books", "documents"  # folders of data/clean
PART_BYTES = 4_000_000
BLOCK_BYTES = 65_536


@dataclass(frozen=True)
class CleanedBook:
    """A cleaned book, or a file of many documents: its name (relative path with forward slashes)
    and its file.
    """

    name: str
    path: Path
    many: bool


@dataclass(frozen=True)
class BookPart:
    """Bytes [start, stop) of a cleaned book: whole words. `row`: of the document in which it
    begins; None where the file is one book.
    """

    book: CleanedBook
    start: int
    stop: int
    row: int | None = None

    @property
    def bytes_(self) -> int:
        """How long it is."""
        return self.stop - self.start

    def name_of(self, row: int) -> str:
        """The name by which a document that begins in it, or the whole book, is held out."""
        return self.book.name if self.row is None else document_name(self.book.name, row)


@dataclass(frozen=True)
class HoldOut:
    """Which books are kept out of all training: so large a share, by their names and a seed."""

    seed: int
    fraction: float

    def holds(self, name: str) -> bool:
        """Whether the book `name` is kept out; adding or removing other books never changes it."""
        return heldout_draw(name, self.seed) < self.fraction

    def split_of(self, name: str) -> str:
        """The split that a book belongs to."""
        return "heldout" if self.holds(name) else "train"

    def check(self, names: Iterable[str]) -> None:
        """Raise UserError where none of the books is left for training or none is held out; reads
        no more names than that takes.
        """
        heldout = count = 0
        smallest, largest = 1.0, 0.0
        for name in names:
            draw = heldout_draw(name, self.seed)
            heldout, count = heldout + (draw < self.fraction), count + 1
            smallest, largest = min(smallest, draw), max(largest, draw)
            if 0 < heldout < count:
                return
        if count < 2:
            raise UserError(
                f"expected two books or more, one of them to hold out, found {count}: a corpus of"
                " one book cannot be split; add books, or cut the file into several"
            )
        if not heldout:
            raise UserError(
                f"shard.heldout_fraction {self.fraction} with shard.heldout_seed {self.seed} holds"
                f" out none of {count} books; the smallest fraction that holds one out is"
                f" {smallest + 5e-5:.4f}: set it, or another seed"
            )
        raise UserError(
            f"shard.heldout_fraction {self.fraction} with shard.heldout_seed {self.seed} holds out"
            f" all {count} books; set it below {largest:.4f}, or another seed"
        )


def heldout_draw(name: str, seed: int) -> float:
    """A number in [0, 1) that depends on nothing but a book's name and the seed."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def cleaned_books(folder: Path) -> list[CleanedBook]:
    """The books and files of documents that stage clean wrote into `folder`, sorted by name. Raises
    UserError where there are none.
    """
    found = [
        CleanedBook(path.relative_to(folder / kind).as_posix(), path, kind == DOCUMENTS)
        for kind in (BOOKS, DOCUMENTS)
        for path in (folder / kind).rglob("*")
        if path.is_file()
    ]
    if not found:
        raise UserError(
            f"expected cleaned books in {folder}, found none; run the stage that writes them: dvc"
            " repro clean"
        )
    return sorted(found, key=lambda book: book.name)


def parts_of(book: CleanedBook) -> tuple[list[BookPart], int]:
    """A cleaned book in parts of about PART_BYTES, cut at blanks, and how many documents it has."""
    size, cuts, documents = book.path.stat().st_size, [0], 0
    with book.path.open("rb") as file:
        for wanted in range(PART_BYTES, size, PART_BYTES):
            file.seek(position := max(wanted, cuts[-1]))
            while (block := file.read(BLOCK_BYTES)) and b" " not in block:
                position += len(block)
            cuts.append(position + block.find(b" ") + 1 if block else size)
        parts = []
        for start, stop in pairwise([*cuts, size]):
            if start < stop:
                parts.append(BookPart(book, start, stop, documents if book.many else None))
            if book.many:
                file.seek(start)
                documents += sum(
                    file.read(min(BLOCK_BYTES, stop - place)).count(DOCUMENT_END.encode())
                    for place in range(start, stop, BLOCK_BYTES)
                )
    return parts, documents


def read_words(part: BookPart) -> list[str]:
    """The words of a part, a line break among them as a word of its own."""
    with part.book.path.open("rb") as file:
        file.seek(part.start)
        return file.read(part.bytes_).decode("utf-8").removesuffix(" ").split(" ")


def document_name(file: str, row: int) -> str:
    """The name by which a document is held out."""
    return f"{file}#{row}"


def unit_names(books: Iterable[tuple[CleanedBook, int]]) -> Iterator[str]:
    """The names of all books and documents; each book comes with how many documents it has."""
    for book, documents in books:
        if book.many:
            yield from (document_name(book.name, row) for row in range(documents))
        else:
            yield book.name


def units_of(part: BookPart) -> Iterator[tuple[int, list[str], bool]]:
    """The documents in a part, or its whole as row 0: row, the words that lie in the part, whether
    a document ends there.
    """
    words, row, start = read_words(part), part.row or 0, 0
    ends = words.count(DOCUMENT_END) if part.row is not None else 0
    for _ in range(ends):
        stop = words.index(DOCUMENT_END, start)
        yield row, words[start:stop], True
        row, start = row + 1, stop + 1
    if start < len(words):
        yield row, words[start:], False
