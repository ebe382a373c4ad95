"""Token files, and windows that depend on (seed, update) alone (paper, section 4.1: random
contiguous sequences).
"""

import hashlib
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, write_json

SPLITS = ("train", "heldout")
COPIED_BYTES = 1 << 20  # at a time
Integers = NDArray[np.int64]
WHAT_TO_DO = "write it again: dvc repro shard"


def token_type(vocabulary_size: int) -> str:
    """Return the smallest unsigned type for a vocabulary's ids."""
    return "uint16" if vocabulary_size <= 2**16 else "uint32"


class SplitWriter:
    """One token file and its part of the index."""

    def __init__(self, path: Path) -> None:
        self.file, self.digest = path.open("wb"), hashlib.sha256()
        self.books: list[dict[str, Any]] = []
        self.tokens = 0

    def begin(self, name: str) -> None:
        """Start a book."""
        self.books.append({"name": name, "offset": self.tokens, "tokens": 0, "words": 0})

    def append(self, ids: NDArray[Any], words: int) -> None:
        """Add tokens to the current book."""
        self._write(ids.tobytes())
        self.tokens += len(ids)
        self.books[-1]["tokens"] += len(ids)
        self.books[-1]["words"] += words

    def extend(self, path: Path, books: list[dict[str, Any]]) -> None:
        """Append another writer's token file and rows."""
        with path.open("rb") as file:
            while data := file.read(COPIED_BYTES):
                self._write(data)
        self.books += [book | {"offset": self.tokens + book["offset"]} for book in books]
        self.tokens += sum(book["tokens"] for book in books)

    def _write(self, data: bytes) -> None:
        self.file.write(data)
        self.digest.update(data)

    def close(self) -> dict[str, Any]:
        """Close the file; return the split's part of the index."""
        self.file.close()
        documents = sum(book.get("documents", 0) for book in self.books)
        return {
            "tokens": self.tokens,
            "words": sum(book["words"] for book in self.books),
            "sha256": self.digest.hexdigest(),
            "books": self.books,
            **({"documents": documents} if documents else {}),
        }


def write_index(
    folder: Path,
    splits: dict[str, dict[str, Any]],
    vocabulary_size: int,
    vocabulary_fingerprint: str,
) -> None:
    """Write index.json beside the token files."""
    write_json(
        folder / "index.json",
        {
            "dtype": token_type(vocabulary_size),
            "vocabulary_size": vocabulary_size,
            "vocabulary_fingerprint": vocabulary_fingerprint,
            "splits": splits,
        },
    )


class Shards:
    """Token files open for reading; memory holds only the rows in use."""

    def __init__(self, folder: Path, index: dict[str, Any]) -> None:
        self.folder, self.index = folder, index
        self._starts = cache(self._starts_of_books)  # every update asks
        self._type = np.dtype(index["dtype"]).newbyteorder("<")

    @classmethod
    def open(cls, folder: Path) -> "Shards":
        """Open shards. Raises UserError where index and token files do not agree."""
        try:
            index = read_json(folder / "index.json")
            type_ = np.dtype(token_type(index["vocabulary_size"]))
            if index["dtype"] != str(type_):
                raise ValueError(f"its vocabulary wants {type_}, found {index['dtype']}")
            for split in SPLITS:
                facts, bytes_ = index["splits"][split], (folder / f"{split}.bin").stat().st_size
                tokens = [book["tokens"] for book in facts["books"]]
                counts = [*tokens, facts["tokens"], facts["words"]]
                offsets = list(accumulate(tokens, initial=0))
                if (
                    any(type(count) is not int or count < 0 for count in counts)
                    or [*(book["offset"] for book in facts["books"]), facts["tokens"]] != offsets
                    or bytes_ != facts["tokens"] * type_.itemsize
                ):
                    raise ValueError(f"it does not fit {split}.bin, of {bytes_:,} bytes")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{folder}: expected token files and their index, found others ({error});"
                f" {WHAT_TO_DO}"
            ) from None
        return cls(folder, index)

    def tokens(self, split: str) -> int:
        """Return the number of tokens in a split."""
        return int(self.index["splits"][split]["tokens"])

    def words_per_token(self, split: str) -> float:
        """Return words (without line breaks) per token; exp(loss / words_per_token) is the
        perplexity per word.
        """
        facts = self.index["splits"][split]
        return float(facts["words"] / facts["tokens"])

    def windows(self, split: str, starts: Integers, context: int) -> Integers:
        """Return tokens [b, context + 1] from these starts. Raises UserError for an id outside the
        vocabulary.
        """
        windows = np.empty((len(starts), context + 1), dtype=np.int64)
        size = self._type.itemsize
        with (self.folder / f"{split}.bin").open("rb", buffering=0) as file:
            for row, position in enumerate(starts.tolist()):
                file.seek(position * size)
                windows[row] = np.frombuffer(file.read((context + 1) * size), dtype=self._type)
        if windows.size and windows.max() >= self.index["vocabulary_size"]:
            raise UserError(
                f"{self.folder / f'{split}.bin'}: expected ids below"
                f" {self.index['vocabulary_size']:,}, found {windows.max():,}; {WHAT_TO_DO}"
            )
        return windows

    def starts(self, split: str, seed: int, update: int, batch_size: int, context: int) -> Integers:
        """Return where a batch's windows begin, [batch], in tokens: uniform over all windows within
        one book, by (seed, update) alone.
        """
        ends, offsets = self._starts(split, context)
        generator = np.random.Generator(
            np.random.Philox(key=np.array([seed, update], dtype=np.uint64))
        )
        return self._positions(generator.integers(0, ends[-1], size=batch_size), ends, offsets)

    def heldout_windows(self, count: int, context: int) -> Integers:
        """Return [count, context + 1] held-out tokens, evenly spaced, always the same."""
        ends, offsets = self._starts("heldout", context)
        starts = np.arange(count, dtype=np.int64) * int(ends[-1]) // count
        return self.windows("heldout", self._positions(starts, ends, offsets), context)

    def _starts_of_books(self, split: str, context: int) -> tuple[Integers, Integers]:
        """Return each book's running number of starts, and its offset. Raises UserError where no
        book has a window.
        """
        books = self.index["splits"][split]["books"]
        counts = np.array([max(0, book["tokens"] - context) for book in books], dtype=np.int64)
        if not counts.sum():
            longest = max((book["tokens"] for book in books), default=0)
            raise UserError(
                f"{self.folder}: no {split} book is as long as a window of {context + 1} tokens"
                f" (the longest has {longest}); lower model.context, or bring longer books"
            )
        return np.cumsum(counts), np.array([book["offset"] for book in books], dtype=np.int64)

    @staticmethod
    def _positions(starts: Integers, ends: Integers, offsets: Integers) -> Integers:
        book = np.searchsorted(ends, starts, side="right")
        return offsets[book] + starts - np.where(book > 0, ends[book - 1], 0)
