"""Whether runs confirm the smallest true effect that `gpt1 plan` tells as often as it says, 80 % of
them: runs of simulated_runs.py's making, one of two systems truly better by that.

    python benchmarks/smallest_effect.py                              two minutes of one core
    python benchmarks/smallest_effect.py --replicates 300 --seed 1    half a minute, another draw
"""

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
from coverage import FAMILY
from simulated_runs import AT_ONCE, BASE, DEVIATION, FOUND, TRICK, right, scored, seed_effects
from verdicts import ROWS

from gpt1.results.rules import read_rules
from gpt1.results.statistics.decisions import p_value
from gpt1.results.statistics.estimates import COVERAGE, estimate
from gpt1.results.statistics.jackknife import less
from gpt1.results.statistics.power import Design, smallest_effect


def smallest(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """Runs of two systems that differ by the smallest effect of their design, on eight tasks."""
    yield "| seeds' noise | shared by tasks | seeds | smallest effect, points | confirmed, % |"
    yield "|---|--:|--:|--:|--:|"
    tasks, claims = list(ROWS.values())[:FAMILY], len(read_rules().primary)
    least = (1 - COVERAGE) / claims
    for kind, shared, seeds in itertools.product(("normal", "bimodal"), (0.0, 0.5), (3, 5)):
        noise = DEVIATION if kind == "normal" else TRICK * np.sqrt(FOUND * (1 - FOUND))
        _, disagreed = of_two(generator, AT_ONCE, seeds, kind, shared, 0.0)
        designs = [
            Design(rows, -(-rows // cluster), share)
            for (rows, cluster), share in zip(tasks, disagreed, strict=True)
        ]
        effect = smallest_effect(designs, seeds, np.sqrt(2) * noise, shared=shared, claims=claims)
        told = f"| {kind} | {shared:g} | {seeds} | {effect:.1f}"
        if effect >= BASE[kind]:
            yield f"{told} | no system can be so much worse |"
            continue
        p_values = [
            of_two(generator, min(AT_ONCE, replicates - begin), seeds, kind, shared, effect)[0]
            for begin in range(0, replicates, AT_ONCE)
        ]
        yield f"{told} | {100 * np.mean(np.concatenate(p_values) <= least):.1f} |"


def of_two(
    generator: np.random.Generator, runs: int, seeds: int, kind: str, shared: float, effect: float
) -> tuple[np.ndarray, list[float]]:
    """P-values [run] of the claim that one of two systems, truly better by `effect` points, is
    better; and the share of each task's rows on which they disagree.
    """
    added = seed_effects(generator, kind, (FAMILY, runs, 2, seeds), shared)
    better = effect * np.array([0, -1])[:, None]
    differences, disagreed = [], []
    for one, (rows, cluster) in zip(added, list(ROWS.values())[:FAMILY], strict=True):
        answers = right(generator, (BASE[kind] + one + better) / 100, rows, cluster)
        differences.append(less(*(scored(answers[:, k], cluster) for k in (0, 1))))
        disagreed.append(float((answers[:, 0] != answers[:, 1]).mean()))
    found = estimate(differences)
    return np.where(found.value > 0, p_value(found), 1.0), disagreed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=1000, help="simulated runs a line")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.perf_counter()
    for line in smallest(np.random.default_rng(options.seed), options.replicates):
        print(line, flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
