"""Whether a score rises over points, layers transferred or updates, that several seeds measured."""

import itertools

import numpy as np

from gpt1.results.statistics.estimates import LEAST_SEEDS
from gpt1.results.statistics.jackknife import Floats

ENUMERATED = 8  # points; their orders number 40,320


def rising(scores_ps: Floats) -> tuple[float, float]:
    """Spearman's correlation of the points' means over seeds [p, s] with their order, and the share
    of all orders of these means that rise as steadily: by counting up to ENUMERATED points, beyond
    by Student's t (Kendall and Gibbons 1990, chapter 4). The share is 1 under LEAST_SEEDS.

    Seeds are averaged, for a point that one seed misses is not a fact of that point.
    """
    points, seeds = scores_ps.shape
    means_p = scores_ps.mean(axis=1)
    if points < 2 or np.ptp(means_p) == 0:
        return 0.0, 1.0
    from scipy import stats  # half a second, which reading claims is not worth

    places_p = np.arange(points) - (points - 1) / 2
    result = stats.spearmanr(places_p, means_p, alternative="greater")
    share = float(result.pvalue)
    if points <= ENUMERATED:
        ranks_p = stats.rankdata(means_p)
        orders_op = np.array(list(itertools.permutations(ranks_p)))
        share = float(np.mean(orders_op @ places_p >= ranks_p @ places_p - 1e-9))
    return float(result.statistic), share if seeds >= LEAST_SEEDS else 1.0
