"""Tests of claims: p-values that match the intervals, and how claims and parts of claims stand
together.
"""

from collections.abc import Sequence

import numpy as np

from gpt1.results.statistics.estimates import LEAST_SEEDS, CrossedEstimate
from gpt1.results.statistics.jackknife import Floats

HALVINGS = 60


def p_value(estimate: CrossedEstimate, bound: float = 0.0, direction: int = 0) -> Floats:
    """Of the hypothesis that the true number is `bound` (direction 0), at most `bound` (1), or at
    least (-1): below .05 where the 95 % interval leaves `bound` out. 1 under LEAST_SEEDS.

    Raises ValueError for another direction.
    """
    if direction not in (-1, 0, 1):
        raise ValueError(f"expected a direction of -1, 0 or 1, found {direction}")
    apart = np.asarray(estimate.value) - bound
    if estimate.seeds < LEAST_SEEDS:
        return np.ones(apart.shape)
    low, high = np.full(apart.shape, -300.0), np.full(apart.shape, np.log10(0.5))
    for _ in range(HALVINGS):  # margins fall as tails grow
        middle = (low + high) / 2
        beyond = ~(estimate.margin(10**middle) < np.abs(apart))  # no number: as wide as can be
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    tail = np.asarray(10**high)
    if direction == 0:
        return 2 * tail
    return np.where(direction * apart > 0, tail, 1 - tail)


def holm(p_values: Floats) -> Floats:
    """Adjusted p-values of several claims [k, ...]: those at most alpha are rejected together with
    a chance of at most alpha that any is wrongly so (Holm 1979).
    """
    order = np.argsort(p_values, axis=0)
    left = np.arange(len(p_values), 0, -1).reshape(-1, *[1] * (p_values.ndim - 1))
    steps = np.minimum(np.maximum.accumulate(left * np.sort(p_values, axis=0), axis=0), 1)
    adjusted = np.empty_like(steps)
    np.put_along_axis(adjusted, order, steps, axis=0)
    return adjusted


def p_equivalent(estimate: CrossedEstimate, size: float, margin: float) -> Floats:
    """Of the hypothesis that the true number is `margin` or more away from `size`: two one-sided
    tests (Schuirmann 1987).
    """
    return np.maximum(
        p_value(estimate, size - margin, direction=1),
        p_value(estimate, size + margin, direction=-1),
    )


def p_every(p_values: Sequence[Floats]) -> Floats:
    """Of the hypothesis that some part of a claim does not hold: the largest of the parts'
    (intersection-union, Berger 1982).
    """
    return np.asarray(np.max(p_values, axis=0))


def p_any(p_values: Sequence[Floats]) -> Floats:
    """Of the hypothesis that no part's opposite holds, from the p-values of the opposites: the
    smallest by Holm. It refutes a claim that every part holds.
    """
    return np.asarray(holm(np.stack(p_values)).min(axis=0))
