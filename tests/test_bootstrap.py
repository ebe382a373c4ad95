"""The bootstrap behind every interval, against a loop, against scipy's, against what is known by
hand.
"""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from gpt1.results.bootstrap import (
    REPLICATES,
    Resample,
    ScoredRows,
    less,
    mean_of,
    over_seeds,
    resample,
    weighted_scores,
)


def by_loop(metric, labels, answers):
    """The scores by scikit-learn and scipy, one at a time."""
    if metric == "accuracy":
        return float((labels == answers).mean())
    if metric in ("pearson", "spearman"):
        correlation = stats.pearsonr if metric == "pearson" else stats.spearmanr
        return (
            0.0
            if np.ptp(answers) == 0 or np.ptp(labels) == 0
            else float(correlation(labels, answers).statistic)
        )
    return float((f1_score if metric == "f1" else matthews_corrcoef)(labels, answers))


@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews", "pearson", "spearman"])
def test_scores_of_drawn_rows_are_those_of_a_loop(metric):
    generator = np.random.default_rng(3)
    real = metric in ("pearson", "spearman")
    labels = (
        np.round(generator.normal(size=60), 1) + 100 if real else generator.integers(2, size=60)
    )  # with ties
    answers = np.stack(
        [
            np.where(generator.random(60) < 0.8, labels, 1 - labels),
            np.ones(60) * labels[0],
            labels + 0.0,
        ]
    )
    if real:
        answers[0] += generator.normal(size=60)
    drawn = generator.integers(60, size=(25, 60))
    drawn[0] = 7  # one row sixty times: nothing varies, and one class only
    counts = np.stack([np.bincount(rows, minlength=60) for rows in drawn]).astype(float)
    expected = [
        [by_loop(metric, labels[rows], answer[rows]) for rows in drawn] for answer in answers
    ]
    assert weighted_scores(metric, labels, answers, counts) == pytest.approx(
        np.array(expected), abs=1e-9
    )
    with pytest.raises(ValueError, match="expected accuracy"):
        weighted_scores("bleu", labels, answers, counts)


def test_interval_of_an_accuracy_has_the_width_of_the_binomial():
    labels = np.ones(900, dtype=int)
    answers = (np.arange(900) < 720).astype(int)
    estimate = over_seeds(
        "rte", resample("rte", [ScoredRows("accuracy", labels, {("full", 0): answers})])["full"]
    )
    low, high = estimate.interval
    assert estimate.value == 80.0
    assert high - low == pytest.approx(2 * 1.96 * 100 * math.sqrt(0.8 * 0.2 / 900), rel=0.08)
    assert np.std(estimate.replicates) == pytest.approx(100 * math.sqrt(0.8 * 0.2 / 900), rel=0.08)


def test_a_difference_agrees_with_scipy_s_paired_bootstrap_and_pairing_narrows_it():
    generator = np.random.default_rng(1)
    labels = generator.integers(2, size=400)
    one = np.where(generator.random(400) < 0.8, labels, 1 - labels)
    other = np.where(
        generator.random(400) < 0.1, 1 - one, one
    )  # right and wrong on mostly the same rows
    samples = resample(
        "rte", [ScoredRows("accuracy", labels, {("one", 0): one, ("other", 0): other})]
    )
    estimate = over_seeds("rte", less(samples["one"], samples["other"]))
    theirs = stats.bootstrap(
        ((one == labels).astype(float), (other == labels).astype(float)),
        lambda a, b, axis: 100 * (a.mean(axis) - b.mean(axis)),
        paired=True,
        method="percentile",
        n_resamples=4000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert estimate.interval == pytest.approx((theirs.low, theirs.high), abs=0.6)
    apart = resample("sst2", [ScoredRows("accuracy", labels, {("other", 0): other})])[
        "other"
    ]  # its own rows
    unpaired = samples["one"].replicates[0] - apart.replicates[0]
    assert np.std(estimate.replicates) < 0.7 * np.std(unpaired)


def test_seeds_are_drawn_with_their_whole_variance_and_alike_for_both():
    still = {
        seed: np.full(REPLICATES, value) for seed, value in enumerate((10.0, 14.0, 15.0))
    }  # no spread over examples
    estimate = over_seeds("rte", Resample({0: 10.0, 1: 14.0, 2: 15.0}, still))
    assert np.var(estimate.replicates) == pytest.approx(
        np.var([10, 14, 15], ddof=1) / 3, rel=0.1
    )  # s^2 / n
    one = Resample({0: 50.0, 1: 70.0}, {0: np.full(REPLICATES, 50.0), 1: np.full(REPLICATES, 70.0)})
    other = Resample(
        {1: 69.0, 0: 49.0, 5: 0.0},
        {seed: np.full(REPLICATES, value) for seed, value in ((1, 69.0), (0, 49.0), (5, 0.0))},
    )
    difference = over_seeds(
        "rte", less(one, other)
    )  # each seed loses 1, and seed 5 has no counterpart
    assert (difference.value, difference.interval) == (1.0, pytest.approx((1.0, 1.0)))
    with pytest.raises(ValueError, match="a seed that both have"):
        less(one, Resample({9: 1.0}, {9: np.ones(REPLICATES)}))


def test_tasks_are_drawn_apart_and_equal_calls_are_equal():
    labels = np.arange(300) % 2
    answers = np.where(np.arange(300) % 5 == 0, 1 - labels, labels)
    part = [ScoredRows("accuracy", labels, {("full", 0): answers})]
    first, again, other = (
        over_seeds(name, resample(name, part)["full"]) for name in ("rte", "rte", "qnli")
    )
    assert np.array_equal(first.replicates, again.replicates)
    assert abs(np.corrcoef(first.replicates, other.replicates)[0, 1]) < 0.15
    mean = mean_of([first, other])
    assert mean.value == 80.0
    assert mean.seeds == 1
    assert np.std(mean.replicates) == pytest.approx(
        np.std(first.replicates) / math.sqrt(2), rel=0.1
    )
