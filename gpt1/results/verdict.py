"""A claim of the paper beside what this run measures of it, and the tests by which it is confirmed
or refuted. Arrays may have axes [...] of simulated runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gpt1.results.document import NONE, number
from gpt1.results.rules import ClaimRule, Rules
from gpt1.results.statistics.decisions import holm, p_any, p_equivalent, p_every, p_value
from gpt1.results.statistics.estimates import COVERAGE, LEAST_SEEDS, CrossedEstimate
from gpt1.results.statistics.jackknife import Floats
from gpt1.results.statistics.order import rising

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
DOES_NOT_COMPARE, NOT_MEASURED = "does not compare", "not measured"
POINTS, RANKS = "points", "rank correlation"  # what a claim's number counts
COLUMNS, BEHAVIOURS = "columns as claimed", "behaviours as claimed"
SCALED = "points of relative performance"  # x 100: 0 is random, 100 the state of the art
SQUARED = "squared points of relative performance"
FORMS = {  # whatever else is counted, in whole numbers
    POINTS: "+.1f",
    SCALED: "+.1f",
    SQUARED: "+.1f",
    RANKS: "+.2f",
}
MADE_UP = "§"  # behind a statement on made-up tasks
EXPLORATORY = "°"  # behind a statement that is not primary


@dataclass(frozen=True, eq=False)
class PValues:
    """Two p-values [...] of a claim: small where it is shown to hold, or its opposite is."""

    holds: Floats
    opposite: Floats

    @property
    def p(self) -> Floats:
        """The smaller one, of the verdict."""
        return np.minimum(self.holds, self.opposite)


@dataclass(frozen=True, eq=False)
class Effect:
    """What a run measures of a claim [...]. A count and a correlation have no interval."""

    value: Floats
    interval: tuple[Floats, Floats] | None
    seeds: int
    p_values: PValues


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement of the paper, its number there, what this run measures of it (None where that is
    nothing), and the verdict, which `judged` gives.
    """

    key: str
    rule: ClaimRule
    published: str  # in words; NONE where the paper gives no number
    published_value: float | None  # in the unit of the effect
    unit: str  # what the effect counts
    effect: Effect | None
    basis: (
        str  # tasks, seeds and examples, and what each of several systems says; or what is missing
    )
    made_up: bool = False  # whether any task of it is made up
    detail: str = ""  # what stands beside our number
    against: Mapping[str, Effect] = field(default_factory=dict)  # of several systems, each alone
    primary: bool = False
    p: float | None = None  # adjusted where the claim is primary
    verdict: str = NOT_MEASURED

    @property
    def statement(self) -> str:
        """What the paper says."""
        return self.rule.statement

    @property
    def where(self) -> str:
        """Where it says so."""
        return self.rule.where


def marked(claim: Claim) -> str:
    """Its statement, marked where it is exploratory and where it is on made-up tasks."""
    return claim.statement + EXPLORATORY * (not claim.primary) + MADE_UP * claim.made_up


def p_in_words(p: float) -> str:
    """A p-value for a reader."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def above(estimate: CrossedEstimate, sign: int = 1) -> PValues:
    """That the true number is above 0 (sign 1) or below: two-sided, so that either verdict is wrong
    in at most a share `level` of runs in which it is 0.
    """
    return PValues(*(np.minimum(2 * p_value(estimate, direction=one), 1) for one in (sign, -sign)))


def size(estimate: CrossedEstimate, published: float, margin: float) -> PValues:
    """That the true number is less than `margin` from the published one."""
    further = (
        p_value(estimate, published + margin, direction=1),
        p_value(estimate, published - margin, direction=-1),
    )
    return PValues(
        p_equivalent(estimate, published, margin), np.minimum(2 * np.minimum(*further), 1)
    )


def at_most(estimate: CrossedEstimate, margin: float) -> PValues:
    """That the true number is below `margin`."""
    return PValues(*(p_value(estimate, margin, direction=one) for one in (-1, 1)))


def every(parts: Sequence[PValues]) -> PValues:
    """That all parts hold; that any one's opposite does, which Holm keeps at the family's level."""
    return PValues(p_every([one.holds for one in parts]), p_any([one.opposite for one in parts]))


def rises(scores: Floats) -> tuple[Effect, Floats]:
    """That scores [p, ..., s] of points in order rise over them with every seed; the share [...] of
    orders of the seeds' means that rise as steadily.

    Orders at random know nothing of points that depend on one another, as a run's snapshots do;
    seeds, whose own correlations Student's t tests two-sided, are apart. The larger p-value of both
    counts.
    """
    between = scores.shape[1:-1]
    runs = [scores[:, *place] for place in np.ndindex(between)]
    found = np.array([(*rising(one), rising(-one)[1]) for one in runs])
    value, share, falling = found.T.reshape(3, *between)
    own = over_seeds(_correlations(scores))
    agree = above(own)
    p_values = PValues(np.maximum(share, agree.holds), np.maximum(falling, agree.opposite))
    return Effect(value, None, own.seeds, p_values), share


def _correlations(scores: Floats) -> Floats:
    """Spearman's [...] of scores [p, ...] with their order; 0 for scores all alike."""
    from scipy import stats  # half a second, which reading claims is not worth

    ranks = stats.rankdata(scores, axis=0) - (len(scores) + 1) / 2
    places = (np.arange(len(scores)) - (len(scores) - 1) / 2).reshape(-1, *[1] * (scores.ndim - 1))
    below = np.sqrt((ranks**2).sum(axis=0) * (places**2).sum())
    return np.asarray(
        np.divide((places * ranks).sum(axis=0), below, out=np.zeros(below.shape), where=below > 0)
    )


def over_seeds(by_seed: Floats) -> CrossedEstimate:
    """The mean [...] of numbers [..., s] of which only the seeds' spread is known."""
    seeds, value = by_seed.shape[-1], by_seed.mean(axis=-1)
    few = seeds < LEAST_SEEDS
    between = np.full_like(value, np.nan) if few else by_seed.var(axis=-1, ddof=1) / seeds
    return CrossedEstimate(
        value,
        seeds,
        between,
        np.full_like(value, np.nan if few else seeds - 1),
        np.zeros_like(value),
        np.full_like(value, np.inf),
    )


def effect_of(estimate: CrossedEstimate, p_values: PValues) -> Effect:
    """An effect with its interval."""
    return Effect(estimate.value, estimate.interval(), estimate.seeds, p_values)


def of_pretrainings(effect: Effect, pretrainings: int) -> Effect:
    """The same where its seeds start from so many pre-trainings: fine-tuning seeds of too few tell
    nothing of others, so that there is neither interval nor test.
    """
    if pretrainings >= min(effect.seeds, LEAST_SEEDS):
        return replace(effect, seeds=min(effect.seeds, pretrainings))
    one = np.ones_like(effect.p_values.p)
    return replace(effect, interval=None, seeds=pretrainings, p_values=PValues(one, one))


def agreed(effects: Sequence[Effect]) -> Effect:
    """What several systems show of one claim: it holds where it does so against each, and so does
    its opposite, by the largest p-value. Value and interval are those of the system that shows
    least.
    """
    least = np.argmax(np.stack([one.p_values.p for one in effects]), axis=0)[None]

    def shown(values: Sequence[Floats]) -> Floats:
        return np.asarray(np.take_along_axis(np.stack(values), least, axis=0)[0])

    intervals = [one.interval for one in effects if one.interval]
    whole = len(intervals) == len(effects)
    ends = [shown([one[end] for one in intervals]) for end in (0, 1)] if whole else []
    return Effect(
        shown([one.value for one in effects]),
        (ends[0], ends[1]) if whole else None,
        min(one.seeds for one in effects),
        PValues(
            p_every([one.p_values.holds for one in effects]),
            p_every([one.p_values.opposite for one in effects]),
        ),
    )


def count_of(so: Sequence[npt.NDArray[np.bool_]], parts: Sequence[PValues], seeds: int) -> Effect:
    """In how many parts it is as claimed, tested for every one."""
    return Effect(np.sum(so, axis=0, dtype=np.float64), None, seeds, every(parts))


def decide(rules: Rules, effects: Mapping[str, Effect]) -> dict[str, tuple[Floats, Floats]]:
    """By claim: 1 [...] where it is confirmed, -1 where refuted, else 0; and its p-value, adjusted
    over all primary claims where it is one. A primary claim that was not measured counts as one of
    p = 1, for the family was fixed beforehand.
    """
    p_values = {key: effect.p_values.p for key, effect in effects.items()}
    if measured := [key for key in rules.primary if key in effects]:
        ones = [np.ones_like(p_values[measured[0]])] * (len(rules.primary) - len(measured))
        adjusted = holm(np.stack([*(p_values[key] for key in measured), *ones]))
        p_values |= dict(zip(measured, adjusted, strict=False))
    found = {}
    for key, effect in effects.items():
        shown = (p_values[key] <= rules.level) & (effect.seeds >= rules.least_seeds)
        sign = np.where(effect.p_values.holds < effect.p_values.opposite, 1, -1)
        found[key] = (np.where(shown, sign, 0), p_values[key])
    return found


def judged(rules: Rules, claims: Sequence[Claim]) -> list[Claim]:
    """Claims of one run with their verdicts and p-values, the primary ones first."""
    effects = {claim.key: claim.effect for claim in claims if claim.effect}
    done = []
    for claim in claims:
        given = replace(claim, primary=claim.key in rules.primary)
        if claim.effect:
            word, p = _judged(rules, claim, effects)
            told = [claim.basis]
            for system, effect in claim.against.items():
                alone, p_alone = _judged(rules, claim, effects | {claim.key: effect})
                numbers = " ".join(
                    effect_in_words(effect, claim.unit)[: 2 if effect.interval else 1]
                )
                told.append(f"{system} alone: {numbers}, p {p_in_words(p_alone)}, {alone}")
            given = replace(given, p=p, verdict=word, basis="; ".join(told))
        done.append(given)
    return sorted(done, key=lambda claim: not claim.primary)


def _judged(rules: Rules, claim: Claim, effects: Mapping[str, Effect]) -> tuple[str, float]:
    """A claim's verdict and p-value among the effects of all."""
    sign, p = decide(rules, effects)[claim.key]
    if claim.made_up and claim.rule.test == "size":
        return DOES_NOT_COMPARE, float(p)
    return {1: CONFIRMED, -1: REFUTED, 0: UNDECIDED}[int(sign)], float(p)


def effect_in_words(effect: Effect, unit: str) -> tuple[str, str]:
    """Our number of an effect, and its interval."""
    form = FORMS.get(unit, ".0f")
    ends = [number(float(end), form) for end in effect.interval or ()]
    return number(float(effect.value), form), f"[{', '.join(ends)}]" if ends else NONE


def rule_in_words(rules: Rules) -> list[str]:
    """What stands in rules.yaml, and how the tests are made, for a reader of verdicts."""
    primary = "; ".join(rules.table5[key].statement for key in rules.primary)
    return [
        (
            f"Primary are {len(rules.primary)} claims ({primary}), tested"
            " together by Holm's method, so that any of them is wrongly decided with a"
            f" probability of at most {rules.level:.0%}. All others ({EXPLORATORY}) are"
            f" exploratory: each is tested at {rules.level:.0%} by itself."
        ),
        (
            f"A claim is {CONFIRMED} where the data show it at that level, {REFUTED} where they"
            f" show its opposite, else {UNDECIDED}. That a difference is above 0 is tested"
            " two-sided. A size is the paper's where two one-sided tests put the true difference"
            " within a margin of it, and is not where it is shown to be further away; that"
            " something does not help, where the true gain is below a margin. On made-up tasks a"
            f" size {DOES_NOT_COMPARE}. That a score rises needs an order of the seeds' means that"
            f" at most {rules.level:.0%} of all orders reach, and seeds that agree by Student's t."
            " A claim of every column is confirmed by its largest p-value and refuted by the"
            " opposite of any column, adjusted by Holm. One against several systems, as the LSTM of"
            " the paper's proportion and that of equal size, is confirmed or refuted where it is so"
            " against each: by the largest p-value (intersection-union, Berger 1982), with number"
            " and interval of the system that shows least."
        ),
        (
            f"Every test and every {COVERAGE:.0%} interval is over pre-training seeds (Student's"
            " t) and examples (jackknife over their clusters), paired: both systems of a"
            " difference have the same seeds and examples. Under"
            f" {rules.least_seeds} seeds there is neither, and every claim is {UNDECIDED}."
        ),
    ]
