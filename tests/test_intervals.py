"""Draws of clusters, Student's t over seeds and Holm: against hands, other implementations and a
simulation.
"""

import numpy as np
import pytest
from scipy import stats

from gpt1.results.intervals import LEVEL, deviation_of, holm, margin, p_value, resampled_scores
from gpt1.tasks.metrics import METRICS, score


@pytest.mark.parametrize("metric", METRICS)
def test_the_first_draw_is_the_score_itself(metric):
    generator = np.random.default_rng(3)
    for rows, kind in ((60, "plain"), (41, "one answer"), (30, "one label"), (1, "plain")):
        labels = generator.integers(2, size=rows)
        answers = np.where(generator.random((3, rows)) < 0.7, labels, 1 - labels)
        if metric in ("pearson", "spearman"):
            answers = answers + generator.normal(size=answers.shape)
        if kind == "one answer":
            answers[1] = 1
        if kind == "one label":
            labels[:] = 1
        if rows == 1 and metric in ("pearson", "spearman"):
            continue  # undefined to scipy
        found = resampled_scores(metric, labels, answers, np.arange(rows) // 3)[:, 0]
        by_hand = [100 * score(metric, labels, one) for one in answers]
        assert found == pytest.approx(by_hand, abs=1e-9)


def test_draws_spread_as_the_binomial_does_and_more_where_clusters_agree():
    labels = np.ones(400, int)
    answers = (np.arange(400) < 300).astype(int)[None]
    alone = resampled_scores("accuracy", labels, answers, np.arange(400))[0, 1:].std()
    together = resampled_scores("accuracy", labels, answers, np.arange(400) // 10)[0, 1:].std()
    assert alone == pytest.approx(100 * np.sqrt(0.75 * 0.25 / 400), rel=0.2)
    assert together == pytest.approx(100 * np.sqrt(0.75 * 0.25 / 40), rel=0.2)
    one = resampled_scores("accuracy", labels, answers, np.zeros(400))[0, 1:]
    assert np.isnan(one).all(), "one cluster tells nothing of others"


def test_margins_by_hand():
    assert margin(0.05, 2.0, 2, 0.0) == pytest.approx(12.706205 * 2 / np.sqrt(2), rel=1e-6)
    assert margin(0.05, 0.0, 5, 1.0) == pytest.approx(1.959964, rel=1e-6)
    assert margin(0.05, 2.0, 3, 1.0) == pytest.approx(np.hypot(4.968276, 1.959964), rel=1e-6)
    assert np.isnan(margin(0.05, 2.0, 1, 1.0)), "one seed has no spread"


def test_seeds_that_are_alike_by_luck_are_not_trusted():
    opposed = np.array([[0.0, 3.0, 6.0], [6.0, 3.0, 0.0]])  # their means are all 3
    assert deviation_of(opposed) == pytest.approx(np.sqrt(9 + 9) / 2)
    assert deviation_of(opposed[:1]) == pytest.approx(3)
    assert deviation_of(np.stack([opposed[0]] * 2)) == pytest.approx(3), "all of it shared"


def test_p_is_where_the_interval_reaches_zero():
    for value, deviation, seeds, error in ((3.0, 2.0, 3, 0.5), (0.1, 2.0, 5, 0.5), (9.0, 0, 4, 1)):
        p = p_value(value, deviation, seeds, error)
        assert margin(p, deviation, seeds, error) == pytest.approx(value, rel=1e-6)
    by_t = stats.ttest_1samp([1.0, 2.0, 4.0], 0).pvalue
    assert p_value(7 / 3, np.std([1, 2, 4], ddof=1), 3, 0.0) == pytest.approx(by_t, rel=1e-6)
    assert p_value(5.0, np.nan, 1, 0.1) == 1


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.5, 0.9, 0.7])) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_intervals_hold_the_true_number_and_alarms_are_rare(shared):
    """300 runs of 3 claims, 3 seeds and 3 tasks of 200 examples; benchmarks/coverage.py has more."""
    generator, shape = np.random.default_rng(5), (3, 300, 3)  # claim, run, seed
    common, drawn = generator.normal(0, np.sqrt(shared), shape), []
    for task in range(3):
        noise = 3 * (common + generator.normal(0, np.sqrt(1 - shared), shape))
        chance = 0.7 + np.stack([noise, np.zeros(shape)]) / 100
        depth = generator.random((3, 300, 1, 200))  # of an example, for both systems and all seeds
        answers = (depth + generator.random((2, *shape, 200))) / 2
        right, labels = answers < chance[..., None], np.ones(200, bool)
        ours, theirs = resampled_scores("accuracy", labels, right, np.arange(200), seed=task)
        drawn.append(ours - theirs)
    each = np.stack(drawn)  # [task, claim, run, seed, 1 + draws]
    value, deviation = each[..., 0].mean(axis=(0, 3)), deviation_of(each[..., 0])
    error = each[..., 1:].mean(axis=(0, 3)).std(axis=-1, ddof=1)
    held = abs(value) <= margin(LEVEL, deviation, 3, error)
    alarms = (holm(p_value(value, deviation, 3, error)) <= LEVEL).any(axis=0)
    assert held.mean() >= 0.94
    assert alarms.mean() <= 0.05
