"""A claim of the paper beside what this run measures of it, and the rule by which it counts as
confirmed.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from gpt1.results.bootstrap import COVERAGE, Estimate

CONFIRMED, NOT_CONFIRMED, UNDECIDED = "confirmed", "not confirmed", "undecided at this size"
DOES_NOT_COMPARE, NOT_MEASURED = "does not compare", "not measured"
POINTS, RANKS = "points", "rank correlation"  # what a claim's number counts
SCALED = "points of relative performance"  # x 100: 0 is random, 100 the state of the art
SQUARED = "squared points of relative performance"
FORMS = {  # whatever else is counted, in whole numbers
    POINTS: "+.1f",
    SCALED: "+.1f",
    SQUARED: "+.1f",
    RANKS: "+.2f",
}
MADE_UP = "§"  # behind a statement on made-up tasks
RANKED_BY_CHANCE = 0.05  # one-sided
RULE = (
    f"A claim of a direction is {CONFIRMED} where the {COVERAGE:.0%} interval lies wholly on the"
    f" claimed side of 0, {NOT_CONFIRMED} where it lies wholly on the other side, and {UNDECIDED}"
    f" where it holds 0. A claim of a size is {NOT_CONFIRMED} too where the interval does not hold"
    f" the paper's number, {UNDECIDED} where the interval is wider than that number, and on made-up"
    f" tasks {DOES_NOT_COMPARE}. A claim of an order needs a rank correlation, too, that orders by"
    f" chance reach in {RANKED_BY_CHANCE:.0%} of cases at most. What rests on one seed of any"
    f" system, or on one pre-training's snapshots, is {UNDECIDED}, whatever its interval. A claim"
    f" of several parts is {CONFIRMED} where every part is, {NOT_CONFIRMED} where any part is not,"
    f" else {UNDECIDED}."
)


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement of the paper, its number there, ours with an interval, and the verdict.
    `estimate` is None where nothing was measured.
    """

    key: str
    statement: str
    where: str  # in the paper
    published: str  # in words; NONE where the paper gives no number
    published_value: float | None  # in the unit of the estimate
    unit: str  # what the estimate counts: POINTS, RANKS, or in words
    estimate: Estimate | None
    basis: str  # tasks, seeds and examples; or what is missing
    verdict: str
    made_up: bool  # whether any task of it is made up
    detail: str = ""  # what stands beside our number


def verdict(estimate: Estimate, direction: int) -> str:
    """The rule (RULE) for a direction: 1 for an effect claimed above 0, -1 for one below.

    A bound of exactly 0 counts as holding 0. Raises ValueError for another direction.
    """
    if direction not in (1, -1):
        raise ValueError(f"expected a direction of 1 or -1, found {direction}")
    low, high = sorted(direction * end for end in estimate.interval)
    if estimate.seeds < 2 or low <= 0 <= high:
        return UNDECIDED
    return CONFIRMED if low > 0 else NOT_CONFIRMED


def size_verdict(estimate: Estimate, size: float, made_up: bool) -> str:
    """The rule for an effect above 0 that the paper puts at `size`."""
    if made_up:
        return DOES_NOT_COMPARE
    if estimate.seeds < 2:
        return UNDECIDED
    low, high = estimate.interval
    if not low <= size <= high:
        return NOT_CONFIRMED
    return UNDECIDED if high - low > size else verdict(estimate, 1)


def order_verdict(correlation: Estimate, places: int) -> str:
    """The rule for a score that rises over so many places, by its rank correlation with them."""
    if abs(correlation.value) < least_ranked(places):
        return UNDECIDED
    return verdict(correlation, 1)


@cache
def least_ranked(places: int) -> float:
    """The least rank correlation of n places that at most RANKED_BY_CHANCE of all orders reach: by
    counting them up to n = 8, beyond by the normal distribution of variance 1 / (n - 1) (Kendall
    and Gibbons 1990, chapter 4). Infinite where not even the perfect order is rare enough.
    """
    if places > 8:
        return 1.645 / math.sqrt(places - 1)
    apart = sorted(
        sum((place - rank) ** 2 for place, rank in enumerate(order))
        for order in itertools.permutations(range(places))
    )
    rare = math.floor(RANKED_BY_CHANCE * len(apart))
    reached = [one for one in apart[:rare] if one < apart[rare]]
    return 1 - 6 * reached[-1] / (places**3 - places) if reached else math.inf


def together(verdicts: Sequence[str]) -> str:
    """The verdict on a claim of several parts: all must be confirmed, one that is not is enough.
    Raises ValueError for no part.
    """
    if not verdicts:
        raise ValueError("expected at least one part, found none")
    if NOT_CONFIRMED in verdicts:
        return NOT_CONFIRMED
    return CONFIRMED if all(one == CONFIRMED for one in verdicts) else UNDECIDED


def not_measured(
    key: str, statement: str, where: str, published: str, unit: str, missing: str
) -> Claim:
    """A claim of which this run says nothing, and what is missing."""
    return Claim(
        key, statement, where, published, None, unit, None, missing, NOT_MEASURED, made_up=False
    )
