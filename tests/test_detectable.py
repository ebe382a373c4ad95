"""What `gpt1 plan` says a run could confirm: rows, clusters and seeds counted, no claim under three
pre-trainings, corners by hand.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gpt1.params.profile import compose
from gpt1.params.schema import Params, validate
from gpt1.results import detectable
from gpt1.results.ablations import columns_of
from gpt1.results.detectable import Spread, detectable_effects, lines_of
from gpt1.results.rules import read_rules
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
    monkeypatch.setattr(detectable, "REAL", Spread(0.25, 1e-6, 0.0))
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
    monkeypatch.setattr(detectable, "TOWN", Spread(0.0, 2.0, 1.0))
    helps = detectable_effects(params_of("demo", *THREE), read_rules())[0]
    assert helps.effect == pytest.approx(2 * 5.667, rel=0.01)


def test_to_be_better_than_both_lstms_takes_more_than_to_be_better_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detectable, "TOWN", Spread(0.0, 2.0, 1.0))
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
    (folder / "task.json").write_text(json.dumps({"splits": splits}), encoding="utf-8")
    np.savez(
        folder / "clusters.npz",
        train=np.zeros(9),
        dev=np.array([0, 0, 1, 2]),
        dev_mismatched=np.array([0, 0, 0]),
    )
    params, (task, columns) = params_of("demo"), columns_of("MNLI")
    assert detectable.design(params, task, columns, {"encode@mnli"}) == Design(
        7, 4, detectable.TOWN.disagreement
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


def test_what_is_taken_for_granted_is_said() -> None:
    lines = told(params_of("demo", *THREE))
    assert "by 3 pre-trainings and 4,600 rows in" in lines[2]
    assert (
        "taken for granted of made-up text: seeds move a task's difference by 21 points"
        in (lines[-1])
    )
    assert "real text" not in lines[-1]
