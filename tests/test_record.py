"""The log of a run, and what goes to MLflow of finished trainings by which name: no MLflow runs here."""

import json
import os
import subprocess
from pathlib import Path

import made_results
import pandas as pd
import pytest
from made_results import begin

from gpt1.base.files import write_json
from gpt1.base.machine import checkout, machine
from gpt1.params.schema import read_params
from gpt1.tracking.live import tracked
from gpt1.tracking.log import log_path, read_facts
from gpt1.tracking.results import finished_trainings, read_training, reported_scores
from gpt1.tracking.store import parameters

LOG = log_path("pretrain", "transformer/seed-0")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    made_results.enter(tmp_path, monkeypatch)


def test_a_log_holds_facts_and_the_last_point():
    tracker = begin()
    tracker.log(10, {"loss": 2.5, "learning_rate": 1e-3})
    tracker.log(20, {"loss": 1.5})
    tracker.close("FINISHED")
    facts = read_facts(LOG)
    named = [facts[key] for key in ("fingerprint", "stage", "name", "status", "last")]
    last = {"update": 20, "loss": 1.5}
    assert named == ["f1", "pretrain", "transformer/seed-0", "FINISHED", last]
    assert facts["machine"].keys() == {"cpu", "cores", "gpu", "python", "torch"}
    assert facts["checkout"]["git_commit"] == "unknown"  # this folder is no checkout


def test_a_resumed_run_keeps_its_start_and_a_finished_one_begins_anew():
    starts = []
    for fingerprint, status in (("f1", "KILLED"), ("f1", "FINISHED"), ("f1", "KILLED"), ("f2", "")):
        begin(fingerprint).close(status)
        starts.append(read_facts(LOG)["time"])
    assert starts[0] == starts[1] < starts[2] < starts[3]


def test_other_ranks_write_nothing(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with tracked("pretrain", "transformer", read_params(), "0") as log:
        log(10, {"loss": 1.0})
    assert not Path("data").exists()


def test_a_log_that_cannot_be_written_warns_once(capfd):
    Path("data").write_text("a file where a folder belongs")
    tracker = begin()
    for update in range(10):
        tracker.log(update, {"loss": 1.0})
    tracker.close("FINISHED")
    assert capfd.readouterr().err.count("warning:") == 1


def test_a_run_records_the_cores_that_a_container_leaves(tmp_path, monkeypatch):
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr("gpt1.base.machine.CONTAINER_QUOTA", quota)
    quota.write_text("100000 100000\n")
    assert machine()["cores"] == "1"
    quota.write_text("max 100000\n")
    assert machine()["cores"] == str(len(os.sched_getaffinity(0)))


ABLATIONS = {"lstm": {"network": "lstm", "finetune": {"lambda_lm": 0.25}}}
NAMES = [
    ("pretrain", "transformer/seed-0"),
    ("finetune", "cola/seed-1"),
    ("ablation", "lstm-cola/seed-1"),
    ("transfer", "cola/layers-12/seed-0"),
]


@pytest.fixture
def recipes():
    """Parameters with an ablation and a transfer of CoLA."""
    made_results.write_params(
        ["cola"],
        [0, 1],
        ablations=ABLATIONS,
        ablation=made_results.ablation_rows(("lstm",), ("cola",)),
        transfer={"cola": {"group": "glue", "layers": [0, 12]}},
    )


def write_training(folder, **summary):
    write_json(Path(folder, "summary.json"), {"updates": 20} | summary)
    Path(folder, "curve.jsonl").write_text(json.dumps({"update": 10, "loss": 1.5}) + "\n")
    return Path(folder)


def test_every_finished_training_of_these_tasks_is_there(recipes):
    for folder in (
        "pretrain/transformer/seed-0",
        "finetune/glue/cola/seed-1",
        "finetune/glue/mnli/seed-0",  # of a task that is not among these
        "ablation/lstm-cola/seed-1",
        "ablation/no_aux-cola/seed-0",
        "transfer/cola/layers-12/seed-0",
    ):
        write_training(f"data/{folder}")
    assert [(stage, name) for stage, name, _ in finished_trainings(read_params())] == NAMES


def test_each_run_has_the_recipe_that_made_it(recipes):
    pretrained, tuned, ablated, _ = (parameters(read_params(), *name) for name in NAMES)
    assert (ablated["stage"], ablated["system"], ablated["lambda_lm"]) == ("ablation", "lstm", 0.25)
    assert (tuned["lambda_lm"], tuned["layers"], tuned["epochs"]) == (0.5, 12, 3)
    assert pretrained["epochs"] == 100, "the paper's"


def test_the_score_is_of_the_reports_and_over_the_most_examples(recipes):
    rows = [("RACE-m", 3, 50.0), ("RACE", 9, 75.0), ("other", 9, 10.0)]
    scores = pd.DataFrame(rows, columns=["column", "n", "score"])
    scores = scores.assign(task="race", system="full", seed=0, update=None)
    Path("data/report/table3").mkdir(parents=True)
    scores.to_parquet("data/report/table3/scores.parquet")
    (row,) = reported_scores().items()
    assert (row[0], row[1]["score"]) == (("race", "full", "0"), 0.75)


def test_points_have_times_by_the_log_of_their_curve_and_of_no_other(recipes):
    folder = write_training("data/finetune/glue/cola/seed-0", best_dev_score=0.5)
    facts = {"fingerprint": "f1", "time": 5.0, "seconds": 3.0}
    for loss, of_it in ((1.5, True), (9.0, False)):
        last = {"last": {"update": 10, "loss": loss}}
        write_json(log_path("finetune", "cola/seed-0"), facts | last)
        found = read_training("finetune", "cola/seed-0", folder)
        assert (found.fingerprint == "f1") == of_it
        assert (found.points[0]["time"] == 6.5) == of_it, "10 of 20 updates"
        assert (found.measured.get("seconds") == 3.0) == of_it
        assert found.measured["best_dev_score"] == 0.5


def test_what_git_does_not_say_is_unknown(tmp_path, monkeypatch):
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "x"]
    Path("code.py").write_text("1")
    for command in (["git", "init", "-q"], ["git", "add", "."], commit):
        subprocess.run(command, check=True)
    assert checkout(Path())["dirty"] == "false"
    Path("code.py").write_text("2")
    assert checkout(Path())["dirty"] == "true"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout(Path()) == {"git_commit": "unknown", "dirty": "unknown"}
