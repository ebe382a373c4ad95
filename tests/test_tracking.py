"""Logs first, MLflow second: a real sqlite MLflow, its runs and their data, runs that are killed; and
MLflow that is not there, never answers or is broken: one line, and nothing waits for it.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import made_results
import pandas as pd
import pytest
from made_data import json_lines
from made_results import begin, client

from flows.server import free_port
from gpt1.base.errors import UserError
from gpt1.base.locks import announced
from gpt1.commands.sync import sync as sync_and_say
from gpt1.params.schema import read_params
from gpt1.tracking import live
from gpt1.tracking.address import problem
from gpt1.tracking.log import log_path, read_facts
from gpt1.tracking.results import read_training
from gpt1.tracking.store import Store
from gpt1.tracking.sync import sync

PRETRAINED, TUNED = "(pre-training) transformer seed 0", "rte full seed 1"
LOG = log_path("pretrain", "transformer/seed-0")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    made_results.enter(tmp_path, monkeypatch)


@pytest.fixture
def fresh(tmp_path_factory):
    """An empty database here: to make one takes seconds."""
    shutil.copy(made_results.empty_mlflow(tmp_path_factory), "mlflow.db")


def experiment():
    return client().get_experiment_by_name("made_up")


def runs():
    return {run.info.run_name: run for run in client().search_runs([experiment().experiment_id])}


def write_results(points=3):
    made_results.write_pretraining(points)
    heldout = {"update": 10 * points, "heldout_loss": 4.318, "heldout_perplexity": 75.061}
    with Path("data/pretrain/transformer/seed-0/curve.jsonl").open("a") as file:
        file.write(json.dumps(heldout))
    made_results.simple("rte", 90, 100, seeds=(0, 1))
    Path("data/report/table2").mkdir(parents=True)
    Path("data/report/table2/table2.md").write_text(
        "### Table 2\n\n| RTE |\n| --- |\n| 90.0 |\n\n- Words.\n"
    )
    write_score(90.0)


def write_score(score):
    row = {"task": "rte", "system": "full", "seed": 1, "update": None, "n": 9, "score": score}
    pd.DataFrame([row]).to_parquet("data/report/table2/scores.parquet")


def curve():
    """The points of the pre-training."""
    return json_lines("data/pretrain/transformer/seed-0/curve.jsonl")


def log_points(tracker, points):
    for point in points:
        tracker.log(point["update"], {key: point[key] for key in point if key != "update"})


def dump():
    """All that MLflow's database holds, in words."""
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        return list(database.iterdump())


def history(run, key):
    found = client().get_metric_history(run.info.run_id, key)
    return [(metric.step, metric.value) for metric in found]


def test_nothing_to_tell_makes_no_database(monkeypatch):
    assert sync(read_params()) == (0, 0)
    made_results.write_pretraining()
    monkeypatch.setenv("GPT1_MLFLOW", "off")
    assert sync(read_params()) == (0, 0)
    monkeypatch.delenv("GPT1_MLFLOW")
    Path(".env").write_text("GPT1_MLFLOW=off\n")
    assert sync(read_params()) == (0, 0)
    assert not Path("mlflow.db").exists()


def test_a_row_a_training_and_nothing_twice(fresh, capfd):
    write_results(points=40)
    log_points(tracker := begin("its recipe and inputs"), curve())
    tracker.close("FINISHED")
    assert sync(read_params()) == (3, 3)
    assert capfd.readouterr().err == ""
    found = runs()
    assert found.keys() == {PRETRAINED, "rte full seed 0", TUNED, "report"}
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    assert history(found[PRETRAINED], "loss") == [(10 * i, 9.0 - i) for i in range(1, 41)]
    tuned = found[TUNED].data.metrics
    assert (tuned["score"], tuned["best_dev_score"]) == (0.9, 0.5)
    report = found["report"]
    note = report.data.tags["mlflow.note.content"]
    assert note == "### Table 2\n\n| RTE |\n| --- |\n| 90.0 |\n"
    kept = client().list_artifacts(report.info.run_id, "table2")
    assert [file.path for file in kept] == ["table2/scores.parquet", "table2/table2.md"]
    before = dump()
    assert sync(read_params()) == (3, 0)
    assert dump() == before
    shutil.rmtree("data/logs")  # as by make clean, after which DVC's cache brings results back
    assert sync(read_params()) == (3, 0)
    assert len(client().search_runs([experiment().experiment_id])) == len(found)

    write_score(91.0)  # another report, of the same training
    assert sync(read_params()) == (3, 1)
    assert runs()[TUNED].data.metrics["score"] == 0.91
    assert history(runs()[TUNED], "loss") == history(found[TUNED], "loss")


def outdated():
    return {name for name, run in runs().items() if "outdated" in run.data.tags}


def test_a_run_is_known_by_its_recipe_and_inputs_and_an_outdated_one_is_tagged(fresh):
    """A training that was sent live; then one task is changed and trained anew, and all is put back
    as by DVC's cache; then another profile is composed.
    """
    write_results()
    shutil.copytree("data", "before")
    Path("conf").mkdir()
    shutil.copy("params.yaml", "conf/made_up.yaml")
    store = Store(read_params())
    sent_live = store.run("pretrain", "transformer/seed-0", "f1", 1.0, {})
    store.send(
        sent_live, read_training("pretrain", "", Path("data/pretrain/transformer/seed-0")).points
    )
    assert sync(read_params()) == (3, 3)
    assert runs()[PRETRAINED].info.run_id == sent_live.info.run_id
    before = runs().keys()
    made_results.write_params(["rte"], [0, 1], finetune={"epochs": 2})
    assert sync(read_params(), {"finetune@rte"}) == (1, 0)
    assert outdated() == {"rte full seed 0", TUNED, "report"}
    for path in Path("data/finetune").rglob("curve.jsonl"):
        path.write_text(path.read_text().replace("1.5", "1.25"))
    assert sync(read_params()) == (3, 2)
    changed = runs().keys() - before
    assert changed == {"rte full seed 0, finetune.epochs=2", f"{TUNED}, finetune.epochs=2"}
    shutil.copy("conf/made_up.yaml", "params.yaml")
    shutil.rmtree("data")
    shutil.move("before", "data")
    assert sync(read_params()) == (3, 0)
    assert outdated() == changed
    other = read_params().model_copy(update={"profile": "other"})
    assert sync(other, {"pretrain@transformer-0", "finetune@rte"}) == (0, 0)
    assert not Store(other).runs


def test_the_experiment_says_what_it_is_and_the_page_is_named(fresh, capsys):
    write_results()
    sync(read_params())
    assert "A run for each" in experiment().tags["mlflow.note.content"]
    with announced("mlflow") as announce:
        announce("http://ann:secret@127.0.0.1:5317")
        sync_and_say()
    page = capsys.readouterr().out.split("next: ")[1].strip()
    start = f"http://***@127.0.0.1:5317/#/experiments/{experiment().experiment_id}/runs?"
    assert page.startswith(start)
    assert page.endswith("viewStateShareKey=scores")


def test_saved_views_show_runs_and_columns_that_are_there(fresh):
    write_results()
    sync(read_params())
    seen = {}
    for key, value in experiment().tags.items():
        if key.startswith("mlflow.sharedViewState."):
            state = json.loads(json.loads(value)["state"])
            order = [f"{state['orderByKey']} ASC"]
            place = [experiment().experiment_id]
            found = client().search_runs(place, state["searchFilter"], order_by=order)
            columns = {one.partition(".")[2].strip("`") for one in state.get("selectedColumns", ())}
            plotted = {chart["metricKey"] for chart in state.get("compareRunCharts", ())}
            there = {key for run in found for key in (run.data.metrics | run.data.params)}
            # of pulled results no log says the seconds
            assert (columns | plotted) - {"seconds", "outdated"} <= there
            seen[key.rpartition(".")[2]] = [run.info.run_name for run in found]
    assert seen["scores"][0] == PRETRAINED
    assert set(seen["scores"][1:]) == {"rte full seed 0", TUNED}
    assert seen["curves"] == [PRETRAINED]


@pytest.mark.slow
def test_a_database_that_was_moved_writes_nothing_where_it_was(fresh, tmp_path, monkeypatch):
    write_results()
    sync(read_params())
    shutil.move(tmp_path, moved := tmp_path.with_name("moved"))
    monkeypatch.chdir(moved)
    write_score(80.0)
    with pytest.raises(
        UserError, match=r"mlflow\.db keeps its files in .*: it was moved or copied"
    ):
        sync(read_params())
    assert not tmp_path.exists()


def test_live_then_sync_repeats_no_point(fresh, monkeypatch, capfd):
    """The whole life of a long stage: sent live, killed, resumed, finished, synced."""
    made_results.write_pretraining(points=4)
    lines = curve()
    program = (
        "import time, json, sys; from gpt1.params.schema import read_params;"
        " from gpt1.tracking import live\nlive.LIVE_AFTER_SECONDS = 0.0; tracker ="
        " live.Tracker('pretrain', 'transformer/seed-0', read_params(), 'f1')\nfor line in"
        " json.loads(sys.argv[1]): tracker.log(line.pop('update'), line)\nprint('logged',"
        " flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(lines[:2])], stdout=subprocess.PIPE
    ) as stage:
        assert stage.stdout.readline() == b"logged\n"
        assert wait_for(lambda: "runs" in "".join(dump()) and sent("loss"))
        stage.send_signal(signal.SIGKILL)
        stage.wait()
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "1")
    monkeypatch.setattr(live, "LIVE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(live, "CLOSE_SECONDS", 60.0)
    log_points(tracker := begin(), lines[1:])
    assert wait_for(lambda: sent("system/cpu_utilization_percentage")), "MLflow's own measure"
    tracker.close("FINISHED")
    assert runs()[PRETRAINED].info.status == "FINISHED"
    assert sync(read_params()) == (1, 1)
    run = runs()[PRETRAINED]
    assert run.data.tags["gpt1.run"] == "pretrain transformer/seed-0 f1"
    assert run.data.tags.keys() >= {"cpu", "cores", "gpu", "python", "torch", "git_commit", "dirty"}
    assert history(run, "loss") == [(line["update"], line["loss"]) for line in lines]
    sent_at = [metric.timestamp for metric in client().get_metric_history(run.info.run_id, "loss")]
    assert sent_at == sorted(sent_at)
    assert capfd.readouterr().err == ""


def sent(key):
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        return bool(database.execute("SELECT 1 FROM metrics WHERE key = ?", [key]).fetchall())


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.3)
    return bool(met)


TWO_OPEN = """
import os
from gpt1.params.schema import read_params
from gpt1.tracking.store import Store
other = os.fork()
Store(read_params())
assert not other or os.waitpid(other, 0)[1] == 0
"""


@pytest.mark.slow
def test_a_database_whose_maker_is_killed_is_made_anew_by_two_processes_at_once():
    write_results(points=300)  # of five numbers each: more than one batch
    maker = subprocess.Popen([sys.executable, "-c", TWO_OPEN], start_new_session=True)
    unfinished = Path(".mlflow.db.unfinished")
    assert wait_for(lambda: unfinished.is_file() and unfinished.stat().st_size)
    os.killpg(maker.pid, signal.SIGKILL)
    maker.wait()
    assert not Path("mlflow.db").exists()
    subprocess.run([sys.executable, "-c", TWO_OPEN], check=True)
    assert not unfinished.exists()
    sync(read_params())
    assert len(runs()) == 4
    assert len(set(history(runs()[PRETRAINED], "loss"))) == 300


@pytest.fixture
def silent_port():
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield server.getsockname()[1]


def train_live(monkeypatch, close_seconds):
    """Seconds that a stage of thousand points takes, its closing included."""
    monkeypatch.setattr(live, "LIVE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(live, "CLOSE_SECONDS", close_seconds)
    began = time.monotonic()
    tracker = begin()
    for update in range(1000):
        tracker.log(update, {"loss": 1.0})
    assert time.monotonic() - began < 2
    tracker.close("FINISHED")
    assert read_facts(LOG)["last"] == {"update": 999, "loss": 1.0}
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("where", ["closed", "corrupt file", "corrupt inside"])
def test_a_broken_mlflow_warns_once_and_stops_nothing(where, monkeypatch, capfd):
    if where == "closed":
        closed = f"http://someone:hunter2@127.0.0.1:{free_port()}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", closed)
    else:
        Path("mlflow.db").write_bytes(
            (b"SQLite format 3\0" if where == "corrupt inside" else b"") + os.urandom(8192)
        )
    train_live(monkeypatch, close_seconds=40)
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert len(said.strip().splitlines()) == 1
    made_results.write_pretraining()
    began = time.monotonic()
    with pytest.raises(UserError, match=r"MLflow .*gpt1 sync") as caught:
        sync(read_params())
    assert time.monotonic() - began < 20
    assert "hunter2" not in said + str(caught.value)
    assert "someone" not in said + str(caught.value)


@pytest.mark.parametrize(
    ("address", "said", "line"),
    [
        ("http://me:a@host", "No module named 'database'", "No module named 'database'"),
        (
            "http://me:p%40ss@host",
            "me:p%40ss@host says p@ss is wrong",
            "***@host says *** is wrong",
        ),
        ("http://me:word@host", "http://me:word@host/api: word", "http://***@host/api: ***"),
    ],
)
def test_a_secret_is_blanked_and_nothing_else(address, said, line, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert problem(OSError(said)) == f"MLflow at http://***@host does not work ({line})"


@pytest.mark.slow
def test_a_server_that_never_answers_is_not_waited_for(silent_port, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent_port}")
    assert train_live(monkeypatch, close_seconds=1) < 5
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert "gpt1 sync" in said


@pytest.mark.slow
def test_a_broken_result_is_one_line():
    made_results.write_pretraining()
    Path("data/pretrain/transformer/seed-0/curve.jsonl").write_text('{"update": 1\n')
    with pytest.raises(UserError, match=r"data/.*dvc repro"):
        sync(read_params())
