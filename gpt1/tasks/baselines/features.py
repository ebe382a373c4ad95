"""What a linear model sees of a text, a pair of texts, or a context and each of its choices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, hstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

Floats = npt.NDArray[np.float32]
Parts = Sequence[Sequence[str]]  # texts as words joined by blanks: those of each part in order
LONGEST_RUN = 2  # words that TF-IDF counts together


def bag_of_words(words: Sequence[str]) -> Any:
    """What counts these words in texts: [texts, words]."""
    return CountVectorizer(vocabulary=words, lowercase=False, token_pattern=r"[^ ]+")


def tfidf(parts: Parts, most: int) -> Any:
    """TF-IDF fitted on texts, of their `most` most frequent words and pairs of neighbouring
    words.
    """
    vectorizer = TfidfVectorizer(
        lowercase=False,
        token_pattern=r"[^ ]+",
        ngram_range=(1, LONGEST_RUN),
        max_features=most,
        sublinear_tf=True,
        dtype=np.float32,
    )
    return vectorizer.fit([text for part in parts for text in part])


def tfidf_features(vectorizer: Any, parts: Parts) -> csr_matrix:
    """Weights [n, features] of one text; of a pair both, their product, absolute difference and
    cosine.
    """
    first, *more = (vectorizer.transform(part) for part in parts)
    if not more:
        return first
    second = spread(more[0], first)
    first = spread(first, second)
    product = first.multiply(second)
    return hstack([first, second, product, abs(first - second), product.sum(axis=1)], format="csr")


def spread(rows: Any, others: Any) -> Any:
    """Rows [n], each said again for every choice, where `others` are k times as many."""
    return rows[np.repeat(np.arange(rows.shape[0]), max(1, others.shape[0] // rows.shape[0]))]


def mean_vectors(counts: csr_matrix, vectors: Floats) -> Floats:
    """The mean vector [n, dimensions] of each text's known words; 0 where it has none."""
    known = np.maximum(np.asarray(counts.sum(axis=1), dtype=np.float32).ravel(), 1)
    return np.asarray(diags(1 / known) @ (counts @ vectors), dtype=np.float32)


def compare(first: Floats, second: Floats) -> Floats:
    """Product, absolute difference and cosine [n, 2 dimensions + 1] of two vectors a row."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = first * second
    cosines = products.sum(axis=1) / np.where(lengths > 0, lengths, 1)
    return np.hstack([products, np.abs(first - second), cosines[:, None]])


def vector_features(bag: Any, vectors: Floats, parts: Parts) -> Floats:
    """The mean vector [n, dimensions] of one text; of a pair the comparison of both means, and that
    of the means of the words that one text has and the other has not [n, 4 dimensions + 2].
    """
    first, *more = (bag.transform(part) for part in parts)
    if not more:
        return mean_vectors(first, vectors)
    second = spread(more[0], first)
    first = spread(first, second)
    own = first - first.multiply(second > 0), second - second.multiply(first > 0)
    both = compare(mean_vectors(first, vectors), mean_vectors(second, vectors))
    return np.hstack([both, compare(*(mean_vectors(one.tocsr(), vectors) for one in own))])
