"""A score, a difference or a mean of such, with its interval over pre-training seeds and examples.

Seeds and examples are crossed: the variance of a mean over S seeds is that between seeds / S, plus
that of drawing examples, less their interaction / S, which is in both (the two-way analysis of
variance of Sellam et al. 2022's Multi-Bootstrap, section 3). Three seeds are too few to draw again,
so their part has Student's t with its own degrees of freedom, and the squares of both margins add
(Zou and Donner 2008).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpt1.results.statistics.jackknife import Floats, JackknifeScores

COVERAGE = 0.95
LEAST_SEEDS = 3
# Chosen by benchmarks/coverage.py. A lower ratio leaves intervals of three seeds twice as wide as
# need be where seeds find a trick or do not; more degrees cover too little where tasks share a part
# of their seeds' noise.
ALIKE = 1.5  # ratio of variances up to which seeds of all tasks are taken together
MOST_DEGREES = 2  # that they then count for, in those of one task
FAR_DEGREES = 1.5  # in the far tails of several claims: `cautious` says why


@dataclass(frozen=True, eq=False)
class CrossedEstimate:
    """A number over so many seeds, and the variance that it owes to seeds and to examples, each
    with its degrees of freedom. Numbers or arrays [...].
    """

    value: Floats
    seeds: int
    seed_variance: Floats  # not a number under LEAST_SEEDS
    seed_degrees: Floats
    example_variance: Floats  # not a number where examples are of one cluster
    example_degrees: Floats
    deviation: Floats | None = None  # sample standard deviation over the seeds; None for one

    def margin(self, tail: Floats | float) -> Floats:
        """How far from the value a true one lies with at most this probability, 0 to .5, on one
        side.
        """
        seeds, examples = self.seed_degrees, self.example_degrees
        return np.asarray(
            np.sqrt(
                t_quantile(tail, seeds) ** 2 * self.seed_variance
                + t_quantile(tail, examples) ** 2 * self.example_variance
            )
        )

    def interval(
        self, coverage: float = COVERAGE, within: tuple[float, float] = (-np.inf, np.inf)
    ) -> tuple[Floats, Floats] | None:
        """Its lower and its upper end, kept within what the number can be; None under LEAST_SEEDS,
        which tell too little of the spread over seeds.
        """
        if self.seeds < LEAST_SEEDS:
            return None
        margin = self.margin((1 - coverage) / 2)
        return np.clip(self.value - margin, *within), np.clip(self.value + margin, *within)

    def example_interval(
        self, coverage: float = COVERAGE, within: tuple[float, float] = (-np.inf, np.inf)
    ) -> tuple[Floats, Floats]:
        """The same over examples alone, for what has no seeds."""
        margin = t_quantile((1 - coverage) / 2, self.example_degrees) * np.sqrt(
            self.example_variance
        )
        return np.clip(self.value - margin, *within), np.clip(self.value + margin, *within)


def t_quantile(tail: Floats | float, degrees: Floats) -> Floats:
    """What a number with Student's t of so many degrees of freedom lies above with a probability of
    more than 0 up to .5.
    """
    from scipy import special  # scipy.stats has the same and takes half a second to import

    return np.asarray(-special.stdtrit(degrees, tail))


def estimate(
    tasks: Sequence[JackknifeScores], others: Sequence[JackknifeScores] = ()
) -> CrossedEstimate:
    """The mean over tasks, all of the same seeds in the same order.

    The variance between seeds is that of the means over the tasks, for tasks share their
    pre-training, with a degree of freedom less than seeds. Where that is at most ALIKE times what
    it would be if tasks shared nothing, by the variances of the tasks and of `others` (the same
    difference on further tasks), it is the latter, with more degrees. Raises
    ValueError for unequal seeds and for no task.
    """
    found = {scores.by_seed.shape[-1] for scores in (*tasks, *others)}
    if not tasks or len(found) > 1:
        raise ValueError(
            f"expected tasks of equally many seeds, found {len(tasks)} tasks of"
            f" {sorted(found)} seeds"
        )
    seeds = found.pop()
    means = np.mean([scores.by_seed for scores in tasks], axis=0)
    deviation = means.std(axis=-1, ddof=1) if seeds > 1 else None
    shares = [scores.shares / len(tasks) for scores in tasks]
    drawn = np.stack([(share.mean(axis=-2) ** 2).sum(axis=-1) for share in shares])
    example_degrees = degrees(drawn, np.array([share.shape[-1] - 1 for share in shares]))
    if seeds < LEAST_SEEDS:
        unknown = np.full_like(means[..., 0], np.nan)
        return CrossedEstimate(
            means.mean(axis=-1),
            seeds,
            unknown,
            unknown,
            drawn.sum(axis=0),
            example_degrees,
            deviation,
        )
    interaction = sum(share.var(axis=-2, ddof=1).sum(axis=-1) for share in shares) / seeds
    own, least = means.var(axis=-1, ddof=1), seeds - 1
    spread = np.stack([scores.by_seed.var(axis=-1, ddof=1) for scores in (*tasks, *others)])
    pooled = spread.mean(axis=0) / len(tasks)
    alike = own <= ALIKE * pooled
    pooled_degrees = degrees(spread, np.full(len(spread), least))
    return CrossedEstimate(
        means.mean(axis=-1),
        seeds,
        np.where(alike, pooled, own) / seeds,
        np.where(alike, np.minimum(pooled_degrees, MOST_DEGREES * least), least),
        np.maximum(drawn.sum(axis=0) - interaction, 0),
        example_degrees,
        deviation,
    )


def cautious(estimate: CrossedEstimate) -> CrossedEstimate:
    """The same with the degrees of freedom of one task and a half at most, for Holm's far tails:
    with those of two, three seeds whose noise is half common to all tasks decide something in 6 to
    8 % of runs in which nothing is so (benchmarks/verdicts.py), and power is the same.
    """
    most = FAR_DEGREES * (estimate.seeds - 1)
    return replace(estimate, seed_degrees=np.minimum(estimate.seed_degrees, most))


def degrees(variances: Floats, of_each: Floats) -> Floats:
    """Degrees of freedom [...] of a sum of variances [t, ...] that have `of_each` [t] (Welch 1947,
    whose + 2 and - 2 keep few degrees from counting as fewer); from the least to the sum of theirs.
    """
    each = of_each.reshape(-1, *[1] * (variances.ndim - 1))
    below = (variances**2 / (each + 2)).sum(axis=0)
    ratio = np.divide(variances.sum(axis=0) ** 2, below, out=np.zeros(below.shape), where=below > 0)
    return np.asarray(np.clip(ratio - 2, of_each.min(), of_each.sum()))
