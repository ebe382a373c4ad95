"""Hashes of all runs of n words of a cleaned text, by numpy: equal runs have equal hashes, and
equal hashes are looked at word by word.

A word is what stands between blanks in cleaned text (lower case) and holds a letter or a digit;
punctuation and line breaks are none. A document's end counts as a word that no text has, so that no
run crosses it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.books import DOCUMENT_END
from gpt1.corpus.shards import Part

BLOCK_BYTES = 1 << 19
OVERHANG_BYTES = 4096
BLANK = ord(" ")
WORD_BASE, RUN_BASE = (
    0x9E3779B97F4A7C15,
    0xD1342543DE82EF95,
)  # odd, so that each has an inverse modulo 2^64
MIXER = np.uint64(0xFF51AFD7ED558CCD)
COUNTS = np.array(
    [chr(byte).isalnum() or byte >= 0x80 or chr(byte) == DOCUMENT_END for byte in range(256)]
)

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Words:
    """The words of some bytes: where each starts and stops, and its hash."""

    data: bytes
    starts: Places
    stops: Places
    hashes: Hashes

    def run(self, first: int, n: int) -> bytes:
        """n words from `first` on, joined by blanks."""
        places = range(first, first + n)
        return b" ".join([self.data[self.starts[place] : self.stops[place]] for place in places])


@lru_cache(maxsize=8)
def _powers(base: int, count: int) -> tuple[Hashes, Hashes]:
    """base^i and base^-i modulo 2^64 for i below count."""
    ups, downs = (np.full(count, one, dtype=np.uint64) for one in (base, pow(base, -1, 2**64)))
    ups[0] = downs[0] = 1
    return np.cumprod(ups, dtype=np.uint64), np.cumprod(downs, dtype=np.uint64)


def _enough(base: int, count: int) -> tuple[Hashes, Hashes]:
    """The same, kept for as many as a power of two."""
    ups, downs = _powers(base, max(2 * BLOCK_BYTES, 1 << max(0, count - 1).bit_length()))
    return ups[:count], downs[:count]


def _mixed(hashes: Hashes) -> Hashes:
    """Bits spread: the low ones of a sum of odd multiples say little."""
    hashes = (hashes ^ (hashes >> np.uint64(32))) * MIXER
    return hashes ^ (hashes >> np.uint64(29))


def _sums(values: Hashes) -> Hashes:
    """Sums of the first 0, 1, 2, … values, modulo 2^64."""
    sums = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=sums[1:])
    return sums


def words_of(data: bytes) -> Words:
    """The words of cleaned text: UTF-8, words joined by blanks."""
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    blanks = np.flatnonzero(bytes_ == BLANK)
    starts = np.concatenate(([0], blanks + 1))
    stops = np.concatenate((blanks, [len(data)]))
    counting = np.zeros(len(data) + 1, dtype=np.int32)
    np.cumsum(COUNTS[bytes_], out=counting[1:])
    kept = counting[stops] > counting[starts]
    starts, stops = starts[kept], stops[kept]
    ups, downs = _enough(WORD_BASE, len(data))
    sums = _sums((bytes_ + np.uint64(1)) * ups)
    return Words(
        data,
        starts,
        stops,
        _mixed((sums[stops] - sums[starts]) * downs[starts])
        if len(starts)
        else np.zeros(0, np.uint64),
    )


def run_hashes(words: Words, n: int) -> Hashes:
    """The hash of each run of n words, by its first."""
    count = len(words.hashes) - n + 1
    if count <= 0:
        return np.zeros(0, dtype=np.uint64)
    ups, downs = _enough(RUN_BASE, len(words.hashes))
    sums = _sums(words.hashes * ups)
    return _mixed((sums[n:] - sums[:-n]) * downs[:count])


def stretches(part: Part, n: int) -> Iterator[tuple[int, Words]]:
    """The words of a part of a cleaned file in stretches which together hold every run of n words
    that starts in the part, each once.

    Each comes with the place in the file where it begins.
    """
    with part.path.open("rb") as file:
        place, carried = part.start, b""
        while place < part.stop:
            file.seek(place)
            block = file.read(min(BLOCK_BYTES, part.stop - place))  # longer than any cleaned word
            if place + len(block) < part.stop and (cut := block.rfind(b" ") + 1):
                block = block[:cut]
            begins, data = place - len(carried), carried + block
            place += len(block)
            if place >= part.stop:
                yield begins, words_of(data + _following(file.read, n - 1))
                return
            words = words_of(data)
            yield begins, words
            carried = (
                data
                if len(words.starts) < n - 1
                else data[words.starts[-(n - 1)] :]
                if n > 1
                else b""
            )


def _following(read: Callable[[int], bytes], count: int) -> bytes:
    """The next `count` words of a file; fewer at its end."""
    data = b""
    while count:
        more = read(OVERHANG_BYTES)
        data += more
        words = words_of(data)
        if not more or len(words.starts) > count:
            return data[: words.stops[count - 1]] if len(words.starts) > count else data
    return data
