"""Runs made up example by example, for benchmarks of intervals and of verdicts.

An answer is right where a normal number is below a threshold that the system's seed sets. Half of
its variance is the example's own, a fifth the system's on that example, the rest the seed's; of
each, .8 is the same for all examples of a cluster.
"""

from functools import partial

import numpy as np
from scipy import stats

from gpt1.results.statistics.jackknife import JackknifeScores, jackknife

DEVIATION, FOUND, TRICK = 3.0, 0.6, 30.0  # points; a trick found by .6 of the seeds
EXAMPLE, SYSTEM, SEED = 0.5, 0.2, 0.3  # parts of an answer's variance
CLUSTERED = 0.8
AT_ONCE = 50  # runs in memory
BASE = {"normal": 70.0, "bimodal": 65.0}  # points that a system has without its seed's noise


def right(
    generator: np.random.Generator, chances: np.ndarray, rows: int, cluster: int
) -> np.ndarray:
    """Whether each answer is right [run, system, seed, row], by the chance [run, system, seed] of
    it.
    """
    runs, systems, _ = chances.shape
    normal = partial(generator.standard_normal, dtype=np.float32)

    def drawn(share: float, *lead: int) -> np.ndarray:
        if cluster == 1:
            return np.sqrt(share, dtype=np.float32) * normal((*lead, rows))
        common = np.repeat(normal((*lead, -(-rows // cluster))), cluster, axis=-1)[..., :rows]
        apart = normal((*lead, rows)) * np.float32(np.sqrt(share * (1 - CLUSTERED)))
        return common * np.float32(np.sqrt(share * CLUSTERED)) + apart

    depth = (
        drawn(EXAMPLE, runs, 1, 1) + drawn(SYSTEM, runs, systems, 1) + drawn(SEED, *chances.shape)
    )
    return depth < stats.norm.ppf(chances)[..., None].astype(np.float32)


def scored(correct: np.ndarray, cluster: int) -> JackknifeScores:
    """Accuracies [run, seed] of one system."""
    rows = correct.shape[-1]
    return jackknife("accuracy", np.ones(rows, bool), correct, np.arange(rows) // cluster)


def seed_effects(
    generator: np.random.Generator, kind: str, shape: tuple[int, ...], shared: float
) -> np.ndarray:
    """What each seed adds to a score [task, run, system, seed], in points; `shared` of the variance
    is the same for all tasks.
    """
    if kind == "normal":
        common, own = (generator.normal(0, DEVIATION, size) for size in ((1, *shape[1:]), shape))
        return np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    common, own = (generator.random(size) < FOUND for size in ((1, *shape[1:]), shape))
    return TRICK * np.where(generator.random(shape) < shared, common, own)
