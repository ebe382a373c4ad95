"""How often the intervals of gpt1.results.statistics hold the true number, how often a primary
claim is wrongly decided where nothing is true, and how often it is confirmed where all is.

Runs are made up example by example: an answer is right where a normal number is below a threshold
that the system's seed sets. Half of its variance is the example's own, a fifth the system's on that
example, the rest the seed's; of each, .8 is the same for all examples of a cluster.

    python benchmarks/coverage.py                              three minutes of one core
    python benchmarks/coverage.py --replicates 200 --seed 1    half a minute, another draw
    python benchmarks/coverage.py --only alarms power
"""

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy import stats

from gpt1.results.paper import MNLI_TRANSFER_GAIN, TABLE5
from gpt1.results.statistics.decisions import holm, p_value
from gpt1.results.statistics.estimates import COVERAGE, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, jackknife, less

ROWS, DEVIATION, FOUND, TRICK = 500, 3.0, 0.6, 30.0  # points; a trick found by .6 of the seeds
EXAMPLE, SYSTEM, SEED = 0.5, 0.2, 0.3  # parts of an answer's variance
CLUSTERED = 0.8
AT_ONCE = 50  # runs in memory
REPLICATES_OF_BOOTSTRAP, RUNS_OF_BOOTSTRAP = 500, 300
FAMILY = 8  # tasks of a run
BASE = {"normal": 70.0, "bimodal": 65.0}  # points that a system has without its seed's noise
LAYERS_ON = "MNLI"
# Rows scored, at most 1,000, and rows of a cluster.
TASKS = {
    "CoLA": (1000, 1),
    "SST-2": (872, 1),
    "MRPC": (408, 1),
    "STS-B": (1000, 1),
    "QQP": (1000, 1),
    "MNLI": (999, 3),
    "QNLI": (1000, 1),
    "RTE": (277, 1),
    "SNLI": (999, 3),
    "SciTail": (1000, 1),
    "RACE": (1000, 4),
    "Story Cloze": (1000, 1),
}
CLAIMS = ("pre-training helps", "the Transformer beats the LSTM", "all layers beat embeddings")


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


def decided(
    generator: np.random.Generator,
    replicates: int,
    seeds: int,
    kind: str,
    shared: float,
    effects: np.ndarray,
    many: Sequence[int],
) -> list[np.ndarray]:
    """1 where a primary claim [claim, run] is confirmed by Holm's test, -1 where its opposite is,
    else 0; by so many of the first tasks. The whole model is truly better by `effects` [claim,
    task], points.
    """
    found: list[list[np.ndarray]] = [[] for _ in many]
    for begin in range(0, replicates, AT_ONCE):
        runs, systems = min(AT_ONCE, replicates - begin), 1 + len(CLAIMS)
        added = seed_effects(generator, kind, (max(many), runs, systems, seeds), shared)
        differences: list[list[JackknifeScores]] = [[] for _ in CLAIMS]
        for place, (rows, cluster) in enumerate(list(TASKS.values())[: max(many)]):
            better = np.array([0, *effects[:, place]])[:, None]
            chances = (BASE[kind] + added[place] - better) / 100
            measured = systems if list(TASKS)[place] == LAYERS_ON else systems - 1
            answers = right(generator, chances[:, :measured], rows, cluster)
            whole, *others = (scored(answers[:, k], cluster) for k in range(measured))
            for claim, other in enumerate(others):
                differences[claim].append(less(whole, other))
        for place, tasks in enumerate(many):
            helps, lstm = (one[:tasks] for one in differences[:2])
            estimates = [estimate(helps), estimate(lstm), estimate(differences[2], helps)]
            adjusted = holm(np.stack([p_value(one) for one in estimates]))
            sign = np.sign([one.value for one in estimates])
            found[place].append((adjusted <= 1 - COVERAGE) * sign)
    return [np.concatenate(one, axis=1) for one in found]


def shares(counted: np.ndarray, together: np.ndarray) -> str:
    """Cells of a table: per cent of runs by claim, and of all claims together."""
    return " | ".join(f"{100 * rate:.1f}" for rate in (*counted.mean(axis=1), together.mean()))


def false_alarms(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """Runs in which no system is better than another."""
    yield f"| seeds' noise | shared by tasks | seeds | tasks | {' | '.join(CLAIMS)} | any, % |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    designs = [*itertools.product(("normal", "bimodal"), (0.0, 0.5, 1.0), (3,))]
    none, many = np.zeros((len(CLAIMS), len(TASKS))), (8, len(TASKS))
    for kind, shared, seeds in (*designs, ("bimodal", 0.5, 5), ("bimodal", 1.0, 5)):
        found = decided(generator, replicates, seeds, kind, shared, none, many)
        for tasks, one in zip(many, found, strict=True):
            wrong = one != 0
            yield f"| {kind} | {shared:g} | {seeds} | {tasks} | {shares(wrong, wrong.any(axis=0))} |"


def power(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """Runs in which the systems differ as in the paper's Table 5 and section 5."""
    effects = [
        [
            TABLE5.score(TABLE5.full, name) - TABLE5.score(TABLE5.variants[variant], name)
            for name in TABLE5.columns
        ]
        for variant in ("no_pretraining", "lstm")
    ]
    effects.append([MNLI_TRANSFER_GAIN] * len(TABLE5.columns))
    yield f"| seeds' noise | shared by tasks | seeds | {' | '.join(CLAIMS)} | all three, % |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for kind, shared, seeds in itertools.product(("normal", "bimodal"), (0.0, 0.5), (3, 5)):
        (found,) = decided(
            generator, replicates, seeds, kind, shared, np.array(effects), [len(TABLE5.columns)]
        )
        right_one = found > 0
        yield f"| {kind} | {shared:g} | {seeds} | {shares(right_one, right_one.all(axis=0))} |"


PARTS = {"coverage": coverage, "alarms": false_alarms, "power": power}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=1000, help="simulated runs a line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for part in options.only:
        begun = time.perf_counter()
        print(f"\n### {part}, {options.replicates:,} runs a line\n")
        for line in PARTS[part](np.random.default_rng(options.seed), options.replicates):
            print(line, flush=True)
        print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
