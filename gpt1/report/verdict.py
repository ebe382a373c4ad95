"""A claim of the paper beside what this run measures of it, and the rule by which it counts as
confirmed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpt1.report.bootstrap import COVERAGE, Estimate

CONFIRMED, NOT_CONFIRMED, UNDECIDED = "confirmed", "not confirmed", "undecided at this size"
NOT_MEASURED = "not measured"
RULE = (
    f"A claim of a direction is {CONFIRMED} where the {COVERAGE:.0%} interval lies wholly on the"
    f" claimed side of 0, {NOT_CONFIRMED} where it lies wholly on the other side, and {UNDECIDED}"
    f" where it holds 0. A claim of a size is {NOT_CONFIRMED} too where the interval does not hold"
    f" the paper's number. A claim of several parts is {CONFIRMED} where every part is,"
    f" {NOT_CONFIRMED} where any part is not, else {UNDECIDED}."
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


def verdict(interval: tuple[float, float], direction: int, size: float | None) -> str:
    """The rule (RULE): `direction` 1 for an effect claimed above 0, -1 for one below; `size` the
    paper's number, if it is claimed.

    A bound of exactly 0 counts as holding 0. Raises ValueError for another direction or an interval
    upside down.
    """
    low, high = interval
    if direction not in (1, -1) or low > high:
        raise ValueError(
            f"expected a direction of 1 or -1 and an interval with low <= high, found {direction}"
            f" and {interval}"
        )
    right, wrong = (low > 0, high < 0) if direction == 1 else (high < 0, low > 0)
    if wrong or (size is not None and not low <= size <= high):
        return NOT_CONFIRMED
    return CONFIRMED if right else UNDECIDED


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
