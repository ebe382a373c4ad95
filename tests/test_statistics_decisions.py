"""Tests of claims, orders and power, against statsmodels' and scipy's numbers and counts by hand.

Numbers of statsmodels are those of its release 0.15.0, written down, for it is no dependency.
"""

import numpy as np
import pytest
from scipy import stats

from gpt1.results.statistics.decisions import (
    holm,
    p_any,
    p_equivalent,
    p_every,
    p_value,
)
from gpt1.results.statistics.estimates import estimate
from gpt1.results.statistics.jackknife import JackknifeScores
from gpt1.results.statistics.order import rising


def of_seeds(*values):
    """A number that only seeds make uncertain."""
    return estimate([JackknifeScores(np.array(values), np.zeros((len(values), 5)))])


def test_holm_is_statsmodels():
    found = holm(np.array([0.01, 0.04, 0.03, 0.005, 0.2]))  # multipletests(…, method="holm")
    np.testing.assert_allclose(found, [0.04, 0.09, 0.09, 0.025, 0.2])
    np.testing.assert_allclose(holm(np.array([0.02, 0.9, 0.6])), [0.06, 1, 1])  # by hand
    columns = np.array([[0.01, 0.9], [0.04, 0.01]])
    np.testing.assert_allclose(holm(columns), [[0.02, 0.9], [0.04, 0.02]])


def test_equivalence_is_statsmodels():
    found = of_seeds(1.2, 0.4, -0.3, 0.9, 0.5)
    # ttost_paired(x, 0, -1, 1.5): 0.00974, the larger of both sides.
    assert p_equivalent(found, 0.25, 1.25) == pytest.approx(0.009742526202379004)
    assert p_value(found, -1, direction=1) == pytest.approx(0.0018727690628730783)


def test_a_wide_interval_is_no_evidence_of_a_size():
    wide, narrow = of_seeds(-20.0, 14.8, 50.0), of_seeds(14.6, 14.8, 15.1)
    assert p_equivalent(wide, 14.8, 2) > 0.4
    assert p_equivalent(narrow, 14.8, 2) < 0.01


def test_no_help_is_a_bound_from_above():
    nothing = of_seeds(0.1, -0.2, 0.0, 0.1, -0.1)
    assert p_value(nothing, 1.0, direction=-1) < 0.001
    assert p_value(of_seeds(0.1, -2.0, 3.0), 1.0, direction=-1) > 0.05


def test_every_part_needs_each_and_any_part_pays_for_their_number():
    assert p_every([0.01, 0.04, 0.03]) == 0.04
    assert p_any([np.array(0.02), np.array(0.5), np.array(0.9)]) == pytest.approx(0.06)
    assert p_any([np.array(0.6), np.array(0.5)]) == 1


def test_a_difference_of_exactly_nothing_is_not_rejected():
    assert p_value(of_seeds(0.0, 0.0, 0.0)) == pytest.approx(1)
    assert p_value(of_seeds(0.0, 0.0, 0.0), direction=1) == pytest.approx(0.5)
    assert p_value(of_seeds(-1.0, 0.0, 1.0)) == pytest.approx(1)


def test_a_direction_is_1_0_or_minus_1():
    with pytest.raises(ValueError, match="found 2"):
        p_value(of_seeds(1.0, 2.0, 3.0), direction=2)


def three_seeds(*means):
    return np.array(means)[:, None] + np.array([-0.1, 0.0, 0.1])


@pytest.mark.parametrize(
    ("means", "correlation", "share"),
    [
        ([1, 2, 3, 4], 1, 1 / 24),
        ([1, 2, 3, 5, 4], 0.9, 5 / 120),
        ([72.8, 34.2, 66.6, 72.0, 80.2], 0.4, 31 / 120),
        ([4, 3, 2, 1], -1, 1),
        ([5, 5, 5, 5], 0, 1),
        ([*range(8)], 1, 1 / 40_320),
    ],
)
def test_a_rise_is_judged_by_all_orders(means, correlation, share):
    assert rising(three_seeds(*means)) == pytest.approx((correlation, share))


def test_a_rise_is_scipys_permutation_test():
    means = [3.0, 1.0, 4.0, 4.0, 5.0, 9.0]  # with a tie
    found = stats.permutation_test(
        (means,),
        lambda y: stats.spearmanr(np.arange(6), y).statistic,
        permutation_type="pairings",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=False,
    )
    assert rising(three_seeds(*means)) == pytest.approx((found.statistic, found.pvalue))


def test_many_points_are_judged_as_scipy_does():
    means = np.random.default_rng(0).normal(size=12) + np.arange(12) / 3
    right = stats.spearmanr(np.arange(12), means, alternative="greater")
    assert rising(three_seeds(*means)) == pytest.approx((right.statistic, right.pvalue))


def test_what_one_seed_does_at_a_point_is_no_fact_of_the_point():
    steady = np.array([[1.0, 1.1, 0.9], [2.0, 2.2, 1.9], [3.0, 3.1, 2.8], [4.0, 4.1, 3.9]])
    assert rising(steady) == pytest.approx((1, 1 / 24))
    assert rising(steady[:, :2]) == pytest.approx((1, 1))
