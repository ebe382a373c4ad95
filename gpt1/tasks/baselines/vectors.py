"""Word vectors of a corpus: positive pointwise mutual information of the words near one another,
and its truncated singular value decomposition (Levy and Goldberg 2014; Levy et al. 2015).
"""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils.extmath import randomized_svd

from gpt1.base.errors import UserError
from gpt1.corpus.books import BookPart, CleanedBook, HoldOut, parts_of, units_of
from gpt1.corpus.parallel import kept_tasks, mapped
from gpt1.tasks.contamination.index import words_of

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Csr = tuple[npt.NDArray[np.int64], Integers, Integers]  # data, indices, indptr
NO_WORD = -1
SEED = 0  # of the decomposition's random projection
QUICK = 4  # times as quick as what a further process is otherwise worth its start for


class Reader(NamedTuple):
    """What each process needs: which books are held out, and numbers of the words that count."""

    hold_out: HoldOut
    numbers: dict[str, int]

    def texts(self, part: BookPart) -> list[list[str]]:
        """The words, without punctuation, of each book or document in a part that is not held
        out.
        """
        return [
            words_of(" ".join(words))
            for row, words, _ in units_of(part)
            if not self.hold_out.holds(part.name_of(row))
        ]


def count_words(reader: Reader, part: BookPart) -> Counter[str]:
    """How often each word stands in a part."""
    return Counter(chain.from_iterable(reader.texts(part)))


def count_pairs(windows: Sequence[int], reader: Reader, part: BookPart) -> list[Csr]:
    """For each window (ascending) how often word i stands at most so many words before word j in a
    part: a sparse matrix [words, words].
    """
    gap = [NO_WORD] * windows[-1]
    said = chain.from_iterable(
        chain(map(reader.numbers.get, words, repeat(NO_WORD)), gap) for words in reader.texts(part)
    )
    numbers = np.fromiter(said, np.int64)
    counts, found = csr_matrix((len(reader.numbers),) * 2, dtype=np.int64), []
    for nearer, window in zip((0, *windows), windows, strict=False):
        for distance in range(nearer + 1, window + 1):
            counts = counts + at_distance(numbers, distance, len(reader.numbers))
        found.append((counts.data, counts.indices, counts.indptr))
    return found


def at_distance(numbers: Integers, distance: int, words: int) -> csr_matrix:
    """How often word i stands `distance` places before word j: [words, words]."""
    before, after = numbers[:-distance], numbers[distance:]
    kept = (before != NO_WORD) & (after != NO_WORD)
    ones = np.ones(np.count_nonzero(kept), dtype=np.int64)
    return coo_matrix((ones, (before[kept], after[kept])), shape=(words, words)).tocsr()


def most_frequent(counts: Counter[str], most: int) -> list[str]:
    """The `most` most frequent words, equally frequent ones by the alphabet."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def ppmi(counts: csr_matrix) -> csr_matrix:
    """Positive pointwise mutual information [words, words] of counts of pairs: log(p(i, j) / (p(i)
    p(j))), 0 where that is negative.
    """
    row, column = (np.asarray(counts.sum(axis=axis), dtype=np.float64).ravel() for axis in (1, 0))
    pairs = counts.tocoo()
    ratios = pairs.data * row.sum() / (row[pairs.row] * column[pairs.col])
    kept = ratios > 1
    places = pairs.row[kept], pairs.col[kept]
    return csr_matrix((np.log(ratios[kept]), places), shape=counts.shape)


def decompose(matrix: csr_matrix, dimensions: int) -> Floats:
    """Vectors [words, at most dimensions], the weightiest dimension first: left singular vectors
    times the roots of their singular values.
    """
    left, values, _ = randomized_svd(matrix, min(dimensions, *matrix.shape), random_state=SEED)
    return np.asarray(left * np.sqrt(values), dtype=np.float32)


def learn_vectors(
    books: Sequence[CleanedBook],
    hold_out: HoldOut,
    most: int,
    windows: Sequence[int],
    dimensions: int,
) -> tuple[list[str], dict[int, Floats]]:
    """The `most` most frequent words of all books but the held-out ones, and for each window their
    vectors: the same for any number of processes. Raises UserError where there is no word.
    """
    parts = [part for book in books for part in parts_of(book)[0]]
    sizes, windows = [part.bytes_ for part in parts], sorted(windows)
    paths = [book.path for book in books]
    with kept_tasks("word_vectors", paths, hold_out.seed, hold_out.fraction, most, windows) as kept:
        counts = Counter[str]()
        prepare = partial(copy, Reader(hold_out, {}))
        for found in mapped("counting words", prepare, count_words, parts, sizes, kept, QUICK):
            counts.update(found)
        words = most_frequent(counts, most)
        if not words:
            raise UserError(
                "expected words in the cleaned books that are not held out, found none; bring books"
                " with text, or lower shard.heldout_fraction"
            )
        reader = Reader(hold_out, {word: number for number, word in enumerate(words)})
        shape = (len(words),) * 2
        pairs = [csr_matrix(shape, dtype=np.int64) for _ in windows]
        prepare, work = partial(copy, reader), partial(count_pairs, windows)
        for found in mapped("counting pairs of words", prepare, work, parts, sizes, kept, QUICK):
            more = (csr_matrix(tuple(one), shape) for one in found)
            pairs = [sum_ + one for sum_, one in zip(pairs, more, strict=True)]
    return words, {
        window: decompose(ppmi(before + before.T), dimensions)
        for window, before in zip(windows, pairs, strict=True)
    }
