"""Models as MLflow lists them, on a real sqlite MLflow."""

import contextlib
import hashlib
import json
import re
import shutil
import sqlite3
from pathlib import Path

import made_results
import pytest
from made_results import client

from gpt1.params.schema import read_params
from gpt1.tracking import sync as tracking
from gpt1.tracking.views import VIEW, addresses


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    return made_results.empty_mlflow(tmp_path_factory)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    made_results.enter(tmp_path, monkeypatch)


def test_models_are_pointers_ranked_by_what_was_measured_of_them(fresh):
    shutil.copy(fresh, "mlflow.db")
    made_results.write_params(
        ["rte"], [0, 1], zero_shot={"sst2": {"train_rows": None, "rows": None}}
    )
    made_results.write_pretraining(points=3)
    made_results.simple("rte", 90, 100, seeds=(0, 1))
    for number, score in ((0, 0.25), (1, 0.75)):
        seed = next(Path("data/finetune").glob(f"*/rte/seed-{number}"))
        (seed / "weights.safetensors").write_bytes(b"seed %d" % number)
        made_results.write_json(seed / "summary.json", {"best_update": 20, "best_dev_score": score})
        (seed / "curve.jsonl").write_text(json.dumps({"update": 20, "dev_score": score}) + "\n")
    encoded = next(Path("data/encode").glob("*/rte/task.json"))
    made_results.write_json(encoded, json.loads(encoded.read_text()) | {"sequences": 1})
    snapshots = Path("data/pretrain/transformer/seed-0/snapshots")
    snapshots.mkdir()
    for update in (1, 400):
        (snapshots / f"{update:08d}.safetensors").write_bytes(b"%d" % update)
    curve = snapshots.parent / "curve.jsonl"
    curve.write_text(curve.read_text() + '{"update": 400, "heldout_loss": 4.5}\n')
    tracking.sync(read_params())  # scores of snapshots come hours later
    write_zero_shot({1: 0.75, 400: 0.5})
    tracking.sync(read_params())
    experiment = client().get_experiment_by_name("made_up").experiment_id

    def ranked(key: str, ascending: bool, where: str) -> list[tuple[str, list[float], str]]:
        order = [{"field_name": f"metrics.{key}", "ascending": ascending}]
        found = client().search_logged_models([experiment], where, order_by=order)
        return [
            (model.name, [metric.value for metric in model.metrics or []], model.status)
            for model in found
        ]

    seeds = "tags.task = 'rte'"
    assert ranked("dev_score", False, seeds) == [
        ("rte-seed-1", [0.75], "READY"),
        ("rte-seed-0", [0.25], "READY"),
    ]
    assert ranked("heldout_loss", True, "tags.stage = 'pretrain'") == [
        ("transformer-update-400", [4.5, 0.5], "READY"),
        ("transformer-update-1", [0.75], "READY"),
    ]
    assert [name for name, _, _ in ranked("zero_shot.sst2", False, "tags.stage = 'pretrain'")] == [
        "transformer-update-1",
        "transformer-update-400",
    ], "also those at whose update no held-out loss was measured"
    (good,) = client().search_logged_models([experiment], "metrics.`zero_shot.sst2` > 0.6")
    (measured,) = good.metrics
    assert measured.dataset_name == "sst2 dev"
    scorer = client().get_run(measured.run_id)
    assert scorer.info.run_name == "5 zero-shot transformer"
    assert [one.model_id for one in scorer.inputs.model_inputs].count(good.model_id) == 1
    assert [one.dataset.name for one in scorer.inputs.dataset_inputs] == ["sst2 dev", "sst2 train"]
    best = client().search_logged_models([experiment], "metrics.dev_score > 0.5")[0]
    assert best.tags["weights"] == str(seed / "weights.safetensors")
    assert best.tags["sha256"] == hashlib.sha256(b"seed 1").hexdigest()
    assert {(metric.key, metric.dataset_name) for metric in best.metrics} == {
        ("dev_score", "rte dev")
    }
    assert not list(Path("mlruns").rglob("*.safetensors")), "weights are not copied"

    before = [ranked("dev_score", False, ""), dump_of_models()]
    client().delete_tag(best.source_run_id, "gpt1.models")  # as a sync that was ended leaves it
    Path("data/logs/mlflow.json").unlink()
    tracking.sync(read_params())
    assert [ranked("dev_score", False, ""), dump_of_models()] == before


def write_zero_shot(scores: dict[int, float]) -> None:
    """A pre-training's snapshots as stages prompt and zero_shot leave their scores on SST-2."""
    made_results.write_json(
        Path("data/prompt/sst2/set.json"),
        {"continuations": 1, "splits": {"dev": {"examples": 100}, "train": {"examples": 50}}},
    )
    made_results.write_json(
        Path("data/zero_shot/transformer/seed-0/scores.json"),
        {
            "sets": {"sst2": {"split": "dev"}},
            "snapshots": [
                {"update": update, "tokens": 1024 * update, "scores": {"sst2": score}}
                for update, score in scores.items()
            ],
        },
    )


def dump_of_models() -> list[str]:
    """What MLflow's database holds of models and of which run made which."""
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        lines = database.iterdump()
        return [line for line in lines if re.match(r'INSERT INTO "?(logged_model|inputs)', line)]


def test_saved_views_show_the_runs_that_they_are_named_after(fresh):
    shutil.copy(fresh, "mlflow.db")
    made_results.write_pretraining(points=3)
    made_results.simple("rte", 90, 100, seeds=(0, 1))
    tracking.sync(read_params())
    experiment = client().get_experiment_by_name("made_up")
    seen = {}
    for key, value in experiment.tags.items():
        if key.startswith(VIEW):
            saved = json.loads(value)
            state = json.loads(saved["state"])
            found = client().search_runs([experiment.experiment_id], state["searchFilter"])
            assert len(value) < 5000, "as much as MLflow keeps of a tag"
            drawn = {chart["metricKey"] for chart in state["compareRunCharts"]}
            assert all(drawn & run.data.metrics.keys() for run in found)
            seen[saved["name"]] = {run.info.run_name for run in found}
    assert seen == {
        "Scores by task": {"2 finetune rte"},
        "Pre-training curves": {"1 pretrain transformer"},
        "Seeds of rte": {"2 rte seed 0", "2 rte seed 1"},
    }
    lines = addresses(read_params(), "http://127.0.0.1:5000").splitlines()
    place = f"http://127.0.0.1:5000/#/experiments/{experiment.experiment_id}/"
    assert all(place in line for line in lines)
    assert {line.rpartition("viewStateShareKey=")[2] for line in lines if "Key=" in line} == {
        "scores",
        "pretraining",
        "seeds-rte",
    }
