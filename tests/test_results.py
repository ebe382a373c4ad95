"""What MLflow is told of finished trainings: names, subjects, parameters, curves, scores."""

import json
from pathlib import Path

import made_results
import pandas as pd
import pytest

from gpt1.params.schema import read_params
from gpt1.tracking.results import finished, read_training, reported_scores, subject
from gpt1.tracking.store import parameters

VARIANTS = {"lstm": {"network": "lstm", "finetune": {"lambda_lm": 0.25}}}
NAMES = [
    ("pretrain", "transformer/seed-0"),
    ("finetune", "cola/seed-1"),
    ("ablate", "lstm-cola/seed-1"),
    ("transfer", "cola/layers-12/seed-0"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_params(
        ["cola"],
        [0, 1],
        variants=VARIANTS,
        ablate=made_results.ablate_rows(("lstm",), ("cola",)),
        transfer={"cola": {"group": "glue", "layers": [0, 12]}},
    )


def write_training(folder: str, **summary: float) -> Path:
    made_results.write_json(Path(folder, "summary.json"), {"updates": 20} | summary)
    Path(folder, "curve.jsonl").write_text(json.dumps({"update": 10, "loss": 1.5}) + "\n")
    return Path(folder)


def test_every_finished_training_of_these_tasks_is_there():
    for folder in (
        "pretrain/transformer/seed-0",
        "finetune/glue/cola/seed-1",
        "finetune/glue/mnli/seed-0",  # of a task that is not among these
        "ablate/lstm-cola/seed-1",
        "ablate/no_aux-cola/seed-0",
        "transfer/cola/layers-12/seed-0",
    ):
        write_training(f"data/{folder}")
    assert [(stage, name) for stage, name, _ in finished(read_params())] == NAMES


def test_what_a_training_is_of():
    assert [subject(*name) for name in NAMES] == [
        ("(pre-training)", "transformer", "0"),
        ("cola", "full", "1"),
        ("cola", "lstm", "1"),
        ("cola", "layers-12", "0"),
    ]


def test_each_run_has_the_recipe_that_made_it():
    pretrained, tuned, ablated, _ = (parameters(read_params(), *name) for name in NAMES)
    assert (ablated["stage"], ablated["system"], ablated["lambda_lm"]) == ("ablate", "lstm", 0.25)
    assert (tuned["lambda_lm"], tuned["layers"], tuned["epochs"]) == (0.5, 12, 3)
    assert pretrained["epochs"] == 100, "the paper's"


def test_the_score_is_of_the_reports_and_over_the_most_examples():
    rows = [("RACE-m", 3, 50.0), ("RACE", 9, 75.0), ("other", 9, 10.0)]
    scores = pd.DataFrame(rows, columns=["column", "n", "score"])
    scores = scores.assign(task="race", system="full", seed=0, update=None)
    Path("data/report/table3").mkdir(parents=True)
    scores.to_parquet("data/report/table3/scores.parquet")
    (row,) = reported_scores().items()
    assert (row[0], row[1]["score"]) == (("race", "full", "0"), 0.75)


def test_points_have_the_times_of_their_log_and_of_no_other():
    folder = write_training("data/finetune/glue/cola/seed-0", best_dev_score=0.5)
    log = Path("data/logs/finetune/cola/seed-0.jsonl")
    facts = {"fingerprint": "f1", "time": 5.0, "seconds": 3.0}
    made_results.write_json(log.with_suffix(".run.json"), facts)
    for loss, mark in ((1.5, "f1"), (9.0, None)):
        log.write_text(json.dumps({"time": 7.0, "update": 10, "loss": loss}) + "\n")
        found = read_training("finetune", "cola/seed-0", folder, {"time": 8.0, "score": 0.75})
        assert (found.fingerprint == "f1") == (mark is not None)
        assert (found.points[0]["time"] == 7.0) == (mark is not None)
        assert {"update": 20, "time": 8.0, "score": 0.75} in found.points
        assert found.points[-1]["best_dev_score"] == 0.5
        assert (found.points[-1]["seconds"] == 3.0) == (mark is not None)
