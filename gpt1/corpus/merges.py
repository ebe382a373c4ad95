"""Byte pairs from counts of words (Sennrich et al. 2016, algorithm 1): the merges that Hugging
Face's trainer finds where every word is said as often as it counts, ties included, in time that
does not grow with the counts.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import count, pairwise

from tqdm import tqdm

from gpt1.corpus.bpe import WORD_END

LEAST_PAIRS = 2  # a pair seen once is not merged (Sennrich et al.'s own default)

Pair = tuple[int, int]


class Words:
    """Different words as the numbers of their pieces, and how often each pair of pieces stands in
    them, each word counted so many times.
    """

    def __init__(self, words: Iterable[tuple[str, int]], numbers: dict[str, int]) -> None:
        self.pieces: list[list[int]] = []
        self.counts: list[int] = []
        self.pairs: dict[Pair, int] = {}
        self.places: dict[Pair, set[int]] = {}  # the words in which a pair newly stands
        for number, (word, times) in enumerate(words):
            pieces = [numbers[one] for one in (*word[:-1], word[-1] + WORD_END)]
            self.pieces.append(pieces)
            self.counts.append(times)
            for pair in pairwise(pieces):
                self._add(pair, number)

    def _add(self, pair: Pair, number: int) -> None:
        self.pairs[pair] = self.pairs.get(pair, 0) + self.counts[number]
        self.places.setdefault(pair, set()).add(number)

    def merge(self, pair: Pair, new: int, number: int) -> None:
        """Put the piece `new` for the pair wherever it stands in a word."""
        (left, right), pieces, place = pair, self.pieces[number], 0
        while left in pieces[place:-1]:
            place = pieces.index(left, place) + 1
            if pieces[place] != right:
                continue
            pieces[place - 1 : place + 1] = [new]
            if place > 1:
                self.pairs[pieces[place - 2], left] -= self.counts[number]
                self._add((pieces[place - 2], new), number)
            if place < len(pieces):
                self.pairs[right, pieces[place]] -= self.counts[number]
                self._add((new, pieces[place]), number)


def find_merges(
    words: Iterable[tuple[str, int]], alphabet: Sequence[str], merges: int, show_progress: bool
) -> list[tuple[str, str]]:
    """At most so many merges of pieces in order, each with a result of its own, of different words
    over an alphabet and their counts; fewer where no further pair stands LEAST_PAIRS times.

    Of pairs that stand equally often the one whose pieces were there first is merged: characters
    that end a word by the alphabet's order, then the others by their code points, then merges.
    """
    pieces = [*(character + WORD_END for character in alphabet), *sorted(alphabet)]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    known, most = Words(words, numbers), len(pieces) + merges
    queue: list[tuple[int, Pair, int, set[int]]] = []
    order = count()
    found: dict[Pair, None] = {}

    def put() -> None:
        for pair, places in known.places.items():
            if known.pairs[pair] > 0:
                heapq.heappush(queue, (-known.pairs[pair], pair, next(order), places))
        known.places = {}

    with tqdm(total=merges, desc="merging", leave=False, disable=not show_progress) as bar:
        put()
        while queue and len(pieces) < most:
            often, pair, entry, places = heapq.heappop(queue)
            if -often != known.pairs[pair]:  # it has become rarer since it was put there
                heapq.heappush(queue, (-known.pairs[pair], pair, entry, places))
                continue
            if -often < LEAST_PAIRS:
                break
            piece = pieces[pair[0]] + pieces[pair[1]]
            if piece not in numbers:
                numbers[piece] = len(pieces)
                pieces.append(piece)
                bar.update()
            found.pop(pair, None)  # of a pair that is merged twice the last time decides its rank
            found[pair] = None
            for number in places:
                known.merge(pair, numbers[piece], number)
            put()
    results: set[str] = set()
    kept = []
    for left, right in found:
        piece = pieces[left] + pieces[right]
        if piece not in results:  # else a second way to it: the layout gives a piece one id
            results.add(piece)
            kept.append((pieces[left], pieces[right]))
    return kept
