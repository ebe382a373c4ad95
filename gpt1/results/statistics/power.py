"""What a design could see, before any run: the smallest true effect that it confirms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from gpt1.results.statistics.estimates import (
    ALIKE,
    COVERAGE,
    FAR_DEGREES,
    LEAST_SEEDS,
    MOST_DEGREES,
    CrossedEstimate,
)

POWER = 0.8
GRID = 100  # of equally likely values for each estimated variance


@dataclass(frozen=True)
class Design:
    """A task's scored examples, how many clusters they form, and the share of them on which the two
    systems are not both right or both wrong.
    """

    rows: int
    clusters: int
    disagreement: float


def smallest_effect(
    tasks: Sequence[Design],
    seeds: int,
    deviation: float,
    *,
    others: int = 0,
    shared: float = 0.5,
    claims: int = 1,
    power: float = POWER,
) -> float:
    """Points by which two systems must truly differ on average over tasks, for this share of runs
    to confirm it at COVERAGE, by Holm's first step where there are several claims. So many `others`
    lend their seeds' variance, as in estimate. Infinite under LEAST_SEEDS.

    Assumed: accuracy or a like score; equal clusters whose examples come out alike, so that a
    cluster counts as one; seeds normal, with this deviation (points) of a task's difference, of
    whose square `shared` is common to all tasks. The power is that of the test itself, integrated
    over what the seeds' variances may come out as; for one task with examples without end it is the
    noncentral t's. Raises ValueError for no task.
    """
    if not tasks:
        raise ValueError("expected at least one task, found none")
    if seeds < LEAST_SEEDS:
        return float("inf")
    many, least = len(tasks), seeds - 1
    family = many + others
    examples = sum(1e4 * task.disagreement / task.clusters for task in tasks) / many**2
    between = deviation**2 * (shared + (1 - shared) / many)
    middles = (np.arange(GRID) + 0.5) / GRID
    own = (between * stats.chi2.ppf(middles, least) / least)[:, None]
    pooled = own / family
    if family > 1:
        further = least * (family - 1)
        square = deviation**2 * stats.chi2.ppf(middles, further) / further
        pooled = pooled + square * ((1 - shared) * (many - 1) + others) / family / many
    alike = own <= ALIKE * pooled
    most = FAR_DEGREES if claims > 1 else MOST_DEGREES
    estimate = CrossedEstimate(
        np.zeros(1),
        seeds,
        np.where(alike, pooled, own) / seeds,
        np.where(alike, min(family, most) * least, least),
        np.array(examples),
        np.array(sum(task.clusters - 1 for task in tasks)),
    )
    margin = estimate.margin((1 - COVERAGE) / 2 / claims)
    error = np.sqrt(between / seeds + examples)

    def shortfall(effect: float) -> float:
        return float(stats.norm.sf((margin - effect) / error).mean()) - power

    return float(optimize.brentq(shortfall, 0, margin.max() + 10 * error))
