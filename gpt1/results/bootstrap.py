"""Bootstrap intervals over examples and seeds, paired: a replicate's rows and seeds are the same
for every system that it compares.

The rows of a column are drawn with replacement, and then the seeds (Efron and Tibshirani 1993,
section 8.3); tasks are drawn apart from one another. Everything follows from the task's name, so
that equal results give equal bits, whatever other tasks there are.
"""

import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.tasks.metrics import EQUAL_SCORES, score

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
REPLICATES = 1000
COVERAGE = 0.95
CORRELATIONS = ("matthews", "pearson", "spearman")
ENTRIES_AT_ONCE = 4_000_000  # replicates x rows held in memory


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with a score of their own: a metric, labels [n], and the answers [n] of every system and
    seed.
    """

    metric: str
    labels: Array
    answers: Mapping[tuple[str, int], Array]


@dataclass(frozen=True, eq=False)
class Resample:
    """Scores x 100 by seed: on the rows as they are, and on the rows of every replicate
    [REPLICATES].
    """

    scores: Mapping[int, float]
    replicates: Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, the same number in every replicate [REPLICATES], and the range that COVERAGE of
    these lie in. `seeds` is the fewest that any score behind it has.
    """

    value: float
    replicates: Floats
    seeds: int

    @property
    def interval(self) -> tuple[float, float]:
        """The percentile interval: its lower and its upper end."""
        low, high = np.quantile(self.replicates, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
        return float(low), float(high)


def resample(task: str, parts: Sequence[ScoredRows]) -> dict[str, Resample]:
    """Every system's scores x 100 on the same drawn rows; the score over several parts is their
    mean.

    A seed counts for a system where every part has it. `task` seeds the drawing.
    """
    generator = _generator(task, "rows")
    known = [key for key in parts[0].answers if all(key in part.answers for part in parts)]
    drawn = {key: np.zeros(REPLICATES) for key in known}
    for part in parts:
        answers_sn = np.stack([part.answers[key] for key in known])
        for key, row in zip(
            known, _drawn_scores(part.metric, part.labels, answers_sn, generator), strict=True
        ):
            drawn[key] += 100 * row / len(parts)
    samples = {}
    for system in dict.fromkeys(system for system, _ in known):
        seeds = [seed for name, seed in known if name == system]
        samples[system] = Resample(
            {
                seed: 100
                * statistics.fmean(
                    score(part.metric, part.labels, part.answers[system, seed]) for part in parts
                )
                for seed in seeds
            },
            {seed: drawn[system, seed] for seed in seeds},
        )
    return samples


def within_range(estimate: Estimate, metric: str) -> Estimate:
    """A score's estimate with its replicates, which are stretched for few seeds, brought back to
    what the metric can be.
    """
    lowest = -100.0 if metric in CORRELATIONS else 0.0
    return replace(estimate, replicates=np.clip(estimate.replicates, lowest, 100.0))


def less(one: Resample, other: Resample) -> Resample:
    """`one` less `other`, seed by seed, on the seeds that both have. Raises ValueError where they
    share none.
    """
    seeds = [seed for seed in one.scores if seed in other.scores]
    if not seeds:
        raise ValueError(
            f"expected a seed that both have, found {sorted(one.scores)} and {sorted(other.scores)}"
        )
    return Resample(
        {seed: one.scores[seed] - other.scores[seed] for seed in seeds},
        {seed: one.replicates[seed] - other.replicates[seed] for seed in seeds},
    )


def over_seeds(task: str, sample: Resample) -> Estimate:
    """The mean over the seeds; every replicate draws the seeds again, the same for all samples of a
    task with as many seeds.

    Drawing n seeds out of n shows too small a spread, by n - 1 in n (a half for two seeds): the
    deviation from the mean over all seeds is stretched to make up for it (the rescaling bootstrap
    of Rao and Wu 1988). One seed tells nothing of the spread over seeds.
    """
    every_sr = np.stack(list(sample.replicates.values()))
    seeds = len(every_sr)
    middle_r = every_sr.mean(axis=0)
    if seeds > 1:
        chosen_sr = _generator(task, "seeds").integers(seeds, size=(seeds, REPLICATES))
        drawn_r = np.take_along_axis(every_sr, chosen_sr, axis=0).mean(axis=0)
        middle_r = middle_r + np.sqrt(seeds / (seeds - 1)) * (drawn_r - middle_r)
    return Estimate(statistics.fmean(sample.scores.values()), middle_r, seeds)


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several numbers, replicate by replicate."""
    return Estimate(
        statistics.fmean(one.value for one in estimates),
        np.mean([one.replicates for one in estimates], axis=0),
        min(one.seeds for one in estimates),
    )


def weighted_scores(metric: str, labels_n: Array, answers_sn: Array, counts_rn: Floats) -> Floats:
    """Scores [s, r], 0..1 or -1..1, of answers to rows that stand so many times in each replicate;
    each row of counts sums to n.

    The numbers of tasks.metrics.score, from sums over rows; 0 where a score is undefined. Raises
    ValueError for another metric.
    """
    counts_nr, rows = counts_rn.T, len(labels_n)
    if metric == "accuracy":
        return np.asarray((answers_sn == labels_n).astype(np.float64) @ counts_nr / rows)
    if metric in ("f1", "matthews"):
        positive_n, said_sn = (
            (labels_n == 1).astype(np.float64),
            (answers_sn == 1).astype(np.float64),
        )
        right_sr, said_sr, positive_r = (
            (said_sn * positive_n) @ counts_nr,
            said_sn @ counts_nr,
            positive_n @ counts_nr,
        )
        if metric == "f1":
            return _ratio(2 * right_sr, said_sr + positive_r)
        return _ratio(
            rows * right_sr - said_sr * positive_r,
            np.sqrt(said_sr * (rows - said_sr)) * np.sqrt(positive_r * (rows - positive_r)),
        )
    if metric == "spearman":
        return _rank_correlations(labels_n, answers_sn, counts_rn)
    if metric != "pearson":
        raise ValueError(f"expected accuracy, f1, matthews, pearson or spearman, found {metric!r}")
    labels = labels_n.astype(np.float64) - labels_n.astype(np.float64).mean()
    answers = answers_sn.astype(np.float64) - answers_sn.astype(np.float64).mean(
        axis=1, keepdims=True
    )
    mean_r, mean_sr = labels @ counts_nr / rows, answers @ counts_nr / rows
    variance_r, variance_sr = (
        labels**2 @ counts_nr / rows - mean_r**2,
        answers**2 @ counts_nr / rows - mean_sr**2,
    )
    constant = (variance_r < EQUAL_SCORES**2 / 4) | (
        variance_sr < EQUAL_SCORES**2 / 4
    )  # no values nearer than that vary more
    below = np.where(
        constant, 0.0, np.sqrt(np.maximum(variance_r, 0)) * np.sqrt(np.maximum(variance_sr, 0))
    )
    return _ratio((answers * labels) @ counts_nr / rows - mean_r * mean_sr, below)


def _rank_correlations(labels_n: Array, answers_sn: Array, counts_rn: Floats) -> Floats:
    """Spearman's correlations [s, r]: Pearson's of the ranks that values have among the drawn rows
    of each replicate.
    """
    labels_rn = _ranks(labels_n, counts_rn)
    by_answer = []
    for answers_n in answers_sn:
        answers_rn = _ranks(answers_n, counts_rn)
        below_r = (counts_rn * labels_rn**2).sum(axis=1) * (counts_rn * answers_rn**2).sum(axis=1)
        by_answer.append(_ratio((counts_rn * labels_rn * answers_rn).sum(axis=1), np.sqrt(below_r)))
    return np.stack(by_answer)


def _ranks(values_n: Array, counts_rn: Floats) -> Floats:
    """Ranks [r, n] less their mean, of values that stand so many times in each replicate; equal
    ones share the middle of theirs.
    """
    if np.ptp(values_n) < EQUAL_SCORES:
        return np.zeros_like(counts_rn)
    _, place_n, many = np.unique(values_n, return_inverse=True, return_counts=True)
    starts = np.cumsum(many) - many
    alike_rv = np.add.reduceat(counts_rn[:, np.argsort(place_n, kind="stable")], starts, axis=1)
    ranks_rv = np.cumsum(alike_rv, axis=1) - (alike_rv - 1) / 2
    return np.asarray(ranks_rv[:, place_n] - (len(values_n) + 1) / 2)


def _drawn_scores(
    metric: str, labels_n: Array, answers_sn: Array, generator: np.random.Generator
) -> Floats:
    """Scores [s, REPLICATES] of all answers, each replicate on rows drawn once for all."""
    rows = len(labels_n)
    scores_sr, at_once = np.empty((len(answers_sn), REPLICATES)), max(1, ENTRIES_AT_ONCE // rows)
    for begin in range(0, REPLICATES, at_once):
        many = min(at_once, REPLICATES - begin)
        drawn = generator.integers(rows, size=(many, rows)) + rows * np.arange(many)[:, None]
        counts_rn = (
            np.bincount(drawn.ravel(), minlength=many * rows).reshape(many, rows).astype(np.float64)
        )
        scores_sr[:, begin : begin + many] = weighted_scores(
            metric, labels_n, answers_sn, counts_rn
        )
    return scores_sr


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _generator(task: str, what: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{task} {what}".encode()))
