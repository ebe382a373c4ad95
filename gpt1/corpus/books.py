"""Cleaned books, and which are held out of all training (paper, section 4.1). In a file of
documents DOCUMENT_END follows each; a document's name is the file's, # and its row.
"""

import hashlib
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import read_json_file

DOCUMENT_END = "\f"  # white space, so never part of a cleaned word
BOOKS, DOCUMENTS = "books", "documents"  # folders of data/clean
BLOCK_CHARACTERS = 1_000_000  # of words read at a time


@dataclass(frozen=True)
class CleanedBook:
    """A cleaned book, or file of documents."""

    name: str
    path: Path
    documents: int | None = None  # how many; None: one book

    def name_of(self, row: int) -> str:
        """Return the name by which HoldOut decides on a document or book."""
        return self.name if self.documents is None else f"{self.name}#{row}"

    def units(self) -> Iterator[tuple[int, list[str], bool]]:
        """Yield words in order, some at a time: their document's row (0 in a book), the words,
        whether it ends there.
        """
        row = 0
        for words in self._words():
            start = 0
            for _ in range(words.count(DOCUMENT_END)):
                stop = words.index(DOCUMENT_END, start)
                yield row, words[start:stop], True
                row, start = row + 1, stop + 1
            if start < len(words):
                yield row, words[start:], False
        if self.documents is None:
            yield row, [], True

    def _words(self) -> Iterator[list[str]]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            rest = ""
            while block := file.read(BLOCK_CHARACTERS):
                *words, rest = (rest + block).split(" ")
                yield words
            yield [rest]


@dataclass(frozen=True)
class HoldOut:
    """The books held out of all training, chosen by name and seed."""

    seed: int
    fraction: float

    def holds(self, name: str) -> bool:
        """Return whether a book is held out; other books never change this."""
        return heldout_draw(name, self.seed) < self.fraction

    def split_of(self, name: str) -> str:
        """Return the split of a book."""
        return "heldout" if self.holds(name) else "train"

    def for_corpus(self, names: Iterable[str]) -> "HoldOut":
        """Return this, or a fraction that holds out one book, or leaves one. Raises UserError for a
        single book.
        """
        count, smallest, largest = 0, 1.0, 0.0
        for name in names:
            draw = heldout_draw(name, self.seed)
            count, smallest, largest = count + 1, min(smallest, draw), max(largest, draw)
            if smallest < self.fraction <= largest:
                return self
        if count < 2:
            raise UserError(
                f"expected two books or more, one of them to hold out, found {count}: a corpus of"
                " one book cannot be split; add books, or cut the file into several"
            )
        few = self.fraction <= smallest
        print(
            f"shard.heldout_fraction {self.fraction} holds out {'none' if few else 'all'} of"
            f" {count} books: one is {'held out' if few else 'left for training'}",
            file=sys.stderr,
        )
        return HoldOut(self.seed, math.nextafter(smallest, 1.0) if few else largest)


def heldout_draw(name: str, seed: int) -> float:
    """Return a number in [0, 1) by name and seed alone."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def cleaned_books(folder: Path) -> list[CleanedBook]:
    """Return the cleaned books, sorted by name. Raises UserError where stage clean has not written
    them.
    """
    counts = read_json_file(folder / "counts.json", "run the stage that writes it: dvc repro clean")
    books = [CleanedBook(name, folder / BOOKS / name) for name in counts["books"]]
    files = [
        CleanedBook(name, folder / DOCUMENTS / name, row["documents"])
        for name, row in counts.get("documents", {}).items()
        if row["words"]
    ]
    return sorted([*books, *files], key=lambda book: book.name)


def unit_names(books: Iterable[CleanedBook]) -> Iterator[str]:
    """Yield the names of all books and documents."""
    for book in books:
        for row in range(1 if book.documents is None else book.documents):
            yield book.name_of(row)
