"""Scores by seed, and how much of each is owed to every cluster of examples: the delete-one-cluster
jackknife (Efron and Tibshirani 1993, chapter 11), exact for every metric.

Examples of a cluster share a premise, a passage or a pair of words, and are drawn together. All
arrays may have leading axes, of simulated runs for instance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.tasks.metrics import EQUAL_SCORES, METRICS

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JackknifeScores:
    """Scores x 100, or differences of such, by seed [..., s], and the share of every cluster in
    their error [..., s, c]: the squares over the clusters sum to the jackknife variance.
    """

    by_seed: Floats
    shares: Floats


def jackknife(metric: str, labels: Array, answers: Array, clusters: Array) -> JackknifeScores:
    """Scores of answers [..., s, n] to labels [..., n] of examples in clusters [n], as
    tasks.metrics.score gives them.

    The shares are no numbers where all examples are of one cluster, which says nothing of others.
    Raises ValueError for another metric, for unequal lengths, and for no example.
    """
    if metric not in METRICS:
        raise ValueError(f"expected one of {', '.join(METRICS)}, found {metric!r}")
    if not labels.shape[-1] == answers.shape[-1] == len(clusters):
        raise ValueError(
            "expected a label, an answer and a cluster of every example, found"
            f" {labels.shape[-1]}, {answers.shape[-1]} and {len(clusters)}"
        )
    _, cluster_n = np.unique(clusters, return_inverse=True)
    order = np.argsort(cluster_n, kind="stable")
    starts = np.flatnonzero(np.diff(cluster_n[order], prepend=-1))
    if not len(starts):
        raise ValueError("expected at least one example, found none")
    labels, answers = labels[..., None, order], answers[..., order]
    if metric == "spearman":
        sums = _sums_of_ranks(labels, answers, starts)
    else:
        sums = np.add.reduceat(_terms(metric, labels, answers), starts, axis=-1)
        whole = sums.sum(axis=-1, keepdims=True)
        sums = np.concatenate([whole - sums, whole], axis=-1)
    if len(starts) == 1:
        scores = 100 * _score(metric, sums[..., -1:])
        return JackknifeScores(scores[..., -1], np.full_like(scores, np.nan))
    scores = 100 * _score(metric, sums)  # without each cluster, and last with all
    without = scores[..., :-1]
    spread = np.sqrt(1 - 1 / len(starts)) * (without.mean(axis=-1, keepdims=True) - without)
    return JackknifeScores(scores[..., -1], spread)


def less(one: JackknifeScores, other: JackknifeScores) -> JackknifeScores:
    """`one` less `other`, of the same seeds in the same order on the same examples. Raises
    ValueError where these are not as many.
    """
    if one.shares.shape != other.shares.shape:
        raise ValueError(
            "expected the same seeds and clusters, found (seeds, clusters)"
            f" {one.shares.shape[-2:]} and {other.shares.shape[-2:]}"
        )
    return JackknifeScores(one.by_seed - other.by_seed, one.shares - other.shares)


def repeated(scores: JackknifeScores, seeds: int) -> JackknifeScores:
    """What has no seeds [..., 1] as if each of so many had given the same answers, to be taken from
    a system that has them.
    """
    return JackknifeScores(
        np.repeat(scores.by_seed, seeds, axis=-1), np.repeat(scores.shares, seeds, axis=-2)
    )


def mean_of_parts(parts: Sequence[JackknifeScores]) -> JackknifeScores:
    """The score of a task that is the mean over parts with examples of their own, as MNLI's halves
    are.
    """
    return JackknifeScores(
        np.mean([part.by_seed for part in parts], axis=0),
        np.concatenate([part.shares for part in parts], axis=-1) / len(parts),
    )


def mean_of_metrics(scores: Sequence[JackknifeScores]) -> JackknifeScores:
    """The mean of several scores on the same examples, as GLUE averages two metrics of a task."""
    return JackknifeScores(
        np.mean([one.by_seed for one in scores], axis=0),
        np.mean([one.shares for one in scores], axis=0),
    )


def _terms(metric: str, labels: Array, answers: Array) -> Floats:
    """What a metric sums over examples [k, ..., s, n]; the first term counts them."""
    if metric == "accuracy":
        terms = [labels == answers]
    elif metric in ("f1", "matthews"):
        positive, said = labels == 1, answers == 1
        terms = [positive & said, positive, said]
    else:
        x, y = (
            values - values.mean(axis=-1, keepdims=True)
            for values in (labels.astype(np.float64), answers.astype(np.float64))
        )
        terms = [x, y, x * x, y * y, x * y]
    one = np.ones(answers.shape)
    return np.stack([one, *(one * term for term in terms)])


def _sums_of_ranks(labels: Array, answers: Array, starts: Array) -> Floats:
    """Pearson's sums of the ranks among the examples that are left [k, ..., s, c + 1]; the last
    column leaves out none.
    """
    sizes = np.diff(starts, append=answers.shape[-1])
    left = np.repeat(np.arange(len(sizes)), sizes)[:, None] != np.arange(len(sizes) + 1)
    ranks = []
    for values in (labels, answers):
        apart = values[..., :, None] - values[..., None, :]
        below = np.add.reduceat((apart > 0) + (apart == 0) / 2, starts, axis=-1)
        whole = below.sum(axis=-1, keepdims=True)
        ranks.append(np.concatenate([whole - below, whole], axis=-1) - answers.shape[-1] / 2)
    x, y = ranks
    return np.stack(
        [
            (term * left).sum(axis=-2) + np.zeros((*answers.shape[:-1], 1))
            for term in (np.ones_like(y), x, y, x * x, y * y, x * y)
        ]
    )


def _score(metric: str, sums: Floats) -> Floats:
    """Scores 0..1 or -1..1 from sums [k, ...] over examples; 0 where a score is undefined."""
    if metric == "accuracy":
        return np.asarray(sums[1] / sums[0])
    if metric in ("f1", "matthews"):
        rows, right, positive, said = sums
        if metric == "f1":
            return _ratio(2 * right, positive + said)
        return _ratio(
            rows * right - positive * said,
            np.sqrt(positive * (rows - positive)) * np.sqrt(said * (rows - said)),
        )
    x, y, xx, yy, xy = sums[1:] / sums[0]
    variances = np.minimum(xx - x * x, yy - y * y)
    below = np.sqrt(np.maximum(xx - x * x, 0)) * np.sqrt(np.maximum(yy - y * y, 0))
    return _ratio(xy - x * y, np.where(variances < EQUAL_SCORES**2 / 4, 0.0, below))


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
