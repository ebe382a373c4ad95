"""The runs of n words that texts and a cleaned corpus of any size share. Memory is some tens of
bytes for each word of the texts.

A word is what stands between blanks in cleaned text (lower case) and holds a letter or a digit;
punctuation and line breaks are none. A document's end counts as a word that no text has, so that no
run crosses it.

Every different word of the texts has a number, so has every different pair of words, every pair of
such pairs, and so on up to n words: the two halves of a run may overlap. What has no number is -1.
So a run of the corpus is looked up in some log2(n) steps, and its number says exactly its words.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.books import DOCUMENT_END, BookPart, CleanedBook, parts_of
from gpt1.corpus.parallel import kept_tasks, mapped

WORD = re.compile(f"[^ ]*[0-9A-Za-z{DOCUMENT_END}\x80-\U0010ffff][^ ]*")
OVERHANG_BYTES = 4096
QUICK = 8  # times as quick as what a further process is otherwise worth its start for

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """The runs of n words to look for, all that each process needs. words: the number of each word;
    halves: for each step from single words to n the pairs of numbers that a text has, ascending.
    """

    n: int
    words: dict[str, int]
    halves: list[Numbers]

    def numbers(self, words: list[str]) -> Numbers:
        """The number of the run that begins at each word, in no order; -1 where no text has it."""
        runs = np.fromiter(map(self.words.get, words, repeat(-1)), np.int64, len(words))
        for step, halves in zip(steps(self.n), self.halves, strict=True):
            runs = joined(runs, step, halves)
        return runs


@dataclass(frozen=True)
class Index:
    """The different runs of n words of some texts, numbered in the order in which they first come.

    runs: to look for; order: the number here of each number there; said: the words of all texts;
    first: where each run first begins in them; of_texts: for each text its runs, ascending.
    """

    runs: Runs
    order: Numbers
    said: list[str]
    first: Numbers
    of_texts: list[list[int]]

    def words(self, run: int) -> str:
        """The words of a run."""
        return " ".join(self.said[self.first[run] : self.first[run] + self.runs.n])


def words_of(text: str) -> list[str]:
    """The words of cleaned text, documents' ends among them."""
    return WORD.findall(text)


def steps(n: int) -> Iterator[int]:
    """How many words after the first half of a run its second begins, for ever longer runs up to
    n.
    """
    length = 1
    while length < n:
        yield min(length, n - length)
        length += min(length, n - length)


def pairs(runs: Numbers, step: int) -> Numbers:
    """The numbers of the runs at each word and `step` words later as one; -1 where one has none."""
    first, second = runs[:-step], runs[step:]
    return np.where((first < 0) | (second < 0), -1, first << 32 | second)


def joined(runs: Numbers, step: int, halves: Numbers) -> Numbers:
    """The numbers of the longer runs that are made of these, by their place in `halves`."""
    wanted = pairs(runs, step)
    there = np.flatnonzero(wanted >= 0)
    places = np.searchsorted(halves, wanted[there]).clip(max=len(halves) - 1)
    longer = np.full(len(wanted), -1, dtype=np.int64)
    longer[there] = np.where(halves[places] == wanted[there], places, -1)
    return longer


def make_index(texts: Iterable[str], n: int) -> Index:
    """Index the runs of n words of cleaned texts."""
    numbers: dict[str, int] = {}
    said: list[str] = []
    words, edges = array("q"), [0]
    for text in texts:
        said += (own := [*words_of(text), DOCUMENT_END])
        words.extend([numbers.setdefault(word, len(numbers)) for word in own[:-1]])
        words.append(-1)  # no run crosses it
        edges.append(len(words))
    runs = np.frombuffer(words, dtype=np.int64)
    halves = []
    for step in steps(n):
        wanted = pairs(runs, step)
        known, places = np.unique(np.append(wanted, -1), return_inverse=True)
        halves.append(known)
        runs = np.where(wanted < 0, -1, places[:-1])
    begins = np.flatnonzero(runs >= 0)
    different, first = np.unique(runs[begins], return_index=True)
    order = np.full(different.max(initial=-1) + 1, -1, dtype=np.int64)
    order[different] = np.argsort(np.argsort(first))
    runs = np.where(runs < 0, -1, np.append(order, -1)[runs])
    return Index(
        Runs(n, numbers, halves),
        order,
        said,
        np.sort(begins[first]),
        [sorted({*runs[start:stop].tolist()} - {-1}) for start, stop in pairwise(edges)],
    )


def search(index: Index, books: Sequence[CleanedBook]) -> dict[int, str]:
    """{run: the name of the first book or document that it stands in}, over a whole corpus."""
    tasks = [part for book in books for part in parts_of(book)[0]]
    sizes = [part.bytes_ for part in tasks]
    runs = index.runs
    wanted = hashlib.sha256("\n".join([str(runs.n), *runs.words]).encode("utf-8", "surrogatepass"))
    for half in runs.halves:
        wanted.update(half.tobytes())
    found: dict[int, str] = {}
    with kept_tasks("contamination", [book.path for book in books], wanted.hexdigest()) as kept:
        for there in mapped(
            "searching books", partial(copy, runs), find, tasks, sizes, kept, QUICK
        ):
            for number, name in there:
                found.setdefault(int(index.order[number]), name)
    return found


def find(wanted: Runs, part: BookPart) -> list[tuple[int, str]]:
    """Every wanted run that starts in a part of a cleaned book: its number, and the book or
    document.
    """
    words = words_from(part, wanted.n - 1)
    runs = wanted.numbers(words)
    found: dict[int, str] = {}
    row, counted = part.row or 0, 0
    for place in np.flatnonzero(runs >= 0).tolist():
        row, counted = row + words[counted:place].count(DOCUMENT_END), place
        found.setdefault(int(runs[place]), part.name_of(row))
    return list(found.items())


def words_from(part: BookPart, more: int) -> list[str]:
    """The words of a part, and so many more that follow in its file."""
    with part.book.path.open("rb") as file:
        file.seek(part.start)
        words, after, following = words_of(file.read(part.bytes_).decode()), b"", list[str]()
        while len(following) <= more and (block := file.read(OVERHANG_BYTES)):
            after += block
            following = words_of(after.decode(errors="ignore"))  # the last may be cut
    return words + following[:more]
