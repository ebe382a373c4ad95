"""How often the intervals of gpt1.results.statistics hold the true number, in runs made up example
by example (simulated_runs.py).

    python benchmarks/coverage.py                              two minutes of one core
    python benchmarks/coverage.py --replicates 200 --seed 1    half a minute, another draw
"""

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
from scipy import stats
from simulated_runs import AT_ONCE, FOUND, TRICK, right, scored, seed_effects

from gpt1.results.statistics.estimates import COVERAGE, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, less

ROWS = 500
REPLICATES_OF_BOOTSTRAP, RUNS_OF_BOOTSTRAP = 500, 300
FAMILY = 8  # tasks of a run


def percentile(generator: np.random.Generator, scores: JackknifeScores) -> np.ndarray:
    """Replicates [run, replicate] of the percentile bootstrap over rows and seeds, rescaled for few
    seeds, of a task whose every row is its own cluster. Rows are drawn by normal weights.
    """
    runs, seeds = scores.by_seed.shape
    weights = generator.normal(size=(scores.shares.shape[-1], REPLICATES_OF_BOOTSTRAP))
    every = scores.by_seed[..., None] + scores.shares @ weights
    chosen = generator.integers(seeds, size=(runs, seeds, REPLICATES_OF_BOOTSTRAP))
    again = np.take_along_axis(every, chosen, axis=1).mean(axis=1)
    middle = every.mean(axis=1)
    return middle + np.sqrt(seeds / (seeds - 1)) * (again - middle)


def cells(
    generator: np.random.Generator,
    replicates: int,
    seeds: int,
    kind: str,
    cluster: int,
    shared: float,
) -> Iterator[str]:
    """Lines of the coverage table from the same runs: means of 1, 3 and 8 of their tasks, the others
    lending or not.
    """
    base, truth = (0.65, 5.0) if kind == "normal" else (0.55, FOUND * TRICK)
    designs = [(1, FAMILY), (3, FAMILY), (FAMILY, FAMILY), (1, 1), (3, 3)]
    found: list[list[np.ndarray]] = [[] for _ in designs]
    today: list[list[np.ndarray]] = [[] for _ in designs]
    for begin in range(0, replicates, AT_ONCE):
        runs = min(AT_ONCE, replicates - begin)
        added = seed_effects(generator, kind, (FAMILY, runs, 1, seeds), shared)
        added = added + (truth if kind == "normal" else 0.0)
        differences, drawn = [], []
        for one in added:
            chances = np.concatenate([base + one / 100, np.full_like(one, base)], axis=1)
            answers = right(generator, chances, ROWS, cluster)
            differences.append(less(*(scored(answers[:, k], cluster) for k in (0, 1))))
            if begin < RUNS_OF_BOOTSTRAP:
                apart = less(*(scored(answers[:, k], 1) for k in (0, 1)))
                drawn.append(percentile(generator, apart))
        for place, (tasks, family) in enumerate(designs):
            ours = estimate(differences[:tasks], differences[tasks:family])
            found[place].append(np.stack([ours.value, ours.margin((1 - COVERAGE) / 2)]))
            if drawn:
                low, high = np.quantile(
                    np.mean(drawn[:tasks], axis=0),
                    [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2],
                    axis=-1,
                )
                today[place].append(np.stack([(low <= truth) & (truth <= high), (high - low) / 2]))
    for (tasks, family), ours_of, today_of in zip(designs, found, today, strict=True):
        value, margin = np.concatenate(ours_of, axis=1)
        covered, half = np.concatenate(today_of, axis=1)
        oracle = stats.norm.isf((1 - COVERAGE) / 2) * value.std()
        yield (
            f"| {kind} | {shared:g} | {seeds} | {tasks} of {family} | {cluster}"
            f" | {100 * np.mean(abs(value - truth) <= margin):.1f} | {np.median(margin) / oracle:.2f}"
            f" | {100 * covered.mean():.1f} | {np.median(half) / oracle:.2f} | {oracle:.1f} |"
        )


def coverage(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """The 24 cells, of runs with eight tasks that share none of their seeds' noise; the same of runs
    without further tasks; and what sharing does.
    """
    yield "| seeds' noise | shared by tasks | seeds | tasks | rows a cluster | covers, % | width / oracle's | percentile bootstrap covers, % | its width | oracle's half-width |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for shared, clusters in ((0.0, (1, 10)), (0.5, (1,)), (1.0, (1,))):
        for kind, seeds, cluster in itertools.product(("normal", "bimodal"), (3, 5), clusters):
            yield from cells(generator, replicates, seeds, kind, cluster, shared)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=1000, help="simulated runs a line")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.perf_counter()
    for line in coverage(np.random.default_rng(options.seed), options.replicates):
        print(line, flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
