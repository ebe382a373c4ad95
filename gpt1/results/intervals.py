"""How sure a score or a difference is. Arrays may have axes [...] of simulated runs."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.tasks.metrics import EQUAL_SCORES, METRICS

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
DRAWS = 200
LEVEL = 0.05
HALVINGS = 60


def resampling_counts(clusters: int, seed: int) -> Floats:
    """Return weights [1 + DRAWS, clusters]: row 0 counts each cluster once, every other row how
    often it is drawn with replacement (Efron and Tibshirani 1993, chapter 8). NaN for one cluster.
    """
    if clusters < 2:  # one tells nothing of others
        return np.vstack([np.ones((1, 1)), np.full((DRAWS, 1), np.nan)])
    resampled = np.random.default_rng(seed).multinomial(clusters, [1 / clusters] * clusters, DRAWS)
    return np.vstack([np.ones(clusters), resampled])


def resampled_scores(
    metric: str, labels: Array, answers: Array, clusters: Array, seed: int = 0
) -> Floats:
    """Compute scores x 100 [..., s, 1 + DRAWS] of answers [..., s, n] to labels [..., n]: of all
    examples, then of each resample of their clusters [n]. Raises ValueError for an unknown metric
    or no examples.
    """
    if metric not in METRICS or not len(clusters):
        raise ValueError(f"expected one of {', '.join(METRICS)} and at least one example")
    _, cluster_n = np.unique(clusters, return_inverse=True)
    order = np.argsort(cluster_n, kind="stable")
    starts = np.flatnonzero(np.diff(cluster_n[order], prepend=-1))
    terms = _terms(metric, labels[..., None, order], answers[..., order])
    sums_c = np.add.reduceat(terms, starts, axis=-1)
    return 100 * _score(metric, sums_c @ resampling_counts(len(starts), seed).T)


def _terms(metric: str, labels: Array, answers: Array) -> Floats:
    """Return the terms [k, ..., s, n] that a metric sums."""
    ones = np.ones(answers.shape)
    if metric == "accuracy":
        terms = [labels == answers]
    elif metric in ("f1", "matthews"):
        terms = [(labels == 1) & (answers == 1), labels == 1, answers == 1]
    else:
        if metric == "spearman":  # a draw keeps the ranks among all examples
            from scipy import stats

            labels, answers = (stats.rankdata(side, axis=-1) for side in (labels, answers))
        x, y = (side - side.mean(axis=-1, keepdims=True) for side in (labels, answers))
        terms = [x, y, x * x, y * y, x * y]
    return np.stack([ones, *(ones * term for term in terms)])


def _score(metric: str, sums: Floats) -> Floats:
    if metric == "accuracy":
        return np.asarray(sums[1] / sums[0])
    if metric in ("f1", "matthews"):
        rows, right, positive, predicted = sums
        if metric == "f1":
            return _ratio(2 * right, positive + predicted)
        below = np.sqrt(positive * (rows - positive)) * np.sqrt(predicted * (rows - predicted))
        return _ratio(rows * right - positive * predicted, below)
    x, y, xx, yy, xy = sums[1:] / sums[0]
    variances = np.stack([xx - x * x, yy - y * y])
    variances[variances < EQUAL_SCORES**2 / 4] = 0
    return _ratio(xy - x * y, np.sqrt(variances[0]) * np.sqrt(variances[1]))


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=~(below <= 0))


def deviation_of(scores: Floats) -> Floats:
    """Compute the sample deviation [...] over seeds of the mean over tasks of scores [task, ...,
    s], but at least what independent tasks would give.
    """
    # Three seeds can be alike by luck: without this floor 6 % of runs would decide a claim where
    # nothing is true (benchmarks/coverage.py).
    over_seeds = scores.mean(axis=0).std(axis=-1, ddof=1)
    apart = np.sqrt(scores.var(axis=-1, ddof=1).sum(axis=0)) / len(scores)
    return np.asarray(np.maximum(over_seeds, apart))


def margin(
    alpha: Floats | float, deviation: Floats | float, seeds: int, error: Floats | float
) -> Floats:
    """Compute half the width of the 1 - alpha interval of a mean over pre-training seeds: Student's
    t times their standard error, combined in squares with the error of drawing examples (Zou and
    Donner 2008). NaN for one seed.
    """
    from scipy import special  # half a second, which printing a table is not worth

    if seeds < 2:
        return np.full(np.shape(error), np.nan)
    over_seeds = -special.stdtrit(seeds - 1, np.asarray(alpha) / 2) * deviation / np.sqrt(seeds)
    return np.asarray(np.hypot(over_seeds, -special.ndtri(np.asarray(alpha) / 2) * error))


def p_value(
    value: Floats | float, deviation: Floats | float, seeds: int, error: Floats | float
) -> Floats:
    """Compute the two-sided p-value of the hypothesis that the true number is 0: the alpha at which
    the interval just reaches 0. 1 for one seed.
    """
    low, high = np.full(np.shape(value), -300.0), np.zeros(np.shape(value))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = ~(margin(10**middle, deviation, seeds, error) < np.abs(value))
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(10**high)


def holm(p_values: Floats) -> Floats:
    """Adjust p-values [k, ...] of several claims (Holm 1979)."""
    order = np.argsort(p_values, axis=0)
    remaining = np.arange(len(p_values), 0, -1).reshape(-1, *[1] * (p_values.ndim - 1))
    steps = np.minimum(np.maximum.accumulate(remaining * np.sort(p_values, axis=0), axis=0), 1)
    adjusted = np.empty_like(steps)
    np.put_along_axis(adjusted, order, steps, axis=0)
    return adjusted
