"""The claims that come out of results of known scores, and of runs in which nothing is so."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_curves
import made_results
import numpy as np
import pytest

from gpt1.base.errors import UserError
from gpt1.params.schema import Params, read_params
from gpt1.results.ablations import AblationScores, SystemScore, ablation
from gpt1.results.claims import ablation_claims, table5_effects, transfer_claims
from gpt1.results.claims_report import claims_report, row_of
from gpt1.results.document import NONE, number
from gpt1.results.formats import write_report
from gpt1.results.paper import TABLE5
from gpt1.results.rules import read_rules, rules_hash
from gpt1.results.statistics.estimates import estimate
from gpt1.results.statistics.jackknife import jackknife
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    NOT_MEASURED,
    REFUTED,
    UNDECIDED,
    Claim,
    agreed,
    decide,
    judged,
)

RULES = read_rules()
SETS = {name: {"train_rows": None, "rows": None} for name in ("cola", "sst2", "race", "dprd")}
SEEDS = (0, 1, 2)
SYSTEMS = ("full", "no_pretraining", "no_aux_lm", "lstm", "lstm_equal", "embeddings_only")
SEVERAL: dict[str, Any] = {"pretrain": {"seeds": list(SEEDS)}}
EMBEDDINGS = {"embeddings_only": {"network": "transformer", "finetune": {"transfer": 0}}}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_lstms()
    for network in ("transformer", "lstm", "lstm_equal"):
        for seed in SEEDS:
            record(network, seed, rules_hash())


def record(network: str, seed: int, rules: str | None) -> None:
    """What a pre-training noted of the rules."""
    summary = json.loads(Path(f"data/pretrain/{network}/seed-0/summary.json").read_text())
    summary.pop("rules_sha256", None)
    path = Path(f"data/pretrain/{network}/seed-{seed}/summary.json")
    made_results.write_json(path, summary | ({"rules_sha256": rules} if rules else {}))


def by_key(claims: list[Claim]) -> dict[str, Claim]:
    return {claim.key: claim for claim in judged(RULES, claims)}


def about_table5(params: Params) -> dict[str, Claim]:
    return by_key(ablation_claims(RULES, params, ablation(params)))


def write_ablations(
    tasks: tuple[str, ...],
    skills: dict[str, float],
    seeds: tuple[int, ...] = SEEDS,
    rows: int = 200,
    **sections: Any,
) -> Params:
    variants = tuple(name for name in skills if name != "full")
    rows_of = made_results.ablate_rows(variants, tasks)
    sections = SEVERAL | {"variants": EMBEDDINGS} | sections
    made_results.write_params(list(tasks), list(seeds), ablate=rows_of, **sections)
    made_results.write_drawn(tasks, skills, seeds, rows)
    return read_params()


@pytest.mark.slow
def test_claims_about_table_5() -> None:
    skills = {"full": 2.0, "no_pretraining": 0.5, "no_aux_lm": 1.2, "lstm": 1.3, "lstm_equal": 1.2}
    params = write_ablations(made_results.GLUE_TASKS, skills | {"embeddings_only": 1.0})
    found = about_table5(params)
    helps, size = found["pretraining_helps"], found["pretraining_size"]
    assert (helps.verdict, helps.published_value) == (CONFIRMED, pytest.approx(14.8))
    assert helps.effect is not None
    assert helps.effect.value > 20
    assert size.verdict == REFUTED, "far more than the paper's"
    assert size.published_value == pytest.approx(113 / 7, abs=0.1), "without QQP's F1"
    assert "QQP" not in size.basis
    assert found["aux_lm_larger"].published == "+0.8"
    assert found["aux_lm_smaller"].published == "-1.1"
    assert found["aux_lm_smaller"].verdict == REFUTED, "it helps there too, by more than a point"
    for key in ("aux_lm_larger", "aux_lm_nli_qqp", "embeddings_beat_nothing"):
        assert found[key].verdict == CONFIRMED, key
    assert (found["lstm_below"].verdict, found["lstm_below"].published) == (CONFIRMED, "+5.6")
    layers = found["layers_beat_embeddings"]
    assert (layers.verdict, layers.published) == (CONFIRMED, NONE)
    every, only = found["pretraining_every"], found["lstm_only_mrpc"]
    assert every.effect is not None
    assert only.effect is not None
    assert (every.effect.value, every.detail, every.published) == (8, "of 8", "8 of 8")
    assert only.effect.value == 7, "but on MRPC the LSTM is worse, too"
    assert only.effect.interval is None
    assert helps.basis == "8 tasks, 3 seeds, 1,800 examples", "MNLI has two parts"
    assert not helps.made_up
    assert [key for key, one in found.items() if one.primary] == list(RULES.primary)


def test_claims_over_some_tasks_take_the_paper_s_number_over_the_same() -> None:
    params = write_ablations(("cola", "rte"), {"full": 2.0, "no_pretraining": 2.0})
    found = about_table5(params)
    helps = found["pretraining_helps"]
    assert helps.published_value == pytest.approx((45.4 - 18.9 + 56.0 - 53.8) / 2)
    assert helps.basis == "2 tasks, 3 seeds, 400 examples (CoLA, RTE of 8)"
    assert helps.verdict == UNDECIDED
    assert found["pretraining_every"].published == "2 of 2"
    larger, lstm = found["aux_lm_larger"], found["lstm_below"]
    assert (larger.verdict, larger.basis) == (
        NOT_MEASURED,
        "qqp, mnli, qnli not among the tasks of params.yaml",
    )
    assert (lstm.verdict, lstm.effect, lstm.p) == (NOT_MEASURED, None, None)
    assert "ablate has too few rows of lstm or lstm_equal" in lstm.basis


def test_a_claim_that_turns_on_an_absent_task_or_variant_names_it() -> None:
    params = write_ablations(("cola", "rte"), {"full": 2.0, "lstm": 2.0, "lstm_equal": 2.0})
    only = about_table5(params)["lstm_only_mrpc"]
    assert only.verdict == NOT_MEASURED
    assert "mrpc" in only.basis
    assert "not among the tasks of params.yaml" in only.basis
    values = json.loads(Path("params.yaml").read_text())
    del values["variants"]["embeddings_only"]
    Path("params.yaml").write_text(json.dumps(values))
    for key in ("layers_beat_embeddings", "embeddings_beat_nothing"):
        claim = about_table5(read_params())[key]
        assert claim.verdict == NOT_MEASURED
        assert claim.basis == "variants has no row embeddings_only in params.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("small", "equal", "verdict", "alone"),
    [
        (-0.4, -0.3, CONFIRMED, (CONFIRMED, CONFIRMED)),
        (-0.4, 1.0, UNDECIDED, (CONFIRMED, UNDECIDED)),
        (9.0, -0.4, UNDECIDED, (REFUTED, CONFIRMED)),
        (9.0, 9.0, REFUTED, (REFUTED, REFUTED)),
    ],
)
def test_the_lstm_is_below_where_it_is_so_at_both_sizes(
    small: float, equal: float, verdict: str, alone: tuple[str, str]
) -> None:
    skills = {"full": 1.0, "lstm": small, "lstm_equal": equal}
    params = write_ablations(("sst2", "mrpc", "rte", "qnli"), skills)
    claim = about_table5(params)["lstm_below"]
    assert claim.verdict == verdict
    _, *told = claim.basis.split("; ")
    names = ("LSTM w/ aux LM alone: ", "LSTM of equal size w/ aux LM alone: ")
    table = ablation(params)
    for line, name, less, word in zip(told, names, ("lstm", "lstm_equal"), alone, strict=True):
        whole = table.mean_difference(less, list(TABLE5.columns))
        assert whole is not None
        assert line.startswith(f"{name}{number(float(whole.value), '+.1f')} [")
        assert line.endswith(f", {word}")
    assert claim.p == 1 or set(alone) != {CONFIRMED, REFUTED}
    assert claim.effect is not None
    assert number(float(claim.effect.value), "+.1f") in claim.basis, "it is that of one of both"


@pytest.mark.parametrize(
    ("seeds", "pretrainings", "basis"),
    [((0, 1), [0, 1, 2], "2 seeds"), (SEEDS, [0], "3 seeds of 1 pre-training")],
)
def test_under_three_pretrainings_nothing_is_decided(
    seeds: tuple[int, ...], pretrainings: list[int], basis: str
) -> None:
    skills = {"full": 3.0, "no_pretraining": 0.1}
    params = write_ablations(("sst2", "rte"), skills, seeds, pretrain={"seeds": pretrainings})
    found = about_table5(params)
    for key in ("pretraining_helps", "pretraining_every", "pretraining_size"):
        claim = found[key]
        assert claim.effect is not None
        assert (claim.verdict, claim.effect.interval, claim.p) == (UNDECIDED, None, 1.0)
        assert basis in claim.basis
        assert row_of(claim)[4] == NONE


def transfer_of(
    seeds: tuple[int, ...], made_up: bool, mnli: dict[int, int], race: dict[int, int], **rows: Any
) -> dict[str, Claim]:
    """Claims of MNLI and RACE with so many of 300 right by the number of layers."""
    transfer = {
        "mnli": {"group": "glue_nli", "layers": rows.get("layers")},
        "race": {"group": "qa", "layers": [0]},
    }
    made_curves.write_params(
        4,
        list(seeds),
        made_up=made_up,
        transfer=transfer,
        zero_shot={},
        pretrain={"seeds": list(seeds)},
    )
    for task, split, right in (("mnli", "dev", mnli), ("race", "test", race)):
        moved = {seed: 8 * (seed - len(seeds) // 2) if task == "race" else 0 for seed in seeds}
        by_layers = {
            count: {seed: number + moved[seed] * bool(count) for seed in seeds}
            for count, number in right.items()
        }
        made_curves.write_transfer(task, split, 300, by_layers, 4)
    return by_key(transfer_claims(RULES, read_params()))


def test_three_numbers_of_layers_are_too_few_for_an_order() -> None:
    found = transfer_of(SEEDS, False, {0: 120, 2: 100, 4: 250}, {0: 90, 4: 91}, layers=[0, 2])
    assert found["transfer_mnli_each"].verdict == NOT_MEASURED
    assert found["transfer_mnli"].verdict == CONFIRMED
    assert "3 numbers of layers" in found["transfer_mnli_each"].basis


@pytest.mark.parametrize("made_up", [True, False])
@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_transfer_claims(seeds: tuple[int, ...], made_up: bool) -> None:
    rising = {count: 120 + 25 * count for count in range(5)}
    found = transfer_of(seeds, made_up, rising, {0: 90, 4: 91})
    whole, size, each = (found["transfer_mnli" + end] for end in ("", "_size", "_each"))
    several = len(seeds) > 1
    assert whole.effect is not None
    assert each.effect is not None
    assert whole.effect.value == pytest.approx(100 * 100 / 300)
    assert (whole.verdict, whole.made_up) == (CONFIRMED if several else UNDECIDED, made_up)
    assert size.verdict == (DOES_NOT_COMPARE if made_up else REFUTED if several else UNDECIDED)
    assert size.published == "+9"
    assert (float(each.effect.value), each.verdict) == (
        pytest.approx(1.0),
        CONFIRMED if several else UNDECIDED,
    )
    assert each.detail == ("1% of orders rise so" if several else "100% of orders rise so")
    race = found["transfer_race"]
    assert race.effect is not None
    assert (race.verdict, race.effect.value) == (UNDECIDED, pytest.approx(100 / 300))
    assert found["transfer_race_each"].verdict == NOT_MEASURED


def drawn_table(runs: int, lost: dict[str, float]) -> AblationScores:
    """Table 5 of so many runs at once: 200 answers a column, right with .7 less what a system
    loses, of three seeds with a deviation of 3 points.
    """
    draw = np.random.default_rng(5)
    results = {}
    for title in TABLE5.columns:
        for system in SYSTEMS:
            chance = 0.7 - lost.get(system, 0.0) + draw.normal(0, 0.03, (runs, 3, 1))
            right = draw.random((runs, 3, 200)) < chance
            scores = jackknife("accuracy", np.ones(200, bool), right, np.arange(200))
            results[system, title] = SystemScore((), SEEDS, scores, estimate([scores]))
    return AblationScores((), results, {}, {})


def signs_of(table: AblationScores) -> dict[str, np.ndarray]:
    found = {key: table5_effects(RULES, key, table) for key in RULES.table5}
    there = {key: agreed(list(one.values())) for key, one in found.items() if one}
    return {key: signs for key, (signs, _) in decide(RULES, there).items()}


def test_where_nothing_is_so_few_runs_decide_anything() -> None:
    found = signs_of(drawn_table(200, {}))
    family = np.any([found[key] != 0 for key in RULES.primary], axis=0)
    assert family.mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    for key in RULES.exploratory:
        if key in found and RULES.table5[key].test in ("above", "every"):
            assert (found[key] != 0).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200), key
    assert (found["aux_lm_smaller"] < 0).mean() <= 0.08, "a true zero is no help"
    assert (found["pretraining_size"] > 0).mean() == 0


def test_where_all_is_so_most_runs_say_so() -> None:
    lost = {"no_pretraining": 0.35, "lstm": 0.1, "lstm_equal": 0.1, "embeddings_only": 0.1}
    found = signs_of(drawn_table(50, lost))
    for key in (*RULES.primary, "pretraining_every", "embeddings_beat_nothing"):
        assert (found[key] > 0).mean() > 0.7, key
        assert not (found[key] < 0).any(), key


@pytest.mark.slow
def test_the_stage_writes_its_files_twice_the_same() -> None:
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
    assert list(rows)[:3] == list(RULES.primary)
    assert sum(numbers["verdicts"].values()) == len(rows) == len(RULES.keys)
    for words in (
        f"Rules {rules_hash()[:8]}, fixed before the run",
        "Pre-training helps on every task°",
        "exploratory claims are tested at 5% each",
    ):
        assert words in first.stdout, words


@pytest.mark.parametrize(
    ("noted", "word", "told"),
    [
        ("f" * 64, "post hoc", "Post hoc: these verdicts are by rules"),
        (None, "not recorded", "Not recorded: nothing shows"),
    ],
)
def test_rules_that_a_pretraining_did_not_note_are_told_on_top(
    noted: str | None, word: str, told: str
) -> None:
    params = write_ablations(("rte",), {"full": 2.0, "no_pretraining": 0.1}, rows=100)
    record("transformer", 1, noted)
    folder = Path("report")
    folder.mkdir()
    text = write_report(claims_report(params), folder)
    top = text.splitlines()[2]
    assert top.startswith(told)
    assert "transformer, seed 1" in top
    assert rules_hash()[:8] in top
    assert ("ffffffff" in top) == (noted is not None)
    assert json.loads((folder / "metrics.json").read_text())["claims"]["fixed"] == word
    assert {row["fixed"] for row in csv.DictReader((folder / "claims.csv").open())} == {word}


def test_scores_that_params_name_but_are_not_there_are_one_line() -> None:
    write_ablations(("rte",), {"full": 2.0}, zero_shot={"sst2": SETS["sst2"]})
    with pytest.raises(
        UserError,
        match=(
            r"^data/zero_shot/transformer/seed-0/scores.json is not there; run dvc repro"
            r" zero_shot@transformer$"
        ),
    ):
        write_report(claims_report(read_params()), Path())
