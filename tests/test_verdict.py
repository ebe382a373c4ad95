"""Verdicts at boundaries computed by hand: of three seeds whose mean has a standard error of 1 and
examples without end, so that Student's t with 2 degrees of freedom says how far from 0 is far.

Its one-sided points are 2.920 at .05, 4.303 at .025, 6.205 at .0125 and 7.649 at .025 / 3, by
t = (1 - 2 p) sqrt(1 / (2 p (1 - p))).
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from gpt1.results.document import NONE
from gpt1.results.rules import ClaimRule, Table5Rule, read_rules
from gpt1.results.statistics.estimates import CrossedEstimate
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    NOT_MEASURED,
    POINTS,
    REFUTED,
    UNDECIDED,
    Claim,
    Effect,
    PValues,
    above,
    agreed,
    at_most,
    effect_of,
    every,
    judged,
    over_seeds,
    rises,
    rule_in_words,
    size,
)

RULES = read_rules()
SOME = "aux_lm_larger"  # an exploratory claim


def mean(value: float, seeds: int = 3) -> CrossedEstimate:
    """A mean over seeds with a standard error of 1."""
    apart = np.array([-1.0, 0.0, 1.0]) * np.sqrt(3)
    return over_seeds(value + (apart if seeds == 3 else np.array([-1.0, 1.0])))


def claim(key: str, effect: Effect | None, *, made_up: bool = False, test: str = "above") -> Claim:
    margin = 2.0 if test == "size" else None
    rule = ClaimRule(statement=key, where="section 5", test=test, margin=margin)  # type: ignore[arg-type]
    return Claim(key, rule, NONE, None, POINTS, effect, "", made_up)


def verdict(p_values: PValues, seeds: int = 3, made_up: bool = False, test: str = "above") -> str:
    one = claim(SOME, effect_of(mean(0, seeds), p_values), made_up=made_up, test=test)
    return judged(RULES, [one])[0].verdict


@pytest.mark.parametrize(
    ("value", "expected"),
    [(4.31, CONFIRMED), (4.29, UNDECIDED), (0, UNDECIDED), (-4.29, UNDECIDED), (-4.31, REFUTED)],
)
def test_a_direction_is_two_sided(value: float, expected: str) -> None:
    assert verdict(above(mean(value))) == expected
    turned = {CONFIRMED: REFUTED, REFUTED: CONFIRMED, UNDECIDED: UNDECIDED}
    assert verdict(above(mean(value), -1)) == turned[expected]
    low, high = mean(value).interval() or (np.nan, np.nan)
    assert (low > 0) == (expected == CONFIRMED), "as the 95 % interval tells"
    assert (high < 0) == (expected == REFUTED)


@pytest.mark.parametrize(
    ("value", "margin", "expected"),
    [
        (14.8, 2.93, CONFIRMED),
        (14.8, 2.91, UNDECIDED),  # the interval holds the number, and says little
        (15.8, 3.93, CONFIRMED),
        (15.8, 3.91, UNDECIDED),
        (14.8 + 6.31, 2.0, REFUTED),
        (14.8 + 6.29, 2.0, UNDECIDED),
        (14.8 - 6.31, 2.0, REFUTED),
        (-9, 2.0, REFUTED),
    ],
)
def test_a_size_needs_equivalence(value: float, margin: float, expected: str) -> None:
    p_values = size(mean(value), 14.8, margin)
    assert verdict(p_values, test="size") == expected
    assert verdict(p_values, test="size", made_up=True) == DOES_NOT_COMPARE


def test_the_wider_an_interval_the_less_is_confirmed_of_a_size() -> None:
    scores = np.array([-1.0, 0.0, 1.0])
    words = [
        verdict(size(over_seeds(14.8 + wide * scores), 14.8, 2.0), test="size")
        for wide in (0.1, 1, 10, 100)
    ]
    assert words == [CONFIRMED, CONFIRMED, UNDECIDED, UNDECIDED]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-1.93, CONFIRMED), (-1.91, UNDECIDED), (3.91, UNDECIDED), (3.93, REFUTED)],
)
def test_no_help_is_a_bound(value: float, expected: str) -> None:
    assert verdict(at_most(mean(value), 1.0)) == expected


def test_a_true_zero_can_confirm_that_something_does_not_help() -> None:
    precise = over_seeds(np.array([-0.1, 0.0, 0.1]))
    assert verdict(at_most(precise, 1.0)) == CONFIRMED
    assert verdict(above(precise, -1)) == UNDECIDED


def parts(*values: float) -> PValues:
    return every([above(mean(value)) for value in values])


def test_every_part_is_confirmed_by_the_weakest_and_refuted_by_holm() -> None:
    assert verdict(parts(4.31, 4.31, 9)) == CONFIRMED
    assert verdict(parts(4.29, 9, 9)) == UNDECIDED
    assert verdict(parts(-4.31, 9, 9)) == UNDECIDED, "one of three may be so by chance"
    assert verdict(parts(-7.64, 9, 9)) == UNDECIDED
    assert verdict(parts(-7.66, 9, 9)) == REFUTED
    opposite = every([above(mean(9)), above(mean(-9), -1)])
    assert verdict(opposite) == CONFIRMED


def test_under_three_seeds_everything_is_undecided() -> None:
    two = mean(1000, 2)
    assert two.interval() is None
    for p_values in (above(two), at_most(two, 2000), every([above(two)] * 2)):
        assert verdict(p_values, 2) == UNDECIDED
    assert verdict(size(two, 1000, 500), 2, test="size") == UNDECIDED
    assert verdict(rises(np.arange(10.0).reshape(5, 2))[0].p_values, 2) == UNDECIDED


def primaries(*values: float | None) -> list[Claim]:
    return judged(
        RULES,
        [
            claim(key, None if value is None else effect_of(mean(value), above(mean(value))))
            for key, value in zip(RULES.primary, values, strict=True)
        ],
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((7.66, 6.21, 4.31), [CONFIRMED] * 3),
        ((4.31, 7.66, -6.21), [CONFIRMED, CONFIRMED, REFUTED]),
        ((7.64, 6.21, 4.31), [UNDECIDED] * 3),  # the first step fails
        ((7.66, 6.20, 6.20), [CONFIRMED, UNDECIDED, UNDECIDED]),
        ((6.21, 6.21, 6.21), [UNDECIDED] * 3),
        ((7.66, None, None), [CONFIRMED, NOT_MEASURED, NOT_MEASURED]),
        ((7.64, None, None), [UNDECIDED, NOT_MEASURED, NOT_MEASURED]),  # the family was fixed
    ],
)
def test_primary_claims_stand_together_by_holm(
    values: Sequence[float | None], expected: list[str]
) -> None:
    assert [one.verdict for one in primaries(*values)] == expected
    adjusted = [one.p for one in primaries(*values)]
    for one, value, word in zip(adjusted, values, expected, strict=True):
        assert (one is None) == (value is None)
        assert one is None or (one <= 0.05) == (word in (CONFIRMED, REFUTED))


def test_the_family_is_of_primary_claims_and_they_come_first() -> None:
    strong = effect_of(mean(50), above(mean(50)))
    weak = effect_of(mean(4.31), above(mean(4.31)))
    found = judged(RULES, [*(claim(key, strong) for key in ("a", "b")), claim("lstm_below", weak)])
    assert [one.key for one in found] == ["lstm_below", "a", "b"]
    assert [one.primary for one in found] == [True, False, False]
    assert [one.verdict for one in found] == [UNDECIDED, CONFIRMED, CONFIRMED]
    assert found[0].p == pytest.approx(3 * float(weak.p_values.p))
    assert found[1].p == pytest.approx(float(strong.p_values.p))


@pytest.mark.parametrize(
    ("values", "expected", "shown"),
    [
        ((4.31, 9), CONFIRMED, 4.31),
        ((4.29, 50), UNDECIDED, 4.29),
        ((50, -50.1), UNDECIDED, 50),
        ((-9, -4.31), REFUTED, -4.31),
    ],
)
def test_against_several_systems_the_largest_p_value_counts(
    values: Sequence[float], expected: str, shown: float
) -> None:
    found = [effect_of(mean(value), above(mean(value))) for value in values]
    both = agreed(found)
    assert float(both.value) == pytest.approx(shown)
    assert both.interval == pytest.approx((shown - 4.3027, shown + 4.3027), abs=1e-4)
    assert verdict(both.p_values) == expected
    at_once = agreed([effect_of(one, above(one)) for one in (means(values), means(values[::-1]))])
    assert at_once.value == pytest.approx([shown, shown]), "of several simulated runs, each its own"


def means(values: Sequence[float]) -> CrossedEstimate:
    """As `mean`, of several runs."""
    return over_seeds(np.array(values)[:, None] + np.array([-1.0, 0.0, 1.0]) * np.sqrt(3))


def rising_by(*own: Sequence[float]) -> PValues:
    """Of seeds with these scores at the points."""
    return rises(np.array(own, np.float64).T)[0].p_values


def test_an_order_needs_rare_orders_and_seeds_that_agree() -> None:
    steady = [1, 2, 3, 4, 5]
    assert verdict(rising_by(steady, steady, steady)) == CONFIRMED
    assert verdict(rising_by(*[[-one for one in steady]] * 3)) == REFUTED
    almost = [1, 2, 3, 5, 4]  # rho 0.9, which 5 of 120 orders reach
    assert float(rising_by(almost, almost, almost).holds) == pytest.approx(5 / 120)
    # one seed collapses at one layer, as on MNLI once: rho 0.4, which 26 % of orders reach
    collapsed = [72.8, 34.2, 66.6, 72.0, 80.2]
    effect, share = rises(np.array([collapsed] * 3).T)
    assert float(effect.value) == pytest.approx(0.4)
    reached = [
        np.corrcoef(order, range(5))[0, 1] >= 0.4 - 1e-9
        for order in itertools.permutations(range(5))
    ]
    assert share == pytest.approx(np.mean(reached))
    assert effect.interval is None
    assert verdict(effect.p_values) == UNDECIDED
    # a huge rise of one seed makes the means rise, and the other two do not agree
    alone = [[100 * one for one in steady], [2, 3, 1, 2, 1], [3, 1, 2, 1, 2]]
    assert rises(np.array(alone, np.float64).T)[1] <= 1 / 120
    assert verdict(rising_by(*alone)) == UNDECIDED
    assert verdict(rising_by(*[[1, 2, 3]] * 3)) == UNDECIDED, "one order of three points in six"


def test_the_spread_over_seeds_is_students_t() -> None:
    low, high = over_seeds(np.array([1.0, 2.0, 3.0])).interval() or (0, 0)
    assert (low, high) == pytest.approx(
        (2 - 4.3027 / np.sqrt(3), 2 + 4.3027 / np.sqrt(3)), abs=1e-4
    )


def test_the_rule_in_words_names_what_the_file_fixes() -> None:
    text = " ".join(rule_in_words(RULES))
    for key in RULES.primary:
        assert RULES.table5[key].statement in text
    assert "at most 5%" in text
    assert "Under 3 seeds" in text
    assert isinstance(RULES.table5["lstm_below"], Table5Rule)
