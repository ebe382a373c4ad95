"""Logs first, MLflow second: a real sqlite MLflow, its runs and pages, and runs that are killed."""

import contextlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import made_results
import pytest
from made_results import begin, client

from gpt1.params.schema import read_params
from gpt1.tracking import live
from gpt1.tracking import sync as tracking
from gpt1.tracking.address import refuse_broken_sqlite
from gpt1.tracking.log import log_path, read_log
from gpt1.tracking.names import COLOURS

CURVE = log_path("pretrain", "transformer")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    return made_results.empty_mlflow(tmp_path_factory)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    made_results.enter(tmp_path, monkeypatch)


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
    assert tracking.sync(read_params()).held == 0
    made_results.write_pretraining()
    monkeypatch.setenv("GPT1_MLFLOW", "off")
    assert tracking.sync(read_params()).held == 0
    monkeypatch.delenv("GPT1_MLFLOW")
    Path(".env").write_text("GPT1_MLFLOW=off\n")
    assert tracking.sync(read_params()).held == 0
    assert not Path("mlflow.db").exists()


def dump() -> list[str]:
    """All that MLflow's database holds, in words."""
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        return list(database.iterdump())


def history(run_id: str, key: str) -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in client().get_metric_history(run_id, key)]


def test_sync_twice(fresh, capfd):
    shutil.copy(fresh, "mlflow.db")
    write_results(points=40)
    assert tracking.sync(read_params()).held == 4
    assert capfd.readouterr().err == ""
    found = runs()
    names = {
        "1 pretrain transformer",
        "2 finetune rte",
        "2 rte seed 0",
        "2 rte seed 1",
        "6 report table2",
    }
    parent = next(run for name, run in found.items() if name not in names)
    assert found.keys() == names | {parent.info.run_name}
    above = {
        name: run.data.tags["mlflow.parentRunId"] for name, run in found.items() if name in names
    }
    assert above == {
        name: found["2 finetune rte"].info.run_id if "seed" in name else parent.info.run_id
        for name in names
    }
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    assert parent.data.params["finetune.lambda_lm"] == "0.5"
    assert parent.data.params["tasks.rte.group"] == "glue_nli"
    assert parent.data.metrics == {
        "table2.rte": 90.0,
        "pretrain.transformer.heldout_perplexity": 75.06,
        "pretrain.transformer.heldout_word_perplexity": 180.12,
    }
    pretrained = found["1 pretrain transformer"]
    assert pretrained.data.tags["parameters"] == "4612352"
    last = {
        key.removeprefix("final/") for key in pretrained.data.metrics if key.startswith("final/")
    }
    assert last == {"heldout_perplexity", "heldout_word_perplexity"}, "measures; counts are tags"
    assert history(pretrained.info.run_id, "loss") == [(10 * i, 9.0 - i) for i in range(1, 41)]
    assert history(pretrained.info.run_id, "by_tokens/loss") == [
        (40960 * i, 9.0 - i) for i in range(1, 41)
    ]
    seed = found["2 rte seed 1"].info.run_id
    assert [history(seed, f"by_tokens/{key}") for key in ("loss", "dev_score")] == [
        [(700, 1.5)],
        [(1500, 0.5)],
    ]
    assert found["2 rte seed 1"].data.params["seed"] == "1"
    told = {"stage": "finetune", "task": "rte", "seed": "1", "mlflow.runColor": COLOURS[1]}
    assert told.items() <= found["2 rte seed 1"].data.tags.items()
    together = found["2 finetune rte"].data.tags
    assert (together["task"], "seed" in together) == ("rte", False)
    compared = client().search_runs(
        [parent.info.experiment_id], "tags.task = 'rte' and tags.stage = 'finetune'"
    )
    assert {run.info.run_name for run in compared} == {
        "2 finetune rte",
        "2 rte seed 0",
        "2 rte seed 1",
    }, "as docs/tools.md says"
    assert "| 2 | 0.5 | 0 | 0.5 |" in together["mlflow.note.content"], "seeds, mean, sd, best"
    assert [
        file.path for file in client().list_artifacts(found["6 report table2"].info.run_id)
    ] == ["metrics.json", "table2.md"]
    assert [file.path for file in client().list_artifacts(parent.info.run_id, "table2")] == [
        "table2/metrics.json",
        "table2/table2.md",
    ]
    assert found["2 finetune rte"].data.metrics == {
        "seeds": 2,
        "dev_score.mean": 0.5,
        "dev_score.best": 0.5,
        "dev_score.sd": 0,
    }

    before = dump()
    assert tracking.sync(read_params()).held == 4
    assert dump() == before

    made_results.write_params(
        ["rte"], [0, 1], finetune={"lambda_lm": 0.25}
    )  # a second set of parameters: a parent and a table of its own
    tracking.sync(read_params())
    everything = client().search_runs([parent.info.experiment_id])
    assert [run.info.run_name for run in everything].count("6 report table2") == 2
    assert [run.info.run_name for run in everything].count("1 pretrain transformer") == 1
    assert len(everything) == 8

    other = json.loads(Path("data/report/table2/metrics.json").read_text())
    other["table2"]["rte"]["mean"] = 91.0
    made_results.write_json(Path("data/report/table2/metrics.json"), other)
    tracking.sync(read_params())
    newest = client().search_runs(
        [parent.info.experiment_id],
        "tags.`gpt1.stage` = 'all' and params.`finetune.lambda_lm` = '0.25'",
    )
    assert newest[0].data.metrics["table2.rte"] == 91.0


def above_all(run) -> bool:
    return "mlflow.parentRunId" not in run.data.tags


@pytest.mark.slow
def test_a_sync_of_nothing_new_does_without_mlflow(fresh):
    shutil.copy(fresh, "mlflow.db")
    write_results(points=3)

    told = list[str]()

    def imports_mlflow() -> bool:
        command = [sys.executable, "-X", "importtime", "-m", "gpt1.cli", "sync"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told.append(done.stdout)
        return bool(re.search(r"\| +mlflow$", done.stderr, re.MULTILINE))

    assert imports_mlflow()
    assert told[-1].startswith("4 results written to MLflow, which has all 4 now")
    assert not imports_mlflow()
    assert told[-1].startswith("MLflow is up to date: 4 results")
    metrics = Path("data/report/table2/metrics.json")
    made_results.write_json(metrics, {"table2": {"rte": {"mean": 91.0, "sd": 0.0}}})
    assert imports_mlflow()
    assert [run.data.metrics["table2.rte"] for run in runs().values() if above_all(run)] == [91.0]
    assert not imports_mlflow()
    shutil.copy(fresh, "mlflow.db")
    assert imports_mlflow()
    assert "2 rte seed 1" in runs()


def test_runs_say_what_they_are(fresh, monkeypatch):
    """Pages, data sets, fingerprints, system metrics, times: what a person finds on MLflow's pages
    beside the numbers.
    """
    shutil.copy(fresh, "mlflow.db")
    write_results(points=2)
    index = json.loads(Path("data/shard/index.json").read_text())
    for split, digest in (("train", "a" * 64), ("heldout", "b" * 64)):
        index["splits"][split]["sha256"] = digest
    made_results.write_json(Path("data/shard/index.json"), index | {"corpus_name": "some books"})
    made_results.write_json(
        Path("data/acquire/corpus/books/manifest.json"),
        {
            "origin": "https://books.example/all, with thanks",
            "files": {"one.txt": {"sha256": "c" * 64}},
        },
    )
    began, head = (
        1_700_000_000.0,
        {"stage": "pretrain", "name": "transformer", "fingerprint": "f1", "profile": "made_up"},
    )
    lines = [
        json.loads(line)
        for line in Path("data/pretrain/transformer/seed-0/curve.jsonl").read_text().splitlines()
    ]
    points = [{"time": began + 60 * number, **line} for number, line in enumerate(lines, start=1)]
    points.append(
        {"time": began + 180, "update": lines[-1]["update"], "heldout_loss": 4.5}
    )  # a line of its own, which names no tokens
    with Path("data/pretrain/transformer/seed-0/curve.jsonl").open("a") as curve:
        curve.write(json.dumps({"update": lines[-1]["update"], "heldout_loss": 4.5}) + "\n")
    CURVE.parent.mkdir(parents=True)
    CURVE.write_text(
        "".join(json.dumps(line) + "\n" for line in ({**head, "time": began}, *points))
    )
    made_results.write_json(
        CURVE.with_suffix(".run.json"),
        {"machine": {"cpu": "a core", "gpu": "none"}, "status": "finished"},
    )
    machine = [
        {
            "time": began + seconds,
            "update": 5,
            "tokens_per_second": 7.5,
            "cpu_utilization_percentage": 42.0,
        }
        for seconds in (-60, 60)
    ]  # the first is of a run before
    CURVE.with_name("transformer-machine.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in machine)
    )
    Path("data/report/index.html").write_text("<!doctype html>")
    text = "### Table 2: NLI\n\n|  | RTE |\n| --- | ---: |\n| ours | 90.0 |\n\n- Words.\n"
    Path("data/report/table2/table2.md").write_text(text)
    Path("dvc.lock").write_text("schema: '2.0'\n")
    monkeypatch.setenv("GPT1_FLOW_RUN_URL", "http://127.0.0.1:4200/runs/flow-run/1")
    tracking.sync(read_params())
    monkeypatch.delenv("GPT1_FLOW_RUN_URL")
    before = dump()
    tracking.sync(read_params())  # by hand, later: still made by that flow run
    assert dump() == before

    found = runs()
    pretrained = found["1 pretrain transformer"]
    parent = client().get_run(pretrained.data.tags["mlflow.parentRunId"])
    assert history(pretrained.info.run_id, "system/tokens_per_second") == [(5, 7.5)]
    assert history(pretrained.info.run_id, "system/cpu_utilization_percentage") == [(5, 42.0)]
    assert (pretrained.info.start_time, pretrained.info.end_time) == (
        1000 * int(began),
        1000 * (int(began) + 180),
    )
    assert (parent.info.start_time, parent.info.end_time) == (
        pretrained.info.start_time,
        pretrained.info.end_time,
    )
    assert parent.data.tags["mlflow.source.name"] == "gpt1 run"
    assert history(pretrained.info.run_id, "by_tokens/heldout_loss") == [(lines[-1]["tokens"], 4.5)]
    assert not [key for key in pretrained.data.metrics if key.startswith("by_tokens/system")]
    inputs = [
        (
            one.dataset.name,
            one.dataset.digest,
            one.tags[0].value,
            json.loads(one.dataset.profile)["num_tokens"],
        )
        for one in pretrained.inputs.dataset_inputs
    ]
    assert inputs == [
        ("some books, train", "a" * 16, "training", 15_100_000),
        ("some books, heldout", "b" * 16, "validation", 1000),
    ]
    assert json.loads(pretrained.inputs.dataset_inputs[0].dataset.source) == {
        "url": "https://books.example/all"
    }
    page = pretrained.data.tags["mlflow.note.content"]
    assert re.search(r"\| held-out perplexity.* \| 75\.06 \|", page)
    assert "`gpt1 run pretrain`" in page
    assert "`gpt1 run finetune@rte`" in found["2 rte seed 0"].data.tags["mlflow.note.content"]
    front = parent.data.tags["mlflow.note.content"]
    assert "(http://127.0.0.1:4200/runs/flow-run/1)" in front
    assert front.endswith("### Table 2: NLI\n\n|  | RTE |\n| --- | ---: |\n| ours | 90.0 |")
    assert (
        parent.data.tags["cpu"],
        len(parent.data.tags["dvc_lock"]),
        len(parent.data.tags["data.books"]),
    ) == ("a core", 16, 16)
    assert "index.html" in [file.path for file in client().list_artifacts(parent.info.run_id)]


@pytest.mark.slow
def test_live_then_sync_repeats_no_point(fresh, monkeypatch, capfd):
    """The whole life of a long stage: sent live, killed, resumed, finished, synced."""
    shutil.copy(fresh, "mlflow.db")
    made_results.write_pretraining(points=4)
    lines = [
        json.loads(line)
        for line in Path("data/pretrain/transformer/seed-0/curve.jsonl").read_text().splitlines()
    ]
    program = (
        "import time, json, sys; from gpt1.params.schema import read_params;"
        " from gpt1.tracking import live\nlive.LIVE_AFTER_SECONDS = 0.0; tracker ="
        " live.Tracker('pretrain', 'transformer', read_params(), 'f1', False)\nfor line in"
        " json.loads(sys.argv[1]): tracker.log(line.pop('update'), line)\nprint('logged',"
        " flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(lines[:2])], stdout=subprocess.PIPE
    ) as stage:
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
    tracker.close("finished")
    assert runs()["1 pretrain transformer"].info.status == "FINISHED"
    assert tracking.sync(read_params()).held == 1
    run = runs()["1 pretrain transformer"]
    assert run.data.tags["gpt1.fingerprint"] == "f1"
    assert run.data.tags["status"] == "finished"
    assert run.data.tags.keys() >= {
        "cpu",
        "cores",
        "gpu",
        "python",
        "torch",
        "git_commit",
        "dirty",
        "profile",
    }
    sent = client().get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in sent] == [
        (line["update"], line["loss"]) for line in lines
    ]
    logged = read_log(CURVE)[1]
    assert [metric.timestamp for metric in sent] == [int(point["time"] * 1000) for point in logged]
    assert capfd.readouterr().err == ""


def sent_and_killed() -> bool:
    log = Path("data/logs/mlflow.lock")
    if not log.exists():
        return False
    with (
        contextlib.closing(sqlite3.connect("mlflow.db")) as database,
        contextlib.suppress(sqlite3.OperationalError),
    ):
        return ("1 pretrain transformer", "KILLED") in database.execute(
            "SELECT name, status FROM runs"
        ).fetchall()
    return False


def wait_for(condition, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.3)
    return bool(met)


def test_a_log_of_another_curve_is_not_mixed_in(fresh):
    shutil.copy(fresh, "mlflow.db")
    made_results.write_pretraining(points=2)
    tracker = begin("of other parameters")
    tracker.log(10, {"loss": 4.25})
    tracker.close("finished")
    tracking.sync(read_params())
    run = runs()["1 pretrain transformer"]
    assert run.data.tags["gpt1.fingerprint"] != "of other parameters"
    assert [metric.value for metric in client().get_metric_history(run.info.run_id, "loss")] == [
        8.0,
        7.0,
    ]


@pytest.mark.slow
def test_a_database_whose_maker_is_killed_is_made_anew():
    open_mlflow = (
        "from gpt1.params.schema import read_params\n"
        "from gpt1.tracking.connection import Connection\n"
        "print(Connection(read_params()).experiment_id)\n"
    )
    maker = subprocess.Popen([sys.executable, "-c", open_mlflow])
    unfinished = Path(".mlflow.db.unfinished")
    assert wait_for(lambda: unfinished.is_file() and unfinished.stat().st_size)
    maker.kill()
    maker.wait()
    assert not Path("mlflow.db").exists()
    subprocess.run([sys.executable, "-c", open_mlflow], check=True)
    assert not unfinished.exists()
    assert client().get_experiment_by_name("made_up") is not None


def test_a_half_made_database_says_what_to_do():
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        database.execute("CREATE TABLE experiments (experiment_id INTEGER)")
    with pytest.raises(OSError, match=r"mlflow\.db: only half made, .*; move it away"):
        refuse_broken_sqlite(f"sqlite:///{Path('mlflow.db').absolute()}")


@pytest.mark.slow
def test_two_processes_make_one_database():
    write_results(points=300)  # of five numbers each: more than one batch
    program = (
        # seconds, but once
        "import os, gpt1.tracking.address as address; address.prepare_mlflow(); import"
        " gpt1.tracking.runs\nfrom gpt1.tracking import sync as tracking; from gpt1.params.schema import read_params\nother ="
        " os.fork(); print(tracking.sync(read_params()).held, flush=True); assert not other or"
        " os.waitpid(other, 0)[1] == 0"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (said.stdout, said.stderr) == ("4\n4\n", "")
    experiment = client().get_experiment_by_name("made_up")
    found = client().search_runs([experiment.experiment_id])
    assert len(found) == 6
    run = next(run for run in found if run.info.run_name == "1 pretrain transformer")
    assert (
        len(
            {
                (metric.step, metric.value)
                for metric in client().get_metric_history(run.info.run_id, "loss")
            }
        )
        == 300
    )
