"""Held-out perplexity per token of a unigram and a trigram model over the very tokens of
data/shard, and of a 5-gram model by KenLM's programs where they are named.

    python benchmarks/ngrams.py [FOLDER] [--kenlm FOLDER/build/bin]

Unigram: (count + 1) / (tokens + vocabulary). Trigram: interpolated Kneser-Ney, one discount n1 /
(n1 + 2 n2) an order, the lowest order mixed with the uniform distribution. A split is read as one
stream (a book's first two tokens see the end of the book before); every token of the held-out split
but the first two is predicted.

5-gram: modified Kneser-Ney, as `lmplz -o 5` estimates it (Heafield et al. 2013), of the same stream;
every token is predicted. KenLM is built from its source: cmake, make lmplz query.
"""

import argparse
import json
import math
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from gpt1.corpus.shards import Shards

Array = NDArray[np.int64]


class Counts:
    """How often each key occurs; keys unseen count 0."""

    def __init__(self, keys: Array) -> None:
        self.keys, self.counts = np.unique(keys, return_counts=True)

    def of(self, keys: Array) -> Array:
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)

    def discount(self) -> float:
        ones, twos = int((self.counts == 1).sum()), int((self.counts == 2).sum())
        return ones / (ones + 2 * twos) if ones else 0.5


def unigram(train: Array, heldout: Array, vocabulary_size: int) -> NDArray[np.float64]:
    """Probability of each held-out token."""
    counts = np.bincount(train, minlength=vocabulary_size)
    return (counts[heldout] + 1) / (len(train) + vocabulary_size)


def trigram(train: Array, heldout: Array, vocabulary_size: int) -> NDArray[np.float64]:
    """Probability of each held-out token from the third on, given the two before it."""
    size = vocabulary_size

    def discounted(
        events: Counts,
        contexts: Array,
        asked: Array,
        asked_contexts: Array,
        lower: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """max(c - D, 0) / total + D * kinds / total * lower; `contexts` of each kind of event,
        weighted by its count.
        """
        seen, place = np.unique(contexts, return_inverse=True)
        totals, kinds = np.bincount(place, weights=events.counts), np.bincount(place)
        where = np.minimum(np.searchsorted(seen, asked_contexts), len(seen) - 1)
        known = seen[where] == asked_contexts
        total, kind = np.where(known, totals[where], 1), np.where(known, kinds[where], 1)
        discount = events.discount()
        found = np.maximum(events.of(asked) - discount, 0) / total
        return np.where(known, found + discount * kind / total * lower, lower)

    first, second, third = heldout[:-2], heldout[1:-1], heldout[2:]
    triples = Counts((train[:-2] * size + train[1:-1]) * size + train[2:])
    pairs = Counts(triples.keys % size**2)  # distinct words before each pair
    singles = Counts(pairs.keys % size)  # distinct words before each word
    nothing = np.zeros_like(third)
    one = discounted(
        singles, np.zeros_like(singles.keys), third, nothing, np.full(len(third), 1 / size)
    )
    two = discounted(pairs, pairs.keys // size, second * size + third, second, one)
    return discounted(
        triples,
        triples.keys // size,
        (first * size + second) * size + third,
        first * size + second,
        two,
    )


def five_gram(train: Array, heldout: Array, programs: Path) -> NDArray[np.float64]:
    """Probability of each held-out token by KenLM, for which a token's number is a word and a split
    one line.
    """

    def line(tokens: Array) -> bytes:
        return " ".join(map(str, tokens.tolist())).encode() + b"\n"

    with TemporaryDirectory() as folder:
        model = Path(folder) / "model.arpa"
        estimate = [programs / "lmplz", "-o", "5", "-S", "2G", "-T", folder, "--arpa", model]
        subprocess.run(estimate, input=line(train), check=True, stderr=subprocess.DEVNULL)
        ask = [programs / "query", "-v", "word", model]
        asked = subprocess.run(ask, input=line(heldout), check=True, capture_output=True)
    told = asked.stdout.split(b"\t")[: len(heldout)]  # "word=id length log10", then the line's end
    return 10.0 ** np.array([float(one.split()[-1]) for one in told])


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path, nargs="?", default=Path("data/shard"))
    options.add_argument("--kenlm", type=Path, help="the folder of lmplz and query")
    chosen = options.parse_args()
    shards = Shards.open(chosen.folder)
    size = int(shards.index["vocabulary_size"])
    train, heldout = (
        np.fromfile(shards.folder / f"{split}.bin", shards.index["dtype"]).astype(np.int64)
        for split in ("train", "heldout")
    )
    per_word = shards.words_per_token("heldout")
    result: dict[str, float] = {
        "train_tokens": len(train),
        "heldout_tokens": len(heldout),
        "vocabulary_size": size,
    }
    models = {
        "unigram": unigram(train, heldout[2:], size),
        "trigram": trigram(train, heldout, size),
    }
    if chosen.kenlm:
        models["five_gram"] = five_gram(train, heldout, chosen.kenlm)
    for name, probability in models.items():
        loss = -float(np.log(probability).mean())
        result |= {
            f"{name}_perplexity": round(math.exp(loss), 2),
            f"{name}_word_perplexity": round(math.exp(loss / per_word), 1),
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
