"""Logs first, MLflow second: a real sqlite MLflow, servers that are not there or never answer, and runs that are killed."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import made_results
import pytest

from gpt1 import tracking
from gpt1.config import read_params
from gpt1.errors import UserError
from gpt1.record import live
from gpt1.record.log import log_path, read_log

CURVE = log_path("pretrain", "transformer")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "GPT1_MLFLOW", "RANK"):
        monkeypatch.delenv(name, raising=False)
    made_results.write_params(["rte"], [0, 1])


def begin(fingerprint: str = "f1", name: str = "transformer") -> tracking.Tracker:
    return tracking.start("pretrain", name, read_params(), fingerprint)


def client():
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{Path('mlflow.db').absolute()}")


def runs() -> dict[str, object]:
    experiment = client().get_experiment_by_name("made_up")
    return {run.info.run_name: run for run in client().search_runs([experiment.experiment_id])}


def write_results(points: int) -> None:
    made_results.write_pretraining(points)
    made_results.simple("rte", 90, 100, seeds=(0, 1))
    folder = Path("data/report/table2")
    made_results.write_json(folder / "metrics.json", {"table2": {"rte": {"mean": 90.0, "sd": 0.0}}})
    (folder / "table2.md").write_text("# Table 2\n")


def test_nothing_to_tell_makes_no_database(monkeypatch):
    assert tracking.sync(read_params()) == 0
    made_results.write_pretraining()
    monkeypatch.setenv("GPT1_MLFLOW", "off")
    assert tracking.sync(read_params()) == 0
    assert not Path("mlflow.db").exists()


def test_sync_twice(capfd):
    write_results(points=40)
    assert tracking.sync(read_params()) == 4
    assert capfd.readouterr().err == ""
    found = runs()
    names = {"pretrain transformer", "finetune rte/seed-0", "finetune rte/seed-1", "report table2"}
    parent = next(run for name, run in found.items() if name not in names)
    assert found.keys() == names | {parent.info.run_name}
    assert all(found[name].data.tags["mlflow.parentRunId"] == parent.info.run_id for name in names)
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    assert parent.data.params["finetune.lambda_lm"] == "0.5"
    assert parent.data.params["tasks.rte.group"] == "glue_nli"
    assert parent.data.metrics == {"table2.rte": 90.0, "pretrain.transformer.heldout_perplexity": 75.06,
                                   "pretrain.transformer.heldout_word_perplexity": 180.12}
    pretrained = found["pretrain transformer"]
    assert pretrained.data.metrics["final.parameters.total"] == 4_612_352
    history = client().get_metric_history(pretrained.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history] == [(10 * i, 9.0 - i) for i in range(1, 41)]
    assert [file.path for file in client().list_artifacts(found["report table2"].info.run_id)] == ["metrics.json", "table2.md"]

    assert tracking.sync(read_params()) == 4
    assert runs().keys() == found.keys()
    assert len(client().get_metric_history(pretrained.info.run_id, "loss")) == 40
    assert len(client().get_metric_history(parent.info.run_id, "table2.rte")) == 1

    made_results.write_params(["rte"], [0, 1], finetune={"lambda_lm": 0.25})  # a second set of parameters: a parent and a table of its own
    tracking.sync(read_params())
    everything = client().search_runs([parent.info.experiment_id])
    assert [run.info.run_name for run in everything].count("report table2") == 2
    assert [run.info.run_name for run in everything].count("pretrain transformer") == 1
    assert len(everything) == 7

    other = json.loads(Path("data/report/table2/metrics.json").read_text())
    other["table2"]["rte"]["mean"] = 91.0
    made_results.write_json(Path("data/report/table2/metrics.json"), other)
    tracking.sync(read_params())
    newest = client().search_runs([parent.info.experiment_id], "tags.`gpt1.stage` = 'all' and params.`finetune.lambda_lm` = '0.25'")
    assert newest[0].data.metrics["table2.rte"] == 91.0


@pytest.mark.slow
def test_live_then_sync_repeats_no_point(monkeypatch, capfd):
    """The whole life of a long stage: sent live, killed, resumed, finished, synced."""
    made_results.write_pretraining(points=4)
    lines = [json.loads(line) for line in Path("data/pretrain/transformer/curve.jsonl").read_text().splitlines()]
    program = ("import time, json, sys; from gpt1 import tracking; from gpt1.config import read_params; from gpt1.record import live\n"
               "live.LIVE_AFTER_SECONDS = 0.0; tracker = tracking.start('pretrain', 'transformer', read_params(), 'f1')\n"
               "for line in json.loads(sys.argv[1]): tracker.log(line.pop('update'), line)\n"
               "print('logged', flush=True); time.sleep(60)\n")
    with subprocess.Popen([sys.executable, "-c", program, json.dumps(lines[:2])], stdout=subprocess.PIPE) as stage:
        assert stage.stdout.readline() == b"logged\n"
        stage.send_signal(signal.SIGKILL)
        stage.wait()
    assert wait_for(sent_and_killed)
    capfd.readouterr()  # what was killed may have found MLflow slow
    monkeypatch.setattr(live, "LIVE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(live, "CLOSE_SECONDS", 60.0)
    tracker = begin()
    for line in lines[1:]:
        tracker.log(line["update"], {key: value for key, value in line.items() if key != "update"})
    tracker.close()
    assert runs()["pretrain transformer"].info.status == "FINISHED"
    assert tracking.sync(read_params()) == 1
    run = runs()["pretrain transformer"]
    assert run.data.tags["gpt1.fingerprint"] == "f1"
    assert run.data.tags["status"] == "finished"
    assert run.data.tags.keys() >= {"cpu", "cores", "gpu", "python", "torch", "git_commit", "dirty", "profile"}
    history = client().get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history] == [(line["update"], line["loss"]) for line in lines]
    logged = read_log(CURVE)[1]
    assert [metric.timestamp for metric in history] == [int(point["time"] * 1000) for point in logged]
    assert capfd.readouterr().err == ""


def sent_and_killed() -> bool:
    log = Path("data/logs/mlflow.lock")
    if not log.exists():
        return False
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database, contextlib.suppress(sqlite3.OperationalError):
        return ("pretrain transformer", "KILLED") in database.execute("SELECT name, status FROM runs").fetchall()
    return False


def wait_for(condition, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.3)
    return bool(met)


def test_a_log_of_another_curve_is_not_mixed_in():
    made_results.write_pretraining(points=2)
    tracker = begin("of other parameters")
    tracker.log(10, {"loss": 4.25})
    tracker.close()
    tracking.sync(read_params())
    run = runs()["pretrain transformer"]
    assert run.data.tags["gpt1.fingerprint"] != "of other parameters"
    assert [metric.value for metric in client().get_metric_history(run.info.run_id, "loss")] == [8.0, 7.0]


@pytest.mark.slow
def test_three_processes_make_one_database():
    write_results(points=1200)  # more than one batch
    program = "from gpt1 import tracking; from gpt1.config import read_params; print(tracking.sync(read_params()))"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for _ in range(3)]
    said = [process.communicate() for process in started]
    assert said == [("4\n", "")] * 3
    experiment = client().get_experiment_by_name("made_up")
    found = client().search_runs([experiment.experiment_id])
    assert len(found) == 5
    run = next(run for run in found if run.info.run_name == "pretrain transformer")
    assert len({(metric.step, metric.value) for metric in client().get_metric_history(run.info.run_id, "loss")}) == 1200


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def silent_port():
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield server.getsockname()[1]


def train_live(monkeypatch, close_seconds: float) -> float:
    """Seconds that a stage of thousand points takes, its closing included."""
    monkeypatch.setattr(live, "LIVE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(live, "CLOSE_SECONDS", close_seconds)
    began = time.monotonic()
    tracker = begin()
    for update in range(1000):
        tracker.log(update, {"loss": 1.0})
    assert time.monotonic() - began < 2
    tracker.close()
    assert len(read_log(CURVE)[1]) == 1000
    return time.monotonic() - began


@pytest.mark.parametrize("where", ["closed", "corrupt file", "corrupt inside"])
def test_a_broken_mlflow_warns_once_and_stops_nothing(where, closed_port, monkeypatch, capfd):
    if where == "closed":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://someone:hunter2@127.0.0.1:{closed_port}")
    else:
        Path("mlflow.db").write_bytes((b"SQLite format 3\0" if where == "corrupt inside" else b"") + os.urandom(8192))
    train_live(monkeypatch, close_seconds=40)
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert len(said.strip().splitlines()) == 1
    made_results.write_pretraining()
    began = time.monotonic()
    with pytest.raises(UserError, match=r"MLflow at .* does not work .*gpt1 sync can be called again") as caught:
        tracking.sync(read_params())
    assert time.monotonic() - began < 20
    assert "hunter2" not in said + str(caught.value)
    assert "someone" not in said + str(caught.value)


def test_a_server_that_never_answers_is_not_waited_for(silent_port, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent_port}")
    assert train_live(monkeypatch, close_seconds=1) < 5
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert "is slow; gpt1 sync adds" in said


def test_a_broken_result_is_one_line():
    made_results.write_pretraining()
    Path("data/pretrain/transformer/curve.jsonl").write_text('{"update": 1\n')
    with pytest.raises(UserError, match="a result under data/ cannot be read"):
        tracking.sync(read_params())
