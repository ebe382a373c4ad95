"""Cleaned books: which there are, in which parts, and which are held out of all training (paper,
section 4.1: the corpus).

A file of many documents has DOCUMENT_END after each of them; a document's name is the file's, # and
its row.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.corpus.shards import Part, parts_of, read_words

DOCUMENT_END = "\f"  # white space, so never part of a cleaned word
BOOKS, DOCUMENTS = "books", "documents"  # folders of data/clean
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Book:
    """A cleaned book, or a file of many documents: its name (relative path with forward slashes)
    and its file.
    """

    name: str
    path: Path
    many: bool


@dataclass(frozen=True)
class DocumentsPart:
    """A part of a file of many documents: `first` is the row of the document in which it begins."""

    part: Part
    name: str
    first: int

    @property
    def bytes_(self) -> int:
        """How long it is."""
        return self.part.bytes_


@dataclass(frozen=True)
class HoldOut:
    """Which books are kept out of all training: so large a share, by their names and a seed."""

    seed: int
    fraction: float

    def holds(self, name: str) -> bool:
        """Whether the book `name` is kept out; adding or removing other books never changes it."""
        return heldout_draw(name, self.seed) < self.fraction

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


def cleaned_books(folder: Path) -> list[Book]:
    """The books and files of documents that stage clean wrote into `folder`, sorted by name. Raises
    UserError where there are none.
    """
    found = [
        Book(path.relative_to(folder / kind).as_posix(), path, kind == DOCUMENTS)
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


def documents_parts(book: Book) -> tuple[list[DocumentsPart], int]:
    """The parts of a file of documents, and how many documents it has."""
    found, row = [], 0
    for part in parts_of(book.path):
        found.append(DocumentsPart(part, book.name, row))
        row += sum(block.count(DOCUMENT_END.encode()) for block in _blocks(part))
    return found, row


def _blocks(part: Part) -> Iterator[bytes]:
    with part.path.open("rb") as file:
        file.seek(part.start)
        while block := file.read(min(BLOCK_BYTES, part.stop - file.tell())):
            yield block


def document_name(file: str, row: int) -> str:
    """The name by which a document is held out."""
    return f"{file}#{row}"


def unit_names(books: Iterable[tuple[Book, int]]) -> Iterator[str]:
    """The names of all books and documents; each book comes with how many documents it has."""
    for book, documents in books:
        if book.many:
            yield from (document_name(book.name, row) for row in range(documents))
        else:
            yield book.name


def documents_of(part: DocumentsPart) -> Iterator[tuple[int, list[str], bool]]:
    """The documents in a part: row, the words that lie in the part, whether the document ends
    there.
    """
    words, row, start = read_words(part.part), part.first, 0
    while start < len(words):
        try:
            stop = words.index(DOCUMENT_END, start)
        except ValueError:
            yield row, words[start:], False
            return
        yield row, words[start:stop], True
        row, start = row + 1, stop + 1
