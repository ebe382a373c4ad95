"""How often a claim is wrongly decided where nothing is true, and how often it is confirmed where
all is as in the paper: simulated runs through the verdicts' own code and rules.yaml.

Table 5 is made up example by example (simulated_runs.py), as are its rows by layers; zero-shot
curves wander from snapshot to snapshot, by a part of the seed's noise.

    python benchmarks/verdicts.py                              some minutes of one core
    python benchmarks/verdicts.py --replicates 200 --seed 1    another draw, in less
"""

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping

import numpy as np
from simulated_runs import AT_ONCE, BASE, DEVIATION, right, scored, seed_effects

from gpt1.results.ablations import AblationScores, SystemScore
from gpt1.results.claims import layers_effect, table5_effects
from gpt1.results.paper import FIGURE2_LAYERS, FIGURE2_ZERO_SHOT, TABLE5, ZERO_SHOT
from gpt1.results.rules import ClaimRule, Rules, read_rules
from gpt1.results.statistics.estimates import estimate
from gpt1.results.statistics.jackknife import JackknifeScores
from gpt1.results.verdict import Effect, agreed, decide
from gpt1.results.zero_shot_claims import (
    Followed,
    both_on_all,
    ends_above,
    gain,
    steadiness,
    varies_more,
)

# Rows scored, at most 1,000, and rows of a cluster.
ROWS = {
    "CoLA": (1000, 1),
    "SST-2": (872, 1),
    "MRPC": (408, 1),
    "STS-B": (1000, 1),
    "QQP": (1000, 1),
    "MNLI": (999, 3),
    "QNLI": (1000, 1),
    "RTE": (277, 1),
    "race": (1000, 4),
}
SYSTEMS = ("full", "no_pretraining", "no_aux_lm", "lstm", "lstm_equal", "embeddings_only")
LAYERS = 5  # numbers of layers, none to all
SNAPSHOTS, EXAMPLES = 12, 1000
STAYS = 0.7  # correlation of a curve's noise from one snapshot to the next
WANDERS = {"transformer": 4.0, "lstm": 12.0}  # points of relative performance, where all is true
LSTM_ENDS = 0.7  # of the Transformer's rise


def truth(title: str) -> np.ndarray:
    """Points by which the whole model is better than each of SYSTEMS, in the paper. Of those for
    which it prints no row, the embeddings alone bring half of what pre-training does, and the LSTM
    of equal size is as far behind as that of the paper's proportion.
    """
    lost = {
        variant: TABLE5.score(TABLE5.full, title) - TABLE5.score(row, title)
        for variant, row in TABLE5.variants.items()
    }
    lost |= {"embeddings_only": lost["no_pretraining"] / 2, "lstm_equal": lost["lstm"]}
    return np.array([lost.get(system, 0.0) for system in SYSTEMS])


def answered(
    generator: np.random.Generator, added: np.ndarray, lost: np.ndarray, kind: str, task: str
) -> list[JackknifeScores]:
    """Scores [run, seed] of systems whose seeds add `added` [run, system, seed] points."""
    rows, cluster = ROWS[task]
    chances = (BASE[kind] + added - lost[:, None]) / 100
    answers = right(generator, np.clip(chances, 0.01, 0.99), rows, cluster)
    return [scored(answers[:, system], cluster) for system in range(len(lost))]


def table5(
    generator: np.random.Generator, runs: int, seeds: int, kind: str, shared: float, size: float
) -> AblationScores:
    """Table 5 of so many runs, the systems `size` times as far apart as the paper's."""
    shape = (len(TABLE5.columns), runs, len(SYSTEMS), seeds)
    added = seed_effects(generator, kind, shape, shared)
    results = {}
    for title, one in zip(TABLE5.columns, added, strict=True):
        found = answered(generator, one, size * truth(title), kind, title)
        for system, scores in zip(SYSTEMS, found, strict=True):
            numbers = tuple(range(seeds))
            results[system, title] = SystemScore((), numbers, scores, estimate([scores]))
    return AblationScores(SYSTEMS, results, {}, {})


def layers(
    generator: np.random.Generator, runs: int, seeds: int, kind: str, task: str, size: float
) -> dict[int, JackknifeScores]:
    """A task's scores by the number of layers, on a line as steep as in Figure 2."""
    (_, low), *_, (_, high) = FIGURE2_LAYERS[task]
    lost = size * np.linspace(high - low, 0, LAYERS)
    added = seed_effects(generator, kind, (1, runs, LAYERS, seeds), 0.0)[0]
    found = answered(generator, added, lost, kind, "MNLI" if task == "mnli" else task)
    return dict(enumerate(found))


def followed(
    generator: np.random.Generator, runs: int, seeds: int, name: str, size: float
) -> Followed:
    """Zero-shot curves that rise evenly to where Figure 2's end, times `size`, and wander."""
    scale = ZERO_SHOT[name]
    span = (scale.state_of_the_art - scale.random) / 100
    networks = {}
    for network, wanders in WANDERS.items():
        deviation = wanders if size else DEVIATION
        noise = np.zeros((SNAPSHOTS, runs, seeds))
        fresh = generator.normal(0, deviation, noise.shape)
        for place, one in enumerate(fresh):
            before = STAYS * noise[place - 1] if place else 0.0
            noise[place] = before + np.sqrt(1 - STAYS**2 * bool(place)) * one
        end = 100 * FIGURE2_ZERO_SHOT[name] * (1 if network == "transformer" else LSTM_ENDS)
        rise = size * np.linspace(0, end, SNAPSHOTS)[:, None, None]
        chances = np.clip(50 + span * (rise + noise) / 2, 1, 99) / 100
        answers = right(generator, np.moveaxis(chances, 0, 1), EXAMPLES, 1)
        curve = {}
        for place in range(SNAPSHOTS):
            one = scored(answers[:, place], 1)
            curve[2 ** (place + 1)] = JackknifeScores(
                scale.random + 2 * (one.by_seed - 50), 2 * one.shares
            )
        networks[network] = curve
    return Followed(name, EXAMPLES, False, networks)


def effects(
    generator: np.random.Generator,
    rules: Rules,
    runs: int,
    seeds: int,
    kind: str,
    shared: float,
    size: float,
) -> dict[str, Effect]:
    """What so many runs measure of every claim."""
    table = table5(generator, runs, seeds, kind, shared, size)
    each = {key: table5_effects(rules, key, table) for key in rules.table5}
    found = {key: agreed(list(one.values())) for key, one in each.items() if one}
    by_task = {
        task: layers(generator, runs, seeds, kind, task, size)
        for task in dict.fromkeys(rule.task for rule in rules.layers.values())
    }
    for key, one in rules.layers.items():
        found[key], _ = layers_effect(one, by_task[one.task])
    curves = {name: followed(generator, runs, seeds, name, size) for name in ZERO_SHOT}
    for key, each in rules.zero_shot.items():
        if each.behaviour != "all":
            curve = curves[each.behaviour]
            found[key] = gain(curve) if each.test == "above" else steadiness(curve)[0]
        elif each.test == "every":
            found[key] = both_on_all(list(curves.values()))
        elif each.test == "above":
            found[key] = ends_above(list(curves.values()))
        else:
            found[key], _ = varies_more(list(curves.values()))
    return found


def verdicts(
    generator: np.random.Generator, rules: Rules, replicates: int, *design: float | str
) -> dict[str, np.ndarray]:
    """1, -1 or 0 by claim and run [run]."""
    batches = []
    for begin in range(0, replicates, AT_ONCE):
        measured = effects(generator, rules, min(AT_ONCE, replicates - begin), *design)  # type: ignore[arg-type]
        batches.append({key: signs for key, (signs, _) in decide(rules, measured).items()})
    return {key: np.concatenate([one[key] for one in batches]) for key in batches[0]}


def wrong(rule: ClaimRule, signs: np.ndarray) -> np.ndarray:
    """Whether a verdict is wrong where nothing differs: that a size is not the paper's, and that
    nothing helps, is then right.
    """
    return {"size": signs > 0, "at_most": signs < 0}.get(rule.test, signs != 0)


def all_rules(rules: Rules) -> Mapping[str, ClaimRule]:
    """Every claim's rule by its key."""
    return {**rules.table5, **rules.layers, **rules.zero_shot}


def false_alarms(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """Runs in which no system is better than another and no curve rises."""
    rules = read_rules()
    yield (
        "| seeds' noise | shared by tasks | seeds | any primary, % | wrong exploratory verdicts a"
        " run | runs with any, % | most often wrong |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|"
    designs = [*itertools.product((3, 5), ("normal",), (0.0, 0.5)), (3, "bimodal", 0.5)]
    for seeds, kind, shared in designs:
        found = verdicts(generator, rules, replicates, seeds, kind, shared, 0.0)
        alarms = {key: wrong(rule, found[key]) for key, rule in all_rules(rules).items()}
        primary = np.any([alarms[key] for key in rules.primary], axis=0)
        others = np.array([alarms[key] for key in rules.exploratory])
        often = sorted(rules.exploratory, key=lambda key: -alarms[key].mean())[:3]
        names = ", ".join(f"{key} {100 * alarms[key].mean():.1f}" for key in often)
        yield (
            f"| {kind} | {shared:g} | {seeds} | {100 * primary.mean():.1f} |"
            f" {others.sum(axis=0).mean():.2f} of {len(others)} |"
            f" {100 * others.any(axis=0).mean():.1f} | {names} |"
        )


def power(generator: np.random.Generator, replicates: int) -> Iterator[str]:
    """Runs in which all is as in the paper: per cent of runs that confirm a claim, and in brackets
    that refute it.
    """
    rules = read_rules()
    designs = [*itertools.product(("normal",), (0.0, 0.5), (3, 5)), ("bimodal", 0.5, 5)]
    found = [
        verdicts(generator, rules, replicates, seeds, kind, shared, 1.0)
        for kind, shared, seeds in designs
    ]
    yield " | ".join(["| claim", *(f"{a}, {b:g} shared, {c} seeds" for a, b, c in designs)]) + " |"
    yield "|---" + "|--:" * len(designs) + "|"
    for key in rules.keys:
        cells = [
            f"{100 * (one[key] > 0).mean():.0f} ({100 * (one[key] < 0).mean():.0f})"
            for one in found
        ]
        yield f"| {key} | {' | '.join(cells)} |"


PARTS = {"alarms": false_alarms, "power": power}


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
