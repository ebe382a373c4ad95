"""The systems: a constant answer, and TF-IDF; logits of each for a task's splits, tuned on dev."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpt1.tasks.baselines.features import tfidf, tfidf_features
from gpt1.tasks.baselines.inputs import Rows
from gpt1.tasks.baselines.linear import Candidate, constant, fit, logits_of

TRAIN = "train"


class SettingsGrid(NamedTuple):
    """What is tried: penalties of the weights; for TF-IDF its most words."""

    penalties: Sequence[float]
    most: int


def candidates(
    system: str, about: Mapping[str, Any], splits: Mapping[str, Rows], grid: SettingsGrid
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
