"""Power laws of held-out loss through pilot pre-trainings of several lengths: how far more text
would bring each network, and where two of them meet.

L(D) = floor + scale · D^-exponent, D in million tokens, each token seen once: the form of Kaplan et
al. 2020 (arXiv:2001.08361; there without a floor) and of Hoffmann et al. 2022 (arXiv:2203.15556) for
a network of one size.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPONENTS = np.geomspace(0.02, 3.0, 1000)  # tried one by one: steps of half a percent
LENGTHS = np.geomspace(1.0, 1e6, 6000)  # million tokens, from the shortest pilot on
REPLICATES, SEED = 2000, 0


class Law(NamedTuple):
    """Power laws, one an element: the estimate first, then one for each bootstrap replicate."""

    floor: Array
    scale: Array
    exponent: Array

    def at(self, tokens: Array | float) -> Array:
        """Nats a token [laws, lengths] at these million tokens."""
        lengths = np.atleast_1d(np.asarray(tokens, dtype=np.float64))
        return self.floor[:, None] + self.scale[:, None] * lengths ** -self.exponent[:, None]


def fit(tokens: Array, nats: Array, weights: Array) -> Law:
    """The laws of least weighted squares through `nats` [laws, points] at `tokens` [points], with
    no floor below 0, which no entropy is. For each exponent the other two are a straight line's.

    Raises ValueError for fewer than three different lengths.
    """
    if len(set(tokens.tolist())) < 3:
        raise ValueError(f"expected three lengths or more, found {sorted(set(tokens.tolist()))}")
    share = weights / weights.sum()
    basis = tokens ** -EXPONENTS[:, None]  # [exponents, points]
    middle, mean = basis @ share, nats @ share
    away = (basis - middle[:, None]) * share
    scale = (nats @ away.T) / (away * basis).sum(axis=1)  # [laws, exponents]
    floor = mean[:, None] - scale * middle
    through_none = (nats @ (basis * share).T) / (basis**2 @ share)
    scale, floor = np.where(floor < 0, through_none, scale), np.maximum(floor, 0.0)
    squares = sum(
        share[point] * (nats[:, point, None] - floor - scale * basis[:, point]) ** 2
        for point in range(len(tokens))
    )
    best = np.argmin(squares, axis=1)
    every = np.arange(len(nats))
    return Law(floor[every, best], scale[every, best], EXPONENTS[best])


def residual_deviation(points: Sequence[tuple[Array, Array, Array]]) -> float:
    """Nats a token by which one seed lies off the curves of several networks (tokens, nats, number
    of seeds of each point), three parameters of each curve taken off. 0 where none is to spare.
    """
    squares, spare = 0.0, 0
    for tokens, nats, seeds in points:
        off = nats - fit(tokens, nats[None], seeds).at(tokens)[0]
        squares, spare = squares + float(seeds @ off**2), spare + len(tokens) - 3
    return float(np.sqrt(squares / spare)) if spare else 0.0


def bootstrapped(tokens: Array, nats: Array, seeds: Array, deviation: float, stream: int) -> Law:
    """The curve through means of so many `seeds`, and REPLICATES curves through points drawn
    around it: normal, of the `deviation` of one seed at every length (parametric bootstrap).
    Networks get a `stream` of draws each.
    """
    law = fit(tokens, nats[None], seeds)
    draws = np.random.default_rng((SEED, stream)).standard_normal((REPLICATES, len(tokens)))
    around = fit(tokens, law.at(tokens) + deviation * draws / np.sqrt(seeds), seeds)
    return Law(*(np.concatenate(pair) for pair in zip(law, around, strict=True)))


def crossing(
    one: Law, other: Law, ahead: float = 0.0, speeds: tuple[float, float] = (1, 1)
) -> Array:
    """Million tokens [laws] from which on `one` is `ahead` of `other` by so many nats, inf where
    it never is, up to 10^12 tokens; with million tokens a minute of each as `speeds`, minutes.
    """
    lengths = LENGTHS / min(speeds)
    behind = one.at(lengths * speeds[0]) + ahead - other.at(lengths * speeds[1])
    there = behind <= 0
    place = np.argmax(there, axis=1)  # the first
    every, before = np.arange(len(behind)), np.maximum(place - 1, 0)
    fall = behind[every, before] - behind[every, place]
    part = np.divide(behind[every, before], fall, out=np.zeros_like(fall), where=fall != 0)
    found = np.exp(
        np.log(lengths[before]) + part * (np.log(lengths[place]) - np.log(lengths[before]))
    )
    return np.where(there.any(axis=1), found, np.inf)


def interval(values: Array, share: float = 0.95) -> tuple[float, float, float]:
    """The estimate, and between which two numbers so large a share of the replicates lies."""
    tails: Any = ((1 - share) / 2, (1 + share) / 2)
    low, high = np.quantile(values[1:], tails, method="inverted_cdf")  # inf stays inf
    return float(values[0]), float(low), float(high)
