"""The rule for a verdict, and the claims that come out of results of known scores."""

import csv
import itertools
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

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.results.ablations import ablation
from gpt1.results.bootstrap import (
    COVERAGE,
    REPLICATES,
    Estimate,
)
from gpt1.results.claims import ablation_claims, rank_correlation, transfer_claims
from gpt1.results.claims_report import claims_report, row_of
from gpt1.results.formats import write_report
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    NOT_CONFIRMED,
    NOT_MEASURED,
    UNDECIDED,
    least_ranked,
    order_verdict,
    size_verdict,
    together,
    verdict,
)
from gpt1.results.zero_shot_claims import unsteadiness, zero_shot_claims

SETS = {name: {"train_rows": None, "rows": None} for name in ("cola", "sst2", "race", "dprd")}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_lstm()


def over(low, high, seeds=2):
    """An estimate of that interval."""
    return Estimate((low + high) / 2, np.linspace(low, high, REPLICATES), seeds)


def widened(low, high, seeds=2):
    """The same, its ends those of the percentile interval."""
    middle, half = (low + high) / 2, (high - low) / 2 / COVERAGE
    return over(middle - half, middle + half, seeds)


@pytest.mark.parametrize(
    ("interval", "direction", "expected"),
    [
        ((1.0, 3.0), 1, CONFIRMED),
        ((-3.0, -1.0), 1, NOT_CONFIRMED),
        ((-1.0, 3.0), 1, UNDECIDED),
        ((0.0, 0.0), 1, UNDECIDED),  # a bound of 0 holds 0
        ((-3.0, -1.0), -1, CONFIRMED),
        ((1.0, 3.0), -1, NOT_CONFIRMED),
        ((-1.0, 1.0), -1, UNDECIDED),
    ],
)
def test_the_rule_for_a_direction(interval, direction, expected):
    assert verdict(widened(*interval), direction) == expected
    assert verdict(widened(*interval, seeds=1), direction) == UNDECIDED


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((10.0, 16.0), CONFIRMED),
        ((2.0, 6.0), NOT_CONFIRMED),  # the right direction, another size
        ((16.0, 20.0), NOT_CONFIRMED),
        ((-1.0, 20.0), UNDECIDED),
        ((0.1, 29.5), UNDECIDED),  # so wide that any size would do
        ((-5.0, 5.0), NOT_CONFIRMED),
        ((-9.0, -5.0), NOT_CONFIRMED),
    ],
)
def test_the_rule_for_a_size(interval, expected):
    assert size_verdict(widened(*interval), 14.8, made_up=False) == expected
    assert size_verdict(widened(*interval, seeds=1), 14.8, made_up=False) == UNDECIDED
    for seeds in (1, 2):
        assert size_verdict(widened(*interval, seeds), 14.8, made_up=True) == DOES_NOT_COMPARE


def test_the_rule_for_several_parts_and_for_nonsense():
    assert together([CONFIRMED, CONFIRMED]) == CONFIRMED
    assert together([CONFIRMED, UNDECIDED]) == UNDECIDED
    assert together([UNDECIDED, NOT_CONFIRMED, CONFIRMED]) == NOT_CONFIRMED
    with pytest.raises(ValueError, match="at least one part"):
        together([])
    with pytest.raises(ValueError, match="direction of 1 or -1"):
        verdict(over(1.0, 2.0), 0)


@pytest.mark.parametrize(
    ("places", "least"), [(2, math.inf), (3, math.inf), (4, 1.0), (5, 0.9), (6, 0.829), (8, 0.643)]
)
def test_the_least_rank_correlation_is_that_of_the_printed_tables(places, least):
    """One-sided 5 %, as tables of Spearman's coefficient print it."""
    assert least_ranked(places) == pytest.approx(least, abs=5e-4)


@pytest.mark.parametrize("places", [10, 20, 50])
def test_beyond_counting_it_is_near_what_drawn_orders_reach(places):
    generator = np.random.default_rng(places)
    orders = np.stack([generator.permutation(places) for _ in range(20_000)], axis=1)
    reached = rank_correlation(range(places), orders) >= least_ranked(places)
    assert reached.mean() == pytest.approx(0.05, abs=0.01)


def test_an_order_that_chance_reaches_often_is_undecided():
    """MNLI by layers on one seed: 72.8, 34.2, 66.6, 72.0, 80.2, of which rho is 0.40."""
    layers, scores = range(5), np.array([[72.8], [34.2], [66.6], [72.0], [80.2]])
    rho = float(rank_correlation(layers, scores)[0])
    assert rho == pytest.approx(0.4)
    reached = [
        rank_correlation(layers, np.array(order)[:, None])[0] >= rho - 1e-9
        for order in itertools.permutations(range(5))
    ]
    assert np.mean(reached) == pytest.approx(0.26, abs=0.005)
    narrow = np.full(REPLICATES, rho)  # the bootstrap draws examples: it knows no other seed
    assert order_verdict(Estimate(rho, narrow, 3), 5) == UNDECIDED
    steady = np.full(REPLICATES, 0.9)
    assert order_verdict(Estimate(0.9, steady, 3), 5) == CONFIRMED
    assert order_verdict(Estimate(0.9, steady, 1), 5) == UNDECIDED
    assert order_verdict(Estimate(-0.9, -steady, 3), 5) == NOT_CONFIRMED


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
    assert size.verdict == NOT_CONFIRMED  # far more than the paper's
    assert size.published_value == pytest.approx(113 / 7, abs=0.1), "without QQP's F1"
    assert "QQP" not in size.basis
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
        UNDECIDED,
    )
    assert "3 numbers of layers" in found["transfer_mnli_each"].basis


@pytest.mark.parametrize("made_up", [True, False])
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_transfer_claims(seeds, made_up):
    made_curves.write_params(
        4,
        list(seeds),
        made_up=made_up,
        transfer={
            "mnli": {"group": "glue_nli", "layers": None, "seeds": None},
            "race": {"group": "qa", "layers": [0], "seeds": None},
        },
        zero_shot={},
    )
    by_layers = {count: dict.fromkeys(seeds, 120 + 25 * count) for count in range(5)}
    made_curves.write_transfer("mnli", "dev", 300, by_layers, 4)
    race = {0: dict.fromkeys(seeds, 90), 4: dict.fromkeys(seeds, 91)}
    made_curves.write_transfer("race", "test", 300, race, 4)
    found = claims_by_key(transfer_claims(read_params()))
    whole, size, each = (found["transfer_mnli" + end] for end in ("", "_size", "_each"))
    several = len(seeds) > 1
    assert whole.estimate.value == pytest.approx(100 * 100 / 300)
    assert (whole.verdict, whole.made_up) == (CONFIRMED if several else UNDECIDED, made_up)
    assert size.verdict == (
        DOES_NOT_COMPARE if made_up else NOT_CONFIRMED if several else UNDECIDED
    )
    assert size.published == "+9"
    assert (each.estimate.value, each.verdict) == (
        pytest.approx(1.0),
        CONFIRMED if several else UNDECIDED,
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
    assert (sst2.estimate.value, sst2.detail) == (20.0, "from 50.0 to 70.0")
    assert sst2.estimate.interval[0] > 0
    assert found["zero_shot_sst2_steadily"].estimate.value == pytest.approx(1.0)
    together_ = found["zero_shot_all"]
    assert (together_.estimate.value, together_.published) == (3, "4 of 4")
    assert found["zero_shot_above_lstm"].estimate.interval[0] > 0
    assert found["zero_shot_lstm_variance"].estimate.value > 0
    assert {claim.verdict for claim in found.values()} == {UNDECIDED}, (
        "snapshots of one pre-training of each network are one seed, however many they are"
    )
    assert all("one seed" in row_of(claim)[4] for claim in found.values())


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
        "page.json",
        "scores.parquet",
    ]
    write_report(claims_report(read_params()), folder)
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
            r"^data/zero_shot/transformer/seed-0/scores.json is not there; run dvc repro"
            r" zero_shot@transformer$"
        ),
    ):
        write_report(claims_report(read_params()), Path())
