"""The runs of n words that texts and a cleaned corpus of any size share: hashes find them, their
words decide. Memory is some hundred bytes for each different run of the texts.

A word is what stands between blanks in cleaned text (lower case) and holds a letter or a digit;
punctuation and line breaks are none. A document's end counts as a word that no text has, so that no
run crosses it.
"""

import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.books import DOCUMENT_END, Book, Part, parts_of
from gpt1.corpus.parallel import processes_for, workers

WORD = re.compile(f"[^ ]*[0-9A-Za-z{DOCUMENT_END}\x80-\U0010ffff][^ ]*")
BASE = 0xD1342543DE82EF95  # odd, so that no power of it is 0 modulo 2^64
RUNS_AT_ONCE = 50_000  # hashed together: bounds memory
OVERHANG_BYTES = 4096
QUICK = 8  # times as quick as what a further process is otherwise worth its start for

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Index:
    """The different runs of n words of some texts, numbered in the order in which they first come.

    runs: the words of each, and its number; said: the same in order; of_texts: for each text the
    numbers of its runs, ascending.
    """

    n: int
    runs: dict[str, int]
    said: list[str]
    of_texts: list[list[int]]


@dataclass(frozen=True)
class Searcher:
    """What each process needs: n, a number for each word of the runs, and the hashes of the runs in
    ascending order.
    """

    n: int
    words: dict[str, int]
    hashes: Hashes

    def numbers(self, words: Sequence[str]) -> Hashes:
        """The numbers of words, 0 of those that are in no run."""
        return np.fromiter(map(self.words.get, words, repeat(0)), np.uint64, len(words))


def words_of(text: str) -> list[str]:
    """The words of cleaned text, documents' ends among them."""
    return WORD.findall(text)


def hash_runs(windows: Hashes) -> Hashes:
    """The hash of each run, from the numbers of its words [runs, n]."""
    powers = np.cumprod(np.full(windows.shape[1], BASE, dtype=np.uint64), dtype=np.uint64)
    return np.asarray(windows @ powers, dtype=np.uint64)


def make_index(texts: Iterable[str], n: int) -> Index:
    """Index the runs of n words of cleaned texts."""
    runs: dict[str, int] = {}
    of_texts = []
    for text in texts:
        words = words_of(text)
        places = range(len(words) - n + 1)
        said = {" ".join(words[place : place + n]): None for place in places}
        of_texts.append(sorted(runs.setdefault(run, len(runs)) for run in said))
    return Index(n, runs, list(runs), of_texts)


def searcher(index: Index) -> Searcher:
    """What to search the corpus with."""
    found = Searcher(index.n, {}, np.zeros(0, dtype=np.uint64))
    hashes = [found.hashes]
    for start in range(0, len(index.said), RUNS_AT_ONCE):
        words = " ".join(index.said[start : start + RUNS_AT_ONCE]).split(" ")
        for word in words:
            found.words.setdefault(word, len(found.words) + 1)
        hashes.append(hash_runs(found.numbers(words).reshape(-1, index.n)))
    return replace(found, hashes=np.unique(np.concatenate(hashes)))


def search(index: Index, books: Iterable[Book]) -> dict[int, str]:
    """{run: the name of the first book or document that it stands in}, over a whole corpus."""
    tasks = [part for book in books for part in parts_of(book)[0]]
    sizes = [part.bytes_ for part in tasks]
    found: dict[int, str] = {}
    with workers(partial(copy, searcher(index)), processes_for(sum(sizes) // QUICK)) as pool:
        for likely in pool.map("searching books", find, tasks, sizes):
            for run, name in likely.items():
                if run in index.runs:  # equal hashes may be those of other words
                    found.setdefault(index.runs[run], name)
    return found


def find(wanted: Searcher, part: Part) -> dict[str, str]:
    """{run: its book or document} of every run that starts in a part of a cleaned book and has the
    hash of a wanted one.
    """
    words = words_from(part, wanted.n - 1)
    if len(words) < wanted.n or not len(wanted.hashes):
        return {}
    hashes = hash_runs(np.lib.stride_tricks.sliding_window_view(wanted.numbers(words), wanted.n))
    nearest = np.searchsorted(wanted.hashes, hashes).clip(max=len(wanted.hashes) - 1)
    likely: dict[str, str] = {}
    row, counted = part.row or 0, 0
    for place in np.flatnonzero(wanted.hashes[nearest] == hashes).tolist():
        row, counted = row + words[counted:place].count(DOCUMENT_END), place
        likely.setdefault(" ".join(words[place : place + wanted.n]), part.name_of(row))
    return likely


def words_from(part: Part, more: int) -> list[str]:
    """The words of a part, and so many more that follow in its file."""
    with part.book.path.open("rb") as file:
        file.seek(part.start)
        words, after, following = words_of(file.read(part.bytes_).decode()), b"", list[str]()
        while len(following) <= more and (block := file.read(OVERHANG_BYTES)):
            after += block
            following = words_of(after.decode(errors="ignore"))  # the last may be cut
    return words + following[:more]
