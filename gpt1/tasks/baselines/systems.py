"""The systems: a constant answer, and TF-IDF; logits of each for a task's splits, tuned on dev."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from gpt1.tasks.baselines.inputs import DecodedRows
from gpt1.tasks.baselines.linear import Candidate, constant, fit, logits_of

TRAIN = "train"
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
    return vectorizer.fit([text for texts in parts for text in texts])


def tfidf_features(vectorizer: Any, parts: Parts) -> csr_matrix:
    """Weights [n, features] of one text; of a pair both, their product, absolute difference and
    cosine.
    """
    first, *more = (vectorizer.transform(texts) for texts in parts)
    if not more:
        return first
    second = spread(more[0], first)
    first = spread(first, second)
    product = first.multiply(second)
    return hstack([first, second, product, abs(first - second), product.sum(axis=1)], format="csr")


def spread(rows: Any, others: Any) -> Any:
    """Rows [n], each said again for every choice, where `others` are k times as many."""
    return rows[np.repeat(np.arange(rows.shape[0]), max(1, others.shape[0] // rows.shape[0]))]


class SettingsGrid(NamedTuple):
    """The settings that are tried: penalties of the weights; the number of words of TF-IDF."""

    penalties: Sequence[float]
    most: int


def candidates(
    system: str, about: Mapping[str, Any], splits: Mapping[str, DecodedRows], grid: SettingsGrid
) -> Iterator[Candidate]:
    """Every candidate of a system, the most penalised first. splits: train and all to answer."""
    train, others = splits[TRAIN], {name: rows for name, rows in splits.items() if name != TRAIN}
    if system == "majority":
        answers = {name: constant(about, train, len(rows.labels)) for name, rows in others.items()}
        yield Candidate({}, answers)
        return
    vectorizer = tfidf(train.parts, grid.most)
    features = {name: tfidf_features(vectorizer, rows.parts) for name, rows in splits.items()}
    for penalty in sorted(grid.penalties, reverse=True):
        model = fit(about, train, features[TRAIN], penalty)
        answers = {name: logits_of(about, model, features[name]) for name in others}
        yield Candidate({"penalty": penalty}, answers)
