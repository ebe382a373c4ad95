"""The rule for a verdict, the bootstrap behind it, and the claims that come out of results of known
scores.
"""

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import made_curves
import made_results
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from gpt1.errors import UserError
from gpt1.params.schema import read_params
from gpt1.report import claims_page
from gpt1.report.ablations import ablation
from gpt1.report.bootstrap import (
    REPLICATES,
    Part,
    Sample,
    less,
    mean_of,
    over_seeds,
    resample,
    weighted_scores,
)
from gpt1.report.claims import ablation_claims, rank_correlation, transfer_claims
from gpt1.report.verdict import CONFIRMED, NOT_CONFIRMED, NOT_MEASURED, UNDECIDED, together, verdict
from gpt1.report.zero_shot_claims import unsteadiness, zero_shot_claims

SETS = {name: {"train_rows": None, "rows": None} for name in ("cola", "sst2", "race", "dprd")}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_lstm()


@pytest.mark.parametrize(
    ("interval", "direction", "size", "expected"),
    [
        ((1.0, 3.0), 1, None, CONFIRMED),
        ((-3.0, -1.0), 1, None, NOT_CONFIRMED),
        ((-1.0, 3.0), 1, None, UNDECIDED),
        ((0.0, 3.0), 1, None, UNDECIDED),  # a bound of 0 holds 0
        ((-3.0, -1.0), -1, None, CONFIRMED),
        ((1.0, 3.0), -1, None, NOT_CONFIRMED),
        ((-1.0, 1.0), -1, None, UNDECIDED),
        ((10.0, 16.0), 1, 14.8, CONFIRMED),
        ((2.0, 6.0), 1, 14.8, NOT_CONFIRMED),  # the right direction, another size
        ((16.0, 20.0), 1, 14.8, NOT_CONFIRMED),
        ((-1.0, 20.0), 1, 14.8, UNDECIDED),  # holds both the number and 0
        ((-5.0, 5.0), 1, 14.8, NOT_CONFIRMED),
        ((-9.0, -5.0), 1, 14.8, NOT_CONFIRMED),
        ((14.8, 15.0), 1, 14.8, CONFIRMED),
    ],
)
def test_the_rule(interval, direction, size, expected):
    assert verdict(interval, direction, size) == expected


def test_the_rule_for_several_parts_and_for_nonsense():
    assert together([CONFIRMED, CONFIRMED]) == CONFIRMED
    assert together([CONFIRMED, UNDECIDED]) == UNDECIDED
    assert together([UNDECIDED, NOT_CONFIRMED, CONFIRMED]) == NOT_CONFIRMED
    with pytest.raises(ValueError, match="at least one part"):
        together([])
    for interval, direction in (((2.0, 1.0), 1), ((1.0, 2.0), 0)):
        with pytest.raises(ValueError, match="direction of 1 or -1"):
            verdict(interval, direction, None)


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
        "rte", resample("rte", [Part("accuracy", labels, {("full", 0): answers})])["full"]
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
    samples = resample("rte", [Part("accuracy", labels, {("one", 0): one, ("other", 0): other})])
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
    apart = resample("sst2", [Part("accuracy", labels, {("other", 0): other})])[
        "other"
    ]  # its own rows
    unpaired = samples["one"].replicates[0] - apart.replicates[0]
    assert np.std(estimate.replicates) < 0.7 * np.std(unpaired)


def test_seeds_are_drawn_with_their_whole_variance_and_alike_for_both():
    still = {
        seed: np.full(REPLICATES, value) for seed, value in enumerate((10.0, 14.0, 15.0))
    }  # no spread over examples
    estimate = over_seeds("rte", Sample({0: 10.0, 1: 14.0, 2: 15.0}, still))
    assert np.var(estimate.replicates) == pytest.approx(
        np.var([10, 14, 15], ddof=1) / 3, rel=0.1
    )  # s^2 / n
    one = Sample({0: 50.0, 1: 70.0}, {0: np.full(REPLICATES, 50.0), 1: np.full(REPLICATES, 70.0)})
    other = Sample(
        {1: 69.0, 0: 49.0, 5: 0.0},
        {seed: np.full(REPLICATES, value) for seed, value in ((1, 69.0), (0, 49.0), (5, 0.0))},
    )
    difference = over_seeds(
        "rte", less(one, other)
    )  # each seed loses 1, and seed 5 has no counterpart
    assert (difference.value, difference.interval) == (1.0, pytest.approx((1.0, 1.0)))
    with pytest.raises(ValueError, match="a seed that both have"):
        less(one, Sample({9: 1.0}, {9: np.ones(REPLICATES)}))


def test_tasks_are_drawn_apart_and_equal_calls_are_equal():
    labels = np.arange(300) % 2
    answers = np.where(np.arange(300) % 5 == 0, 1 - labels, labels)
    part = [Part("accuracy", labels, {("full", 0): answers})]
    first, again, other = (
        over_seeds(name, resample(name, part)["full"]) for name in ("rte", "rte", "qnli")
    )
    assert np.array_equal(first.replicates, again.replicates)
    assert abs(np.corrcoef(first.replicates, other.replicates)[0, 1]) < 0.15
    mean = mean_of([first, other])
    assert mean.value == 80.0
    assert np.std(mean.replicates) == pytest.approx(
        np.std(first.replicates) / math.sqrt(2), rel=0.1
    )


def test_rank_correlation_is_spearman_s():
    values = np.random.default_rng(0).integers(4, size=(6, 20)).astype(float)  # with ties
    at = [1, 10, 30, 100, 300, 1000]
    assert rank_correlation(at, values) == pytest.approx(
        [stats.spearmanr(at, column).statistic for column in values.T]
    )
    assert rank_correlation(at, np.ones((6, 1))).tolist() == [0.0]


def test_unsteadiness_is_the_variance_of_noise_and_none_of_a_line():
    at = np.sort(np.random.default_rng(0).uniform(0, 10, size=400))
    assert unsteadiness(at, (3 * at + 1)[:, None]) == pytest.approx([0.0], abs=1e-18)
    noise = np.random.default_rng(1).normal(scale=2.0, size=(400, 50))
    assert unsteadiness(at, 5 * at[:, None] + noise).mean() == pytest.approx(4.0, rel=0.05)
    assert unsteadiness(
        np.array([0.0, 1.0, 3.0]), np.array([[0.0], [4.0], [3.0]])
    ) == pytest.approx([9 / (4 / 9 + 1 / 9 + 1)])


def claims_by_key(claims):
    return {claim.key: claim for claim in claims}


def write_ablations(tasks, skills, seeds=(0, 1), rows=200, **sections):
    variants = tuple(name for name in skills if name != "full")
    made_results.write_params(
        list(tasks), list(seeds), ablate=made_results.ablate_rows(variants, tasks), **sections
    )
    made_results.write_drawn(tasks, skills, seeds, rows)
    return read_params()


def test_claims_about_table_5():
    params = write_ablations(
        made_results.GLUE_TASKS, {"full": 2.0, "no_pretraining": 0.5, "no_aux_lm": 1.2, "lstm": 1.3}
    )
    found = claims_by_key(ablation_claims(params, ablation(params)))
    helps, size = found["pretraining_helps"], found["pretraining_size"]
    assert (helps.verdict, helps.published_value) == (CONFIRMED, pytest.approx(14.8))
    assert helps.estimate.value > 20
    assert size.verdict == NOT_CONFIRMED  # far more than 14.8
    assert (found["aux_lm_larger"].verdict, found["aux_lm_larger"].published) == (CONFIRMED, "+0.8")
    assert (found["aux_lm_smaller"].verdict, found["aux_lm_smaller"].published) == (
        NOT_CONFIRMED,
        "-1.1",
    )  # it helps there too
    assert (found["lstm_below"].verdict, found["lstm_below"].published) == (CONFIRMED, "+5.6")
    only = found["lstm_only_mrpc"]
    assert (only.verdict, only.estimate.value, only.detail) == (NOT_CONFIRMED, 0, "none")
    assert helps.basis == "8 tasks, 2 seeds, 1,800 examples"  # MNLI has two parts
    assert not helps.made_up


def test_claims_over_some_tasks_take_the_paper_s_number_over_the_same():
    params = write_ablations(("cola", "rte"), {"full": 2.0, "no_pretraining": 2.0})
    found = claims_by_key(ablation_claims(params, ablation(params)))
    helps = found["pretraining_helps"]
    assert helps.published_value == pytest.approx((45.4 - 18.9 + 56.0 - 53.8) / 2)
    assert (
        helps.basis
        == "2 tasks, 2 seeds, 400 examples (CoLA, RTE of 8; the paper's number over the same)"
    )
    assert helps.verdict == UNDECIDED
    larger, lstm = found["aux_lm_larger"], found["lstm_below"]
    assert (larger.verdict, larger.basis) == (
        NOT_MEASURED,
        "qqp, mnli, qnli not among the tasks of params.yaml",
    )
    assert (lstm.verdict, lstm.estimate) == (NOT_MEASURED, None)
    assert "ablate has too few rows of lstm" in lstm.basis


def test_a_claim_that_turns_on_an_absent_task_names_it():
    params = write_ablations(("cola", "rte"), {"full": 2.0, "lstm": 2.0})
    only = claims_by_key(ablation_claims(params, ablation(params)))["lstm_only_mrpc"]
    assert only.verdict == NOT_MEASURED
    assert "mrpc" in only.basis
    assert "not among the tasks of params.yaml" in only.basis


def test_three_numbers_of_layers_are_too_few_for_an_order():
    made_curves.write_params(
        4,
        [0],
        made_up=True,
        zero_shot={},
        transfer={
            "mnli": {"group": "glue_nli", "layers": [0, 2], "seeds": None},
            "race": {"group": "qa", "layers": [0], "seeds": None},
        },
    )
    made_curves.write_transfer("mnli", "dev", 300, {0: {0: 120}, 2: {0: 100}, 4: {0: 250}}, 4)
    made_curves.write_transfer("race", "test", 300, {0: {0: 90}, 4: {0: 91}}, 4)
    found = claims_by_key(transfer_claims(read_params()))
    assert (found["transfer_mnli_each"].verdict, found["transfer_mnli"].verdict) == (
        NOT_MEASURED,
        CONFIRMED,
    )
    assert "3 numbers of layers" in found["transfer_mnli_each"].basis


def test_transfer_claims():
    made_curves.write_params(
        4,
        [0],
        made_up=True,
        transfer={
            "mnli": {"group": "glue_nli", "layers": None, "seeds": None},
            "race": {"group": "qa", "layers": [0], "seeds": None},
        },
        zero_shot={},
    )
    made_curves.write_transfer(
        "mnli", "dev", 300, {count: {0: 120 + 25 * count} for count in range(5)}, 4
    )
    made_curves.write_transfer("race", "test", 300, {0: {0: 90}, 4: {0: 91}}, 4)
    found = claims_by_key(transfer_claims(read_params()))
    assert found["transfer_mnli"].estimate.value == pytest.approx(100 * 100 / 300)
    assert (found["transfer_mnli"].verdict, found["transfer_mnli"].made_up) == (CONFIRMED, True)
    assert (found["transfer_mnli_size"].verdict, found["transfer_mnli_size"].published) == (
        NOT_CONFIRMED,
        "+9",
    )
    assert (found["transfer_mnli_each"].verdict, found["transfer_mnli_each"].estimate.value) == (
        CONFIRMED,
        pytest.approx(1.0),
    )
    assert (found["transfer_race"].verdict, found["transfer_race"].estimate.value) == (
        UNDECIDED,
        pytest.approx(100 / 300),
    )
    assert found["transfer_race_each"].verdict == NOT_MEASURED


UPDATES = [1, 10, 100, 1000, 10000]


def test_zero_shot_claims():
    made_curves.write_params(4, [0], made_up=False, zero_shot=SETS)
    rising, flat = [200, 220, 240, 260, 280], [200, 201, 199, 200, 200]
    made_curves.write_zero_shot(
        "transformer",
        400,
        {
            name: dict(zip(UPDATES, flat if name == "dprd" else rising, strict=True))
            for name in SETS
        },
    )
    made_curves.write_zero_shot(
        "lstm",
        400,
        {name: dict(zip(UPDATES, [200, 240, 200, 240, 200], strict=True)) for name in SETS},
    )
    found = claims_by_key(zero_shot_claims(read_params()))
    sst2 = found["zero_shot_sst2"]
    assert (sst2.estimate.value, sst2.verdict, sst2.detail) == (
        20.0,
        CONFIRMED,
        "from 50.0 to 70.0",
    )
    assert found["zero_shot_sst2_steadily"].verdict == CONFIRMED
    assert found["zero_shot_dprd"].verdict == UNDECIDED
    together_ = found["zero_shot_all"]
    assert (together_.verdict, together_.estimate.value, together_.published) == (
        UNDECIDED,
        3,
        "4 of 4",
    )
    assert found["zero_shot_above_lstm"].verdict == CONFIRMED
    assert found["zero_shot_lstm_variance"].verdict == CONFIRMED
    assert found["zero_shot_lstm_variance"].estimate.value > 0


def test_zero_shot_without_the_lstm_or_with_one_snapshot_is_not_measured():
    made_curves.write_params(4, [0], made_up=False)
    values = json.loads(Path("params.yaml").read_text())
    values |= {"variants": {}, "zero_shot": {"sst2": SETS["sst2"]}}
    Path("params.yaml").write_text(json.dumps(values))
    made_curves.write_zero_shot("transformer", 100, {"sst2": {5: 60}})
    found = claims_by_key(zero_shot_claims(read_params()))
    assert {claim.verdict for claim in found.values()} == {NOT_MEASURED}
    assert (
        found["zero_shot_lstm_variance"].basis == "no variant in params.yaml has the network lstm"
    )
    assert found["zero_shot_race"].basis == "zero_shot has no row race in params.yaml"
    assert "1 snapshot; at least 4" in found["zero_shot_sst2"].basis


def test_the_stage_writes_its_files_twice_the_same():
    write_ablations(("rte", "sst2"), {"full": 2.0, "no_pretraining": 0.1}, rows=100)
    first = subprocess.run(
        [sys.executable, "-m", "gpt1.stages", "report", "claims"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GPT1_MLFLOW": "off"},
    )
    assert first.returncode == 0, first.stderr
    folder = Path("data/report/claims")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == [
        "claims.csv",
        "claims.md",
        "claims.png",
        "claims.svg",
        "claims.tex",
        "metrics.json",
    ]
    claims_page.write(read_params(), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert first.stdout.strip() == before["claims.md"].decode().strip()
    numbers = json.loads(before["metrics.json"])["claims"]
    rows = {row["claim"]: row for row in csv.DictReader((folder / "claims.csv").open(newline=""))}
    assert numbers["pretraining_helps"]["confirmed"] == 1
    assert float(rows["pretraining_helps"]["ours"]) == pytest.approx(
        numbers["pretraining_helps"]["ours"], abs=1e-4
    )
    assert rows["transfer_race"]["verdict"] == NOT_MEASURED
    assert sum(numbers["verdicts"].values()) == len(rows)
    assert "Rule: A claim of a direction is confirmed where" in first.stdout


def test_scores_that_params_name_but_are_not_there_are_one_line():
    write_ablations(("rte",), {"full": 2.0}, zero_shot={"sst2": SETS["sst2"]})
    with pytest.raises(
        UserError,
        match=(
            r"^data/zero_shot/transformer/scores.json is not there; run dvc repro"
            r" zero_shot@transformer$"
        ),
    ):
        claims_page.write(read_params(), Path())
