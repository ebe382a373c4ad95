"""The systems: a constant answer, TF-IDF, and word vectors of the books that the networks are
pre-trained on; logits of each for a task's splits, tuned on dev.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpt1.base.files import read_arrays
from gpt1.tasks.baselines.features import bag_of_words, tfidf, tfidf_features, vector_features
from gpt1.tasks.baselines.inputs import Rows
from gpt1.tasks.baselines.linear import Candidate, constant, fit, logits_of
from gpt1.tasks.baselines.vectors import Floats

TRAIN = "train"


class SettingsGrid(NamedTuple):
    """What is tried: penalties of the weights; for TF-IDF its most words; for word vectors the
    words, their vectors by window, and how many of the dimensions.
    """

    penalties: Sequence[float]
    most: int
    words: Sequence[str]
    vectors: Mapping[int, Floats]
    dimensions: Sequence[int]


def read_vectors(folder: Path, windows: Sequence[int]) -> tuple[list[str], dict[int, Floats]]:
    """The words, and their vectors by window, that stage word_vectors wrote into `folder`."""
    arrays = read_arrays(folder / "vectors.npz", list(map(str, windows)))
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return words, {window: arrays[str(window)] for window in windows}


def candidates(
    system: str, about: Mapping[str, Any], splits: Mapping[str, Rows], grid: SettingsGrid
) -> Iterator[Candidate]:
    """Every candidate of a system, the most penalised first. splits: train and all to answer."""
    train, others = splits[TRAIN], {name: rows for name, rows in splits.items() if name != TRAIN}
    if system == "majority":
        answers = {name: constant(about, train, len(rows.labels)) for name, rows in others.items()}
        yield Candidate({}, answers)
        return
    seen = tfidf_seen if system == "tfidf" else vectors_seen
    for settings, features in seen(splits, grid):
        for penalty in sorted(grid.penalties, reverse=True):
            model = fit(about, train, features[TRAIN], penalty)
            answers = {name: logits_of(about, model, features[name]) for name in others}
            yield Candidate(settings | {"penalty": penalty}, answers)


Seen = Iterator[tuple[dict[str, float], dict[str, Any]]]  # settings, features of each split


def tfidf_seen(splits: Mapping[str, Rows], grid: SettingsGrid) -> Seen:
    """The splits as TF-IDF of the training rows sees them."""
    vectorizer = tfidf(splits[TRAIN].parts, grid.most)
    yield {}, {name: tfidf_features(vectorizer, rows.parts) for name, rows in splits.items()}


def vectors_seen(splits: Mapping[str, Rows], grid: SettingsGrid) -> Seen:
    """The splits as word vectors see them, each feature at mean 0 and deviation 1 over the training
    rows.
    """
    bag = bag_of_words(grid.words)
    for window, vectors in grid.vectors.items():
        for dimensions in grid.dimensions:
            features = {
                name: vector_features(bag, vectors[:, :dimensions], rows.parts)
                for name, rows in splits.items()
            }
            mean = features[TRAIN].mean(axis=0, dtype=np.float64).astype(np.float32)
            for matrix in features.values():  # in place, for they are larger than all else
                matrix -= mean
            squares = np.einsum("nf,nf->f", features[TRAIN], features[TRAIN], dtype=np.float64)
            deviation = np.sqrt(squares / len(features[TRAIN])).astype(np.float32)
            for matrix in features.values():
                matrix /= np.where(deviation > 0, deviation, 1)
            yield {"window": window, "dimensions": dimensions}, features
