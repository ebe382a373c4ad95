"""How often the claims' intervals hold the true number, and how often three claims of nothing are
decided: simulated runs, each example by example, through gpt1.results.intervals.

An answer is right where a normal number lies below a threshold that the system's seed sets: half of
its variance is the example's own, a fifth the system's on it, the rest the seed's; of each .8 is the
same for all rows of a cluster. Seeds add normal noise of 3 points, or find a trick of 30 points or
do not (bimodal); half of it is shared by the tasks.

    python benchmarks/coverage.py                    some ten minutes of one core
    python benchmarks/coverage.py --runs 200
"""

import argparse
import itertools
import time

import numpy as np
from scipy import special

from gpt1.results.intervals import LEVEL, deviation_of, holm, margin, p_value, resampled_scores

ROWS, TASKS, CLAIMS = 300, 8, 3
PARTS = {"example": 0.5, "system": 0.2, "seed": 0.3}  # of an answer's variance
CLUSTERED, SHARED = 0.8, 0.5
DEVIATION, TRICK, FOUND = 3.0, 30.0, 0.6
BASE = {"normal": 0.65, "bimodal": 0.5}


def noise(generator: np.random.Generator, kind: str, seeds: int) -> np.ndarray:
    """What each seed adds to a score [task, seed], in points; of mean 0."""
    if kind == "normal":
        common, own = (
            generator.normal(0, DEVIATION, (1, seeds)),
            generator.normal(0, DEVIATION, (TASKS, seeds)),
        )
        return np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    common, own = generator.random((1, seeds)) < FOUND, generator.random((TASKS, seeds)) < FOUND
    found = np.where(generator.random((TASKS, seeds)) < SHARED, common, own)
    return TRICK * (found - FOUND)


def rights(generator: np.random.Generator, chances: np.ndarray, cluster: int) -> np.ndarray:
    """Whether each answer is right [system, seed, row], by the chance [system, seed] of it."""

    def drawn(share: float, *lead: int) -> np.ndarray:
        apart = generator.standard_normal((*lead, ROWS))
        if cluster == 1:
            return np.sqrt(share) * apart
        common = np.repeat(generator.standard_normal((*lead, ROWS // cluster)), cluster, axis=-1)
        return np.sqrt(share * CLUSTERED) * common + np.sqrt(share * (1 - CLUSTERED)) * apart

    systems, seeds = chances.shape
    depth = drawn(PARTS["example"], 1, 1) + drawn(PARTS["system"], systems, 1)
    return depth + drawn(PARTS["seed"], systems, seeds) < special.ndtri(chances)[..., None]


def simulated(
    generator: np.random.Generator, kind: str, seeds: int, cluster: int
) -> dict[int, tuple[float, float, float]]:
    """Of one full model less CLAIMS others that differ from it by nothing, by the number of tasks:
    value, deviation and error of each difference [claim].
    """
    clusters, labels = np.arange(ROWS) // cluster, np.ones(ROWS, bool)
    added = [noise(generator, kind, seeds) for _ in range(1 + CLAIMS)]
    drawn = []
    for task in range(TASKS):
        chances = BASE[kind] + np.stack([one[task] for one in added]) / 100
        right = rights(generator, chances, cluster)
        drawn.append(resampled_scores("accuracy", labels, right, clusters, seed=task))
    found = {}
    for tasks in (3, TASKS):
        scores = np.array(drawn[:tasks])
        each = scores[:, :1] - scores[:, 1:]  # [task, claim, seed, 1 + draws]
        error = each[..., 1:].mean(axis=(0, 2)).std(axis=-1, ddof=1)
        found[tasks] = (each[..., 0].mean(axis=(0, 2)), deviation_of(each[..., 0]), error)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs a line")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator, begun = np.random.default_rng(options.seed), time.perf_counter()
    print("| seeds' noise | seeds | rows a cluster | tasks | covers, % | any of 3 decided, % |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind, seeds, cluster in itertools.product(("normal", "bimodal"), (3, 5), (1, 10)):
        found = [simulated(generator, kind, seeds, cluster) for _ in range(options.runs)]
        for tasks in (3, TASKS):
            value, deviation, error = np.array([one[tasks] for one in found]).transpose(1, 2, 0)
            covers = np.mean(abs(value[0]) <= margin(LEVEL, deviation[0], seeds, error[0]))
            decided = holm(p_value(value, deviation, seeds, error)) <= LEVEL
            print(
                f"| {kind} | {seeds} | {cluster} | {tasks} | {100 * covers:.1f}"
                f" | {100 * decided.any(axis=0).mean():.1f} |",
                flush=True,
            )
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
