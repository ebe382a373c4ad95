"""Intervals over seeds and examples, against loops, scipy and analyses of variance by hand."""

import numpy as np
import pytest
from scipy import stats

from gpt1.results.formats import ends, with_interval
from gpt1.results.statistics.decisions import p_value
from gpt1.results.statistics.estimates import degrees, estimate
from gpt1.results.statistics.jackknife import (
    JackknifeScores,
    jackknife,
    less,
    mean_of_metrics,
    mean_of_parts,
    repeated,
)
from gpt1.tasks.metrics import METRICS, score


def made_answers(metric, seeds=3, rows=60, seed=0):
    """Labels with ties where they are numbers, answers of several seeds, and clusters of 1 to 4
    rows that do not stand together.
    """
    generator = np.random.default_rng(seed)
    clusters = generator.permutation(
        np.repeat(np.arange(rows), generator.integers(1, 5, rows))[:rows]
    )
    if metric in ("pearson", "spearman"):
        labels = generator.integers(6, size=rows).astype(float)
        answers = np.round(labels + generator.normal(0, 2, (seeds, rows)), 1)
    else:
        labels = generator.integers(2, size=rows)
        answers = np.where(generator.random((seeds, rows)) < 0.8, labels, 1 - labels)
    return labels, answers, clusters


@pytest.mark.parametrize("metric", METRICS)
def test_scores_and_shares_are_those_of_leaving_out_cluster_by_cluster(metric):
    labels, answers, clusters = made_answers(metric)
    found = jackknife(metric, labels, answers, clusters)
    names = np.unique(clusters)
    for place, answer in enumerate(answers):
        assert found.by_seed[place] == pytest.approx(100 * score(metric, labels, answer))
        left = np.array(
            [
                100 * score(metric, labels[clusters != name], answer[clusters != name])
                for name in names
            ]
        )
        variance = (len(names) - 1) / len(names) * ((left - left.mean()) ** 2).sum()
        assert (found.shares[place] ** 2).sum() == pytest.approx(variance)


@pytest.mark.parametrize("metric", METRICS)
def test_the_error_is_that_of_scipys_bootstrap(metric):
    labels, answers, _ = made_answers(metric, seeds=1, rows=400)
    found = jackknife(metric, labels, answers, np.arange(400))
    drawn = stats.bootstrap(
        (labels, answers[0]),
        lambda x, y: 100 * score(metric, x, y),
        paired=True,
        vectorized=False,
        n_resamples=200,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    error = np.sqrt((found.shares**2).sum())
    assert error == pytest.approx(drawn.standard_error, rel=0.15)


def test_copies_of_a_row_say_nothing_new_where_they_are_one_cluster():
    labels, answers, _ = made_answers("accuracy", rows=50)
    once = jackknife("accuracy", labels, answers, np.arange(50))
    copied = [np.repeat(values, 4, axis=-1) for values in (labels, answers, np.arange(50))]
    four_times = jackknife("accuracy", *copied)
    np.testing.assert_allclose(four_times.shares, once.shares)
    apart = jackknife("accuracy", *copied[:2], np.arange(200))
    assert (apart.shares**2).sum() < 0.3 * (once.shares**2).sum()


@pytest.mark.parametrize("metric", ["f1", "matthews", "pearson", "spearman"])
def test_an_undefined_score_is_0(metric):
    labels, answers, clusters = made_answers(metric)
    nothing = jackknife(metric, labels, np.zeros_like(answers), clusters)
    assert not nothing.by_seed.any()
    assert not nothing.shares.any()


@pytest.mark.parametrize("metric", METRICS)
def test_runs_side_by_side_are_runs_one_by_one(metric):
    made = [made_answers(metric, seed=seed) for seed in (0, 1)]
    labels, answers, _ = (np.stack(values) for values in zip(*made, strict=True))
    clusters = made[0][2]
    both = jackknife(metric, labels, answers, clusters)
    for run in (0, 1):
        alone = jackknife(metric, labels[run], answers[run], clusters)
        np.testing.assert_allclose(both.by_seed[run], alone.by_seed)
        np.testing.assert_allclose(both.shares[run], alone.shares, atol=1e-9)


def test_seeds_alone_give_students_paired_test():
    one, other = np.array([71.2, 74.5, 70.1, 73.3]), np.array([70.0, 70.9, 69.9, 71.0])
    nothing = np.zeros((4, 10))
    found = estimate([less(JackknifeScores(one, nothing), JackknifeScores(other, nothing))])
    right = stats.ttest_rel(one, other)
    assert found.interval() == pytest.approx(tuple(right.confidence_interval(0.95)))
    assert p_value(found) == pytest.approx(right.pvalue)
    above = stats.ttest_rel(one, other, alternative="greater").pvalue
    assert p_value(found, direction=1) == pytest.approx(above)
    assert p_value(found, direction=-1) == pytest.approx(1 - above)


def test_variances_are_those_of_the_two_way_analysis_by_hand():
    right = np.array([[1, 1, 0, 1, 0, 1], [1, 0, 0, 1, 0, 1], [1, 1, 1, 1, 0, 0]])
    found = estimate([jackknife("accuracy", np.ones(6), right, np.arange(6))])
    # Means of seeds 4/6, 3/6, 4/6; of examples 1, 2/3, 1/3, 1, 0, 2/3; grand mean 11/18.
    of_seeds, of_examples = np.array([4, 3, 4]) / 6, np.array([3, 2, 1, 3, 0, 2]) / 3
    between_seeds = of_seeds.var(ddof=1)
    rest = right - of_seeds[:, None] - of_examples + 11 / 18
    interaction = (rest**2).sum() / (2 * 5)
    assert found.value == pytest.approx(100 * 11 / 18)
    assert found.seed_variance == pytest.approx(1e4 * between_seeds / 3)
    assert found.example_variance == pytest.approx(
        1e4 * (of_examples.var(ddof=1) / 6 - interaction / 18)
    )


def test_the_margin_adds_the_squares_of_both_margins():
    generator = np.random.default_rng(0)
    found = estimate(
        [JackknifeScores(np.array([3.0, 7.0, 5.0]), np.tile(generator.normal(size=9), (3, 1)))]
    )
    low, high = found.interval()
    seeds = stats.t.ppf(0.975, 2) ** 2 * 4 / 3
    examples = stats.t.ppf(0.975, 8) ** 2 * found.example_variance
    assert (high - low) / 2 == pytest.approx(np.sqrt(seeds + examples))
    assert found.interval(within=(0, 6))[1] == 6
    for tail in (0.2, 0.01):
        bound = float(found.value - found.margin(tail))
        assert p_value(found, bound) == pytest.approx(2 * tail)


@pytest.mark.parametrize("seeds", [1, 2])
def test_under_three_seeds_there_is_no_interval_and_no_rejection(seeds):
    found = estimate([JackknifeScores(np.arange(seeds) + 50.0, np.full((seeds, 4), 0.1))])
    assert found.interval() is None
    assert p_value(found) == 1
    assert p_value(found, direction=1) == 1
    assert found.value == 49.5 + seeds / 2
    assert found.example_variance == pytest.approx(0.04)


def test_tasks_that_share_their_seeds_noise_count_as_one_task():
    nothing = np.zeros((3, 5))
    shared = [JackknifeScores(np.array([1.0, 5.0, 3.0]) + task, nothing) for task in range(8)]
    found = estimate(shared)
    assert found.seed_variance == pytest.approx(4 / 3)
    assert found.seed_degrees == 2
    apart = estimate(
        [JackknifeScores(np.roll([1.0, 5.0, 3.0], task), nothing) for task in range(6)]
    )
    assert apart.seed_variance == pytest.approx(4 / 3 / 6)
    assert apart.seed_degrees == 4


def test_other_tasks_lend_their_seeds_noise_to_one_that_shows_none():
    nothing = np.zeros((3, 5))
    calm, wild = (
        JackknifeScores(np.full(3, 4.0), nothing),
        JackknifeScores(np.array([0.0, 30.0, 30.0]), nothing),
    )
    assert estimate([calm]).interval() == (4, 4)
    low, high = estimate([calm], [wild, wild]).interval()
    assert low < -10
    assert high > 18
    assert estimate([wild], [calm] * 7).seed_variance == pytest.approx(100)


def test_parts_of_a_task_are_averaged_and_their_examples_are_apart():
    labels, answers, clusters = made_answers("accuracy")
    half, other = (jackknife("accuracy", labels, rows, clusters) for rows in (answers, 1 - answers))
    both = mean_of_parts([half, other])
    np.testing.assert_allclose(both.by_seed, 50)
    assert (both.shares**2).sum() == pytest.approx((half.shares**2).sum() / 2)


def test_two_metrics_of_a_task_are_averaged_on_the_same_examples():
    labels, answers, clusters = made_answers("f1")
    both = [jackknife(metric, labels, answers, clusters) for metric in ("f1", "accuracy")]
    mean = mean_of_metrics(both)
    assert mean.shares.shape == both[0].shares.shape
    assert np.allclose(mean.by_seed, (both[0].by_seed + both[1].by_seed) / 2)
    assert (mean.shares**2).sum() > (mean_of_parts(both).shares ** 2).sum(), (
        "examples that move both metrics count for both"
    )


def test_one_answer_has_the_interval_of_a_binomial_and_none_over_seeds():
    right = np.arange(80) % 4 > 0
    scores = jackknife("accuracy", np.ones(80, bool), right[None], np.arange(80))
    found = estimate([scores])
    assert found.interval() is None
    margin = stats.t.ppf(0.975, 79) * 100 * np.sqrt(0.75 * 0.25 / 79)
    assert found.example_interval() == pytest.approx((75 - margin, 75 + margin))
    assert found.example_interval(within=(0, 80))[1] == 80


def test_what_all_seeds_answer_alike_differs_from_no_seeds_by_nothing():
    labels, answers, clusters = made_answers("accuracy")
    one = jackknife("accuracy", labels, answers[:1], clusters)
    alike = jackknife("accuracy", labels, np.repeat(answers[:1], 3, axis=0), clusters)
    apart = less(alike, repeated(one, 3))
    assert np.allclose(apart.by_seed, 0)
    assert np.allclose(apart.shares, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_examples_of_one_cluster_have_a_score_and_no_interval(metric):
    labels, answers, _ = made_answers(metric)
    one = jackknife(metric, labels, answers, np.zeros(labels.shape[-1]))
    assert np.allclose(one.by_seed, [100 * score(metric, labels, answer) for answer in answers])
    found = estimate([one, jackknife(metric, *made_answers(metric, seed=1))])
    assert ends(found, metric) is None
    assert "nan" not in with_interval(found, metric)
    assert not p_value(estimate([one])) < 0.5


def test_degrees_of_freedom_lie_between_the_least_and_the_sum():
    assert degrees(np.array([2.0, 2.0, 2.0]), np.array([2, 2, 2])) == 6
    assert degrees(np.array([5.0, 0.0, 0.0]), np.array([2, 2, 2])) == 2
    assert degrees(np.zeros(3), np.array([2, 2, 2])) == 2
    assert degrees(np.array([1.0, 1.0]), np.array([4, 10])) == pytest.approx(
        4 / (1 / 6 + 1 / 12) - 2
    )


@pytest.mark.parametrize(
    ("does", "line"),
    [
        (lambda: jackknife("bleu", np.ones(2), np.ones((1, 2)), np.arange(2)), "found 'bleu'"),
        (lambda: jackknife("accuracy", np.ones(2), np.ones((1, 3)), np.arange(3)), "found 2, 3 and 3"),
        (lambda: jackknife("accuracy", np.ones(0), np.ones((1, 0)), np.zeros(0)), "found none"),
        (lambda: estimate([]), "found 0 tasks"),
        (lambda: estimate([JackknifeScores(np.ones(3), np.ones((3, 2))), JackknifeScores(np.ones(4), np.ones((4, 2)))]), r"\[3, 4\] seeds"),
        (lambda: less(JackknifeScores(np.ones(3), np.ones((3, 2))), JackknifeScores(np.ones(3), np.ones((3, 4)))), "the same seeds and clusters"),
    ],
)  # fmt: skip
def test_what_cannot_be_estimated_is_refused_in_one_line(does, line):
    with pytest.raises(ValueError, match=line):
        does()


def simulated(seeds, tasks, kind, shared, runs=3000, clusters=100):
    """Differences of so many runs: seeds' noise of 3 points, or a trick of 30 that .6 of the seeds
    find, and 2 points of error by examples.
    """
    generator = np.random.default_rng(7)
    if kind == "normal":
        common, own = (generator.normal(0, 3, (many, runs, seeds)) for many in (1, tasks))
        by_seed = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    else:
        by_seed = 30.0 * (generator.random((tasks, runs, seeds)) < 0.6) - 18
    shares = 2 * generator.normal(size=(tasks, runs, 1, clusters)) / np.sqrt(clusters)
    error = 2 * generator.normal(size=(tasks, runs, 1))
    return [
        JackknifeScores(one + off, np.broadcast_to(share, (runs, seeds, clusters)))
        for one, off, share in zip(by_seed, error, shares, strict=True)
    ]


@pytest.mark.parametrize(
    ("seeds", "tasks", "lending", "kind", "shared"),
    [
        (3, 1, 0, "normal", 0),
        (3, 8, 0, "normal", 0),
        (3, 8, 0, "normal", 0.5),
        (3, 8, 0, "normal", 1),
        (5, 3, 0, "normal", 0.5),
        (3, 1, 7, "bimodal", 0),
        (3, 3, 0, "bimodal", 0),
        (5, 8, 0, "bimodal", 0),
    ],
)
def test_intervals_hold_the_true_difference(seeds, tasks, lending, kind, shared):
    made = simulated(seeds, tasks + lending, kind, shared)
    low, high = estimate(made[:tasks], made[tasks:]).interval()
    assert ((low <= 0) & (high >= 0)).mean() >= 0.935


def test_three_seeds_that_all_find_a_trick_cannot_know_of_it():
    """.6 ** 3 + .4 ** 3 of runs show no seeds' noise at all: no rule sees there what it has not
    seen, unless other tasks tell.
    """
    low, high = estimate(simulated(3, 1, "bimodal", 0)).interval()
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(0.72, abs=0.03)
