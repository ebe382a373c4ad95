"""The tables' metrics against numbers worked out by hand and against formulas written out here."""

import math
import warnings

import numpy as np
import pytest

from gpt1.tasks.metrics import (
    answers_of,
    is_one_class,
    majority_score,
    score,
    standard_error,
)

# ten rows: 3 true positives, 1 false positive, 2 false negatives, 4 true negatives
LABELS = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
ANSWERS = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])


def test_scores_of_a_table_of_four_cells():
    for metric, value in [
        ("accuracy", 0.7),
        ("f1", 2 * 3 / (2 * 3 + 1 + 2)),
        ("matthews", (3 * 4 - 1 * 2) / math.sqrt((3 + 1) * (3 + 2) * (4 + 1) * (4 + 2))),
    ]:
        assert score(metric, LABELS, ANSWERS) == pytest.approx(value, abs=1e-12)
    assert score("f1", LABELS[6:], ANSWERS[6:]) == 0.0, "no positive anywhere"


def test_pearson_by_hand_and_spearman_of_a_monotone_curve():
    labels, answers = np.array([1.0, 2.0, 3.0], dtype=np.float32), np.array([1.0, 2.0, 4.0])
    assert score("pearson", labels, answers) == pytest.approx(3 / math.sqrt(2 * 14 / 3))
    assert score(
        "spearman", np.array([0.0, 1, 2, 3, 4]), np.exp([0.0, 1, 2, 3, 4])
    ) == pytest.approx(1.0)
    assert score("pearson", np.array([0.0, 1, 2]), np.array([4.0, 3, 2])) == pytest.approx(-1.0)


def test_answers_of_one_kind_have_no_correlation_and_no_warning():
    for metric in ["matthews", "pearson", "spearman"]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert score(metric, LABELS, np.ones(10, dtype=np.int64)) == 0.0
            assert score(metric, np.ones(10, dtype=np.int64), ANSWERS) == 0.0
            assert standard_error(metric, LABELS, np.ones(10, dtype=np.int64)) == 0.0


def test_what_has_no_score_is_refused():
    for labels, answers, words in [
        (LABELS, ANSWERS[:9], "as many predictions as labels"),
        (LABELS[:0], ANSWERS[:0], "at least one"),
        (np.array([1, -1]), np.array([1, 1]), "1 of 2 rows are unlabelled"),
    ]:
        with pytest.raises(ValueError, match=words):
            score("accuracy", labels, answers)
        with pytest.raises(ValueError, match="metric must be one of"):
            score("bleu", LABELS, ANSWERS)


def test_predictions_are_the_best_class_or_the_expected_score():
    logits = np.array([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]], dtype=np.float32)
    assert answers_of(logits, "class").tolist() == [1, 0]
    # classes 0..5 with probabilities 1/4 on 2 and 3/4 on 3: 2.75; and without overflow
    halves = np.full((2, 6), -1e4)
    halves[0, 2:4] = np.log([0.25, 0.75])
    halves[1, 4:6] = 1e4
    assert answers_of(halves, "score") == pytest.approx([2.75, 4.5])
    with pytest.raises(ValueError, match="class or score"):
        answers_of(logits, "rank")


def test_pearson_s_error_agrees_with_the_formula_for_normal_data():
    generator = np.random.default_rng(2)
    labels = generator.normal(size=800) + 10
    answers = 0.8 * labels + 0.6 * generator.normal(size=800)
    correlation = score("pearson", labels, answers)
    assert standard_error("pearson", labels, answers) == pytest.approx(
        (1 - correlation**2) / math.sqrt(799), rel=0.15
    )


def test_constant_answers_are_recognised():
    assert is_one_class(np.array([2, 2, 2]))
    assert is_one_class(np.array([2.5, 2.5 + 1e-8]))
    assert not is_one_class(np.array([0, 0, 1]))
    assert not is_one_class(np.array([2.5, 2.6]))


def test_best_constant_answer():
    for metric, value in [
        ("accuracy", 0.6),
        ("f1", 2 * 4 / (2 * 4 + 6)),
        ("matthews", 0.0),
        ("pearson", 0.0),
    ]:
        assert majority_score(metric, np.array([0] * 6 + [1] * 4)) == pytest.approx(value)
