"""The metrics of Tables 2-4 and their sampling error."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

METRICS = ("accuracy", "f1", "matthews", "pearson", "spearman")
Array = npt.NDArray[Any]
BOOTSTRAP_SAMPLES = 1000
EQUAL_SCORES = 1e-6  # predicted scores that differ by less are one answer


def score(metric: str, labels: Array, predictions: Array) -> float:
    """Score predictions [n] against labels [n]: 0..1, correlations -1..1, F1 of class 1; 0 where
    undefined.

    Raises ValueError for an unknown metric, unequal lengths, no rows, or unlabelled rows (-1).
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, found {metric!r}")
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        raise ValueError(
            "expected as many predictions as labels, at least one; found shapes"
            f" {predictions.shape} and {labels.shape}"
        )
    if labels.min() < 0:
        raise ValueError(
            f"{int((labels < 0).sum())} of {len(labels)} rows are unlabelled, they have no score"
        )
    if metric == "accuracy":
        return float(np.mean(labels == predictions))
    if metric == "f1":
        of_class = np.count_nonzero(labels == 1) + np.count_nonzero(predictions == 1)
        both = np.count_nonzero((labels == 1) & (predictions == 1))
        return 2 * both / of_class if of_class else 0.0
    if is_one_class(predictions) or is_one_class(labels):
        return 0.0
    if metric == "matthews":
        from sklearn.metrics import matthews_corrcoef

        return float(matthews_corrcoef(labels, predictions))
    from scipy import stats

    correlation = stats.pearsonr if metric == "pearson" else stats.spearmanr
    return float(correlation(labels.astype(np.float64), predictions.astype(np.float64)).statistic)


def answers_of(logits: npt.NDArray[np.floating], target: str) -> Array:
    """Return answers [n] to logits [n, outputs]: the best class, or for "score" the expected value
    over 0, 1, … (Tai et al. 2015, the authors' code).
    """
    if target == "class":
        return np.asarray(np.argmax(logits, axis=1))
    if target != "score":
        raise ValueError(f"target must be class or score, found {target!r}")
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    weights = np.exp(shifted)
    return np.asarray(weights @ np.arange(logits.shape[1]) / weights.sum(axis=1))


def standard_error(metric: str, labels: Array, predictions: Array) -> float:
    """Estimate a score's standard error, by a formula for accuracy, else by a seeded bootstrap."""
    value = score(metric, labels, predictions)
    if metric == "accuracy":
        return math.sqrt(value * (1 - value) / len(labels))
    generator, rows = np.random.default_rng(0), len(labels)
    samples = (generator.integers(rows, size=rows) for _ in range(BOOTSTRAP_SAMPLES))
    return float(np.std([score(metric, labels[sample], predictions[sample]) for sample in samples]))


def is_one_class(predictions: Array) -> bool:
    """Return whether all answers are equal."""
    values = predictions.astype(np.float64)
    return bool(values.max() - values.min() < EQUAL_SCORES)


def majority_score(metric: str, labels: Array) -> float:
    """Score the best constant answer: the commonest class, for F1 class 1; 0 for correlations."""
    answer = 1 if metric == "f1" else int(np.bincount(labels.astype(np.int64)).argmax())
    return score(metric, labels, np.full(len(labels), answer))
