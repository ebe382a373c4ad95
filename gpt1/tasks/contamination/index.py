"""The runs of n words of some texts, to be found again in a corpus of any size: memory is that of
the texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.books import DOCUMENT_END, DocumentsPart, document_name
from gpt1.corpus.shards import Part
from gpt1.tasks.contamination.ngrams import Hashes, Places, Words, run_hashes, stretches, words_of

GROUP_CHARACTERS = 500_000  # of text hashed together: bounds memory beside the index itself
SPARSENESS = 16  # places of the filter for each run: so few runs of the corpus pass it by chance


class Found(NamedTuple):
    """A run of the texts that stands in the corpus: its number, and the book or document."""

    run: int
    book: str


@dataclass(frozen=True)
class Index:
    """The different runs of n words of the texts, in order of their hashes.

    words: of all texts, a document's end after each (hashes left out); hashes, firsts: of each
    different run, and its first word; run_of: for each word, the run that starts there, -1 where
    none does; edges: for each text, where its words begin and end.
    """

    n: int
    words: Words
    hashes: Hashes
    firsts: Places
    run_of: NDArray[np.int32]
    edges: Places
    filter_: NDArray[np.bool_]
    shift: int

    def runs_of_text(self, text: int) -> NDArray[np.int32]:
        """The different runs of a text by their numbers."""
        begin, end = self.edges[text]
        runs = np.unique(self.run_of[begin:end])
        return runs[runs >= 0]

    def said(self, run: int) -> str:
        """A run as its words."""
        return self.words.run(int(self.firsts[run]), self.n).decode("utf-8")

    def find(self, part: Part | DocumentsPart, name: str) -> list[Found]:
        """The runs that stand in a part of a cleaned book of that name, or of documents, each once,
        in order.
        """
        found: dict[int, str] = {}
        plain, row = (part, 0) if isinstance(part, Part) else (part.part, part.first)
        end = DOCUMENT_END.encode()
        counted = plain.start
        for begins, words in stretches(plain, self.n):
            data = words.data
            hits = self._hits(run_hashes(words, self.n), set(found), words)
            seen = counted - begins  # documents that ended before this byte are counted already
            for place, run in hits:
                start = int(words.starts[place])
                row, seen = (
                    row + (data.count(end, seen, start) if start > seen else 0),
                    max(seen, start),
                )
                found[run] = name if isinstance(part, Part) else document_name(name, row)
            row, counted = row + data.count(end, seen), begins + len(data)
        return [Found(run, book) for run, book in found.items()]

    def _hits(self, hashes: Hashes, known: set[int], words: Words) -> list[tuple[int, int]]:
        """(place, run) of each run that is in the words and not known, in order of places: equal
        hashes, and equal words too.
        """
        likely = np.flatnonzero(self.filter_[hashes >> np.uint64(self.shift)])
        first = np.searchsorted(self.hashes, hashes[likely])
        equal = first < len(self.hashes)
        equal[equal] = self.hashes[first[equal]] == hashes[likely[equal]]
        hits = []
        for place, run in zip(likely[equal].tolist(), first[equal].tolist(), strict=True):
            while (
                run < len(self.hashes) and self.hashes[run] == hashes[place]
            ):  # different runs may share a hash
                if run not in known and words.run(place, self.n) == self.words.run(
                    int(self.firsts[run]), self.n
                ):
                    known.add(run)
                    hits.append((place, run))
                run += 1
        return hits


def make_index(texts: Sequence[str], n: int) -> Index:
    """Index the runs of n words of cleaned texts."""
    starts, stops, hashes, runs = [], [], [], []  # a list of arrays each: of some texts at a time
    edges = np.zeros((len(texts), 2), dtype=np.int64)
    text = words_before = bytes_before = 0
    blocks = []
    for group in _groups(texts):
        words = words_of(group)
        ends = np.flatnonzero(
            np.frombuffer(group, dtype=np.uint8)[words.starts] == ord(DOCUMENT_END)
        )
        first = np.concatenate(([0], ends[:-1] + 1))
        edges[text : text + len(ends)] = words_before + np.stack([first, ends], axis=1)
        found = run_hashes(words, n)
        left = np.repeat(ends - first, ends - first + 1) - (
            np.arange(len(words.starts)) - np.repeat(first, ends - first + 1)
        )
        whole = np.flatnonzero(
            left[: len(found)] >= n
        )  # so many words are left of the text: the run ends in it
        hashes.append(found[whole])
        runs.append(whole + words_before)
        starts.append(words.starts + bytes_before)
        stops.append(words.stops + bytes_before)
        blocks.append(group)
        text, words_before, bytes_before = (
            text + len(ends),
            words_before + len(words.starts),
            bytes_before + len(group),
        )
    none = np.zeros(0, dtype=np.int64)
    words = Words(
        b"".join(blocks),
        np.concatenate([none, *starts]),
        np.concatenate([none, *stops]),
        np.zeros(0, dtype=np.uint64),
    )
    hash_of, place_of = (
        np.concatenate([np.zeros(0, dtype=np.uint64), *hashes]),
        np.concatenate([none, *runs]),
    )
    order = np.argsort(hash_of, kind="stable")
    hash_of, place_of = hash_of[order], place_of[order]
    new = _told_apart(words, hash_of, place_of, n)
    run_of = np.full(words_before, -1, dtype=np.int32)
    run_of[place_of] = np.cumsum(new) - 1
    bits = min(27, max(10, (SPARSENESS * int(new.sum())).bit_length()))
    filter_ = np.zeros(2**bits, dtype=bool)
    filter_[hash_of >> np.uint64(64 - bits)] = True
    return Index(n, words, hash_of[new], place_of[new], run_of, edges, filter_, 64 - bits)


def _groups(texts: Sequence[str]) -> Iterator[bytes]:
    """Texts joined, a document's end after each, some at a time."""
    group: list[str] = []
    characters = 0
    for number, text in enumerate(texts, start=1):
        group += [text, DOCUMENT_END] if text else [DOCUMENT_END]
        characters += len(text)
        if characters > GROUP_CHARACTERS or number == len(texts):
            yield (" ".join(group) + " ").encode()
            group, characters = [], 0


def _told_apart(words: Words, hashes: Hashes, places: Places, n: int) -> NDArray[np.bool_]:
    """Where, in order of the hashes, a run differs from the one before; runs of one hash that
    differ are put in order first.
    """
    new = np.ones(len(hashes), dtype=bool)
    new[1:] = hashes[1:] != hashes[:-1]
    begins = np.flatnonzero(new)
    lengths = np.diff(np.append(begins, len(hashes)))
    for begin, length in zip(
        begins[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True
    ):
        said = [words.run(place, n) for place in places[begin : begin + length].tolist()]
        if len(set(said)) > 1:
            order = sorted(range(length), key=said.__getitem__)
            places[begin : begin + length] = places[begin : begin + length][order]
            new[begin + 1 : begin + length] = [
                said[left] != said[right] for left, right in pairwise(order)
            ]
    return new
