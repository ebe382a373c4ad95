"""What `gpt1 plan` says a run could confirm: rows, clusters and seeds counted, no claim under three
pre-trainings, corners by hand.
"""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gpt1.params.profile import compose
from gpt1.params.schema import Params, validate
from gpt1.results import detectable, records
from gpt1.results.ablations import columns_of
from gpt1.results.detectable import detectable_effects, lines_of
from gpt1.results.rules import read_rules
from gpt1.results.spreads import TOWN, Spread, spread_in
from gpt1.results.statistics.power import Design

ROOT = Path(__file__).parents[1]
THREE = ("pretrain.seeds=[0,1,2]", "finetune.seeds=[0,1,2]")


@pytest.fixture(autouse=True)
def _in_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with conf/ in it, and no data."""
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    monkeypatch.chdir(tmp_path)


def params_of(profile: str, *overrides: str) -> Params:
    return validate(compose(profile, overrides))


def take_for_granted(monkeypatch: pytest.MonkeyPatch, spread: Spread) -> None:
    monkeypatch.setattr(detectable, "spread_in", lambda run: spread)


def told(params: Params) -> list[str]:
    rules = read_rules()
    return lines_of(detectable_effects(params, rules), params, rules.least_seeds)


@pytest.mark.parametrize("seeds", ["[0]", "[0,1]"])
def test_under_three_pretrainings_no_claim_can_be_confirmed(seeds: str) -> None:
    params = params_of("paper", f"pretrain.seeds={seeds}", "finetune.seeds=[0,1]")
    helps = detectable_effects(params, read_rules())[0]
    assert helps.effect == math.inf
    count = len(params.pretrain.seeds)
    assert told(params)[2] == (
        "  Pre-training helps: nothing can be confirmed: it takes fine-tunings from 3 pre-trainings,"
        f" this run has {count} (pretrain.seeds, finetune.seeds)"
    )


def test_imported_weights_are_one_pretraining() -> None:
    params = params_of("official")
    assert len(params.finetune.seeds) > 2
    assert "not measured" in told(params)[2] or "this run has 1 " in told(params)[2]


def test_examples_alone_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds that agree: (2.394 + .842) standard errors of examples, for a two-sided .05 / 3."""
    take_for_granted(monkeypatch, Spread(0.25, 1e-6, 0.0, {}))
    helps = detectable_effects(params_of("paper", *THREE), read_rules())[0]
    tasks = helps.tasks
    clusters = [1_043, 872, 1_725, 1_379, 40_430, (9_815 + 9_832) / 3, 5_463, 277]
    assert [task.clusters for task in tasks] == pytest.approx(clusters, abs=1)
    error = 100 * math.sqrt(sum(0.25 / count for count in clusters)) / len(clusters)
    assert helps.effect == pytest.approx((2.394 + 0.842) * error, rel=0.01)


def test_seeds_alone_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """All in common, three seeds: the noncentral t, as in statsmodels' TTestPower, alpha
    .05 / 3.
    """
    take_for_granted(monkeypatch, Spread(0.0, 2.0, 1.0, {}))
    helps = detectable_effects(params_of("demo", *THREE), read_rules())[0]
    assert helps.effect == pytest.approx(2 * 5.667, rel=0.01)


def test_to_be_better_than_both_lstms_takes_more_than_to_be_better_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_for_granted(monkeypatch, Spread(0.0, 2.0, 1.0, {}))
    params = params_of("demo", *THREE)
    helps, below, _ = detectable_effects(params, read_rules())
    assert below.effect == pytest.approx(2 * 6.79, rel=0.01), "each in .9 of runs, so both in .8"
    assert below.effect > helps.effect
    assert "against each of 2 systems" in told(params)[3]
    assert "against each" not in told(params)[2]


def test_rows_and_clusters_are_counted_where_a_task_is_encoded() -> None:
    folder = Path("data/encode/glue_nli/mnli")
    folder.mkdir(parents=True)
    splits = {
        "train": {"examples": 9, "labelled": True},
        "dev": {"examples": 4, "labelled": True},
        "dev_mismatched": {"examples": 3, "labelled": True},
    }
    description = {"outputs": 3, "target": "class", "splits": splits}
    (folder / "task.json").write_text(json.dumps(description), encoding="utf-8")
    np.savez(
        folder / "clusters.npz",
        train=np.zeros(9),
        dev=np.array([0, 0, 1, 2]),
        dev_mismatched=np.array([0, 0, 0]),
    )
    params, (task, columns) = params_of("demo"), columns_of("MNLI")
    assert detectable.design(params, task, columns, {"encode@mnli"}) == Design(
        7, 4, spread_in(TOWN).disagreement
    )
    assert detectable.design(params, task, columns, ()).rows == 1_200


def test_a_claim_without_its_variant_is_not_measured() -> None:
    params = params_of("demo", *THREE)
    stages = params.stages.model_copy(update={"ablate": {}})
    params = params.model_copy(update={"stages": stages})
    assert [one.tasks for one in detectable_effects(params, read_rules())] == [(), (), ()]
    assert told(params)[2:] == [
        f"  {rule}: not measured by this run"
        for rule in (
            "Pre-training helps",
            "The Transformer is better than the LSTM",
            "All layers are better than the embeddings alone",
        )
    ]


def test_what_is_taken_for_granted_is_measured_and_said() -> None:
    lines = told(params_of("demo", *THREE))
    assert "by 3 pre-trainings and 4,600 rows in" in lines[2]
    spread = spread_in(TOWN)
    assert (
        "taken for granted of made-up text, as measured on reference/demo: seeds move a task's"
        f" difference by {spread.deviation:.1f} points" in lines[-1]
    )
    assert "real text" not in lines[-1]


@pytest.mark.parametrize(
    ("second", "deviation", "shared"),
    [([20, 20, 20], math.sqrt(2), 0.0), ([20, 22, 24], 2.0, 1.0), ([24, 22, 20], 2.0, 0.0)],
)
def test_spreads_by_hand(second: list[float], deviation: float, shared: float) -> None:
    """Of CoLA's four rows in two clusters, three seeds, the others miss one in the first seed."""
    others = ["no_pretraining", "lstm", "lstm_equal", "embeddings_only"]
    table5 = {"table": "table5", "value": "score"}
    full = {"CoLA": [10.0, 12.0, 14.0], "SST-2": second}
    scores = [
        table5 | {"variant": name, "column": column, "scores": row if name == "full" else [1.0] * 3}
        for name in ["full", *others]
        for column, row in full.items()
    ]
    answers = [
        {"task": "cola", "system": name, "split": "dev", "pretraining_seed": seed, "seed": seed}
        | {"example": example, "cluster": example % 2, "label": 1.0, "logits": [0.0, answer]}
        for name in ["full", *others]
        for seed in range(3)
        for example in range(4)
        for answer in [-1.0 if (example, seed) == (0, 0) and name != "full" else 1.0]
    ]
    folder = Path("data/report/table5")
    folder.mkdir(parents=True)
    records.write_scores(folder, scores)
    schema = records._schema(records.PREDICTION_TYPES)
    parquet.write_table(pa.Table.from_pylist(answers, schema), folder / records.PREDICTIONS)
    found = spread_in(str(folder.absolute().parent))
    assert found == Spread(
        pytest.approx(1 / 12), pytest.approx(deviation), pytest.approx(shared), {"cola": 2.0}
    )
