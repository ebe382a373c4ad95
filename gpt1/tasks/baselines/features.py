"""What a linear model sees of a text, a pair of texts, or a context and each of its choices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

Parts = Sequence[Sequence[str]]  # texts as words joined by blanks: those of each part in order
LONGEST_RUN = 2  # words that TF-IDF counts together


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
