"""What the paper says of zero-shot behaviours over pre-training (section 5, Figure 2 right),
against what this run measures, by rules.yaml. A seed is a pre-training with all its snapshots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, stage_folder
from gpt1.params.schema import Params
from gpt1.results.claims import amount_of
from gpt1.results.document import number
from gpt1.results.paper import FIGURE2_ZERO_SHOT, ZERO_SHOT, ZeroShotScale
from gpt1.results.rules import Rules, ZeroShotRule
from gpt1.results.statistics.estimates import estimate
from gpt1.results.statistics.jackknife import Array, Floats, JackknifeScores, jackknife, less
from gpt1.results.verdict import (
    BEHAVIOURS,
    POINTS,
    RANKS,
    SCALED,
    SQUARED,
    Claim,
    Effect,
    above,
    count_of,
    effect_of,
    over_seeds,
    rises,
)
from gpt1.results.zero_shot import answers_folder, behaviours, networks_shown
from gpt1.tasks.clusters import CLUSTERS

TRANSFORMER, LSTM = "transformer", "lstm"


@dataclass(frozen=True, eq=False)
class Followed:
    """One set: each network's scores x 100 by update, ascending, of the same pre-training seeds on
    the same examples.
    """

    set: str
    examples: int
    made_up: bool
    networks: Mapping[str, Mapping[int, JackknifeScores]]

    @property
    def scale(self) -> ZeroShotScale:
        """The paper's constants of this set."""
        return ZERO_SHOT[self.set]

    @property
    def scores(self) -> list[JackknifeScores]:
        """The Transformer's."""
        return list(self.networks[TRANSFORMER].values())

    @property
    def shared(self) -> list[int]:
        """The updates at which both networks have a snapshot."""
        return [update for update in self.networks[TRANSFORMER] if update in self.networks[LSTM]]

    def relative(self, network: str, update: int) -> JackknifeScores:
        """Relative performance x 100: 0 is random, 100 the state of the art."""
        one, span = self.networks[network][update], self.scale.state_of_the_art - self.scale.random
        return JackknifeScores(
            100 * (one.by_seed - self.scale.random) / span, 100 * one.shares / span
        )


def zero_shot_claims(rules: Rules, params: Params) -> list[Claim]:
    """Claims about zero-shot behaviours. Raises UserError where scores or answers are missing or
    broken.
    """
    followed = read_followed(params)
    return [_about(rules, params, key, rule, followed) for key, rule in rules.zero_shot.items()]


def read_followed(params: Params) -> dict[str, Followed]:
    """Every set of params.zero_shot, by name. Raises UserError where scores or answers are missing
    or broken, or the pre-trainings did not answer the same examples at the same updates.
    """
    seeds = params.pretrain.seeds
    found: dict[tuple[str, str], list[dict[str, Array]]] = {}
    about = {}
    for seed in seeds:
        for one in behaviours(params, seed):  # has held scores.json against answers.npz
            about[one.set] = one
            path = answers_folder(one.network, seed) / "answers.npz"
            updates = [str(point.update) for point in one.points]
            names = [f"{one.set}/{what}" for what in ("labels", *updates)]
            arrays = read_arrays(path, names)
            given = {name.partition("/")[2]: array for name, array in arrays.items()}
            found.setdefault((one.set, one.network), []).append(given)
    return {
        name: Followed(
            name,
            one.examples,
            one.made_up,
            _scored(
                name, one.metric, one.split, {n: found[name, n] for n in networks_shown(params)}
            ),
        )
        for name, one in about.items()
    }


def _scored(
    name: str, metric: str, split: str, answers: Mapping[str, Sequence[Mapping[str, Array]]]
) -> dict[str, dict[int, JackknifeScores]]:
    """Scores by network and update of a set's answers by network, seed, and update or "labels"."""
    every = [one for given in answers.values() for one in given]
    labels = every[0]["labels"]
    for network, given in answers.items():
        again = f"run dvc repro -f zero_shot@{network}"
        if any(not np.array_equal(one["labels"], labels) for one in given):
            raise UserError(
                f"data/zero_shot: {name}: expected the same labels for"
                f" {' and '.join(answers)}, found others for {network}; {again}"
            )
        if any(one.keys() != given[0].keys() for one in given):
            raise UserError(
                f"data/zero_shot/{network}: expected the same snapshots of every pre-training seed,"
                f" found others; {again}"
            )
    clusters = _clusters(name, split, len(labels))
    return {
        network: {
            int(update): jackknife(
                metric, labels, np.stack([one[update] for one in given]), clusters
            )
            for update in given[0]
            if update != "labels"
        }
        for network, given in answers.items()
    }


def _clusters(name: str, split: str, examples: int) -> Array:
    """Which examples belong together, as stage `prompt` found; else each is alone. Raises UserError
    where it wrote of other examples.
    """
    path = stage_folder("prompt", name) / CLUSTERS
    try:
        clusters: Array = read_arrays(path, [split])[split]
    except (FileNotFoundError, KeyError):
        return np.arange(examples)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({error}); run dvc repro -f prompt@{name}"
        ) from None
    if clusters.shape != (examples,):
        raise UserError(
            f"{path}: expected clusters of {examples} examples, found {clusters.shape};"
            f" run dvc repro -f prompt@{name}"
        )
    return clusters


def gain(one: Followed) -> Effect:
    """What the Transformer's last snapshot has over its first."""
    found = estimate([less(one.scores[-1], one.scores[0])])
    return effect_of(found, above(found))


def steadiness(one: Followed) -> tuple[Effect, Floats]:
    """Whether later snapshots are the better ones; the share of orders that rise so."""
    return rises(np.stack([scores.by_seed for scores in one.scores]))


def both_on_all(followed: Sequence[Followed]) -> Effect:
    """On how many sets the last snapshot is above the first and later snapshots are better."""
    pairs = [(gain(one), steadiness(one)[0]) for one in followed]
    return count_of(
        [(rise.value > 0) & (steady.value > 0) for rise, steady in pairs],
        [effect.p_values for pair in pairs for effect in pair],
        pairs[0][0].seeds,
    )


def ends_above(followed: Sequence[Followed]) -> Effect:
    """The Transformer's last relative performance less the LSTM's, the mean over the sets."""
    found = estimate(
        [
            less(one.relative(TRANSFORMER, one.shared[-1]), one.relative(LSTM, one.shared[-1]))
            for one in followed
        ]
    )
    return effect_of(found, above(found))


def varies_more(followed: Sequence[Followed]) -> tuple[Effect, dict[str, float]]:
    """The variance of the LSTM's curves less that of the Transformer's, paired by seed; each one's.

    Compares variances, not deviations: what drawing examples again adds to both takes no part in
    their difference.
    """
    ours, theirs = (
        np.mean(
            [
                unsteadiness(
                    np.log(one.shared),
                    np.stack([one.relative(network, update).by_seed for update in one.shared]),
                )
                for one in followed
            ],
            axis=0,
        )
        for network in (TRANSFORMER, LSTM)
    )
    found = over_seeds(theirs - ours)
    each = {"LSTM": float(theirs.mean()), "Transformer": float(ours.mean())}
    return effect_of(found, above(found)), each


def unsteadiness(at: Floats, values: Floats) -> Floats:
    """Variance [...] of values [n, ...], n > 2, about the straight line between both neighbours, at
    rising places [n].

    Gasser, Sroka and Jennen-Steinmetz 1986: a curve's slow rise adds next to nothing to it, and
    independent noise counts in full.
    """
    share_m = (at[2:] - at[1:-1]) / (at[2:] - at[:-2])
    left = share_m.reshape(-1, *[1] * (values.ndim - 1))
    residuals = left * values[:-2] + (1 - left) * values[2:] - values[1:-1]
    return np.asarray((residuals**2 / (left**2 + (1 - left) ** 2 + 1)).mean(axis=0))


def _about(
    rules: Rules, params: Params, key: str, rule: ZeroShotRule, followed: Mapping[str, Followed]
) -> Claim:
    wanted = list(ZERO_SHOT) if rule.behaviour == "all" else [rule.behaviour]
    sets = [followed[name] for name in wanted if name in followed]
    told, unit = _told(rule)
    needs_lstm = rule.behaviour == "all" and rule.test != "every"
    if missing := _missing(rules, params, rule, sets, needs_lstm):
        return Claim(key, rule, told, None, unit, None, missing)
    detail = ""
    if rule.test == "every":
        effect, detail = both_on_all(sets), f"of {len(sets)}"
    elif rule.test == "varies":
        effect, each = varies_more(sets)
        detail = ", ".join(f"{name} {number(value)}" for name, value in each.items())
    elif needs_lstm:
        effect = ends_above(sets)
    elif rule.test == "rises":
        effect, share = steadiness(sets[0])
        detail = f"{share:.0%} of orders rise so"
    else:
        effect = gain(sets[0])
        first, last = (sets[0].scores[place].by_seed.mean() for place in (0, -1))
        detail = f"from {first:.1f} to {last:.1f}"
    at = sets[0].shared if needs_lstm else list(sets[0].networks[TRANSFORMER])
    examples = sum(one.examples for one in sets)
    amount = amount_of(len(sets), effect.seeds, examples, effect.seeds)
    basis = (
        f"{', '.join(one.scale.title for one in sets)}: {amount}, {len(at)} snapshots, updates"
        f" {at[0]:,} to {at[-1]:,}"
    )
    published = float(len(sets)) if rule.test == "every" else None
    made_up = any(one.made_up for one in sets)
    return Claim(key, rule, told, published, unit, effect, basis, made_up, detail)


def _told(rule: ZeroShotRule) -> tuple[str, str]:
    """What the paper says, in words; what our number counts."""
    if rule.behaviour != "all":
        end = f"ends at {FIGURE2_ZERO_SHOT[rule.behaviour]:.2f} relative, by eye"
        return ("rises", RANKS) if rule.test == "rises" else (end, POINTS)
    return {
        "every": (f"{len(ZERO_SHOT)} of {len(ZERO_SHOT)}", BEHAVIOURS),
        "above": ("above, by eye", SCALED),
        "varies": ("higher variance", SQUARED),
    }[rule.test]


def _missing(
    rules: Rules,
    params: Params,
    rule: ZeroShotRule,
    sets: Sequence[Followed],
    needs_lstm: bool,
) -> str:
    """What is missing for a claim, in words; empty where nothing is."""
    if not sets:
        row = "" if rule.behaviour == "all" else f" {rule.behaviour}"
        return f"zero_shot has no row{row} in params.yaml"
    if needs_lstm and LSTM not in networks_shown(params):
        return "no variant in params.yaml has the network lstm"
    many = min(len(one.shared if needs_lstm else one.scores) for one in sets)
    least = 1 if needs_lstm and rule.test == "above" else rules.least_points
    found = f"{many} snapshot{'s' if many != 1 else ''}"
    where = " of both networks" if needs_lstm else ""
    return "" if many >= least else f"{found}{where}; at least {least} are needed"
