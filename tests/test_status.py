"""`gpt1 status` over a real DVC repository: what would run is what DVC would run, and why; what
runs now; what ended badly.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline import status as activity
from gpt1.pipeline.graph import connected, read_lock
from gpt1.pipeline.reasons import (
    ABSENT,
    Changed,
    Reason,
    changed_parameters,
    own_reasons,
    parameter_changes,
)
from gpt1.pipeline.schedule import Stage
from gpt1.pipeline.status import Running, Status, as_json, read_status
from gpt1.pipeline.status_report import lines

GRAPH = """
stages:
  clean:
    cmd: (cat word; echo clean) > data/clean
    params: [clean, model.width]
    deps: [word]
    outs: [data/clean]
  finetune:
    foreach: [cola, rte]
    do:
      cmd: (cat data/clean; echo ${item}) > data/finetune/${item}
      deps: [data/clean, code]
      outs: ["data/finetune/${item}"]
  table:
    cmd: (cat data/finetune/cola; echo table) > data/table
    deps: [data/finetune]
    outs: [data/table]
"""
PARAMS = "profile: tiny\nclean: {corpus: own, rows: [1, 2]}\nmodel: {width: 4, layers: 2}\n"
DVC = [sys.executable, "-m", "dvc"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """A repository in which everything has run."""
    folder = tmp_path_factory.mktemp("ran")
    for name, text in {
        ".dvc/config": "[core]\n    no_scm = true\n    analytics = false\n",
        "dvc.yaml": GRAPH,
        "params.yaml": PARAMS,
        "word": "one",
        "code/model.py": "first",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "data/finetune").mkdir(parents=True)
    subprocess.run([*DVC, "repro", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def checkout(ran, tmp_path, monkeypatch) -> Path:
    """A copy of it, with the times of its files, in which the test works."""
    shutil.copytree(ran, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path()


def why(targets=()) -> dict[str, list[str]]:
    return {
        name: [str(reason) for reason in reasons]
        for name, reasons in read_status(targets).would_run.items()
    }


def test_nothing_would_run_where_everything_has(checkout):
    status = read_status(())
    assert (status.would_run, status.running, status.ended) == ({}, {}, {})
    assert status.current == ["clean", "finetune@cola", "finetune@rte", "table"]


def test_each_change_is_named_where_it_is_and_only_there(checkout):
    Path("params.yaml").write_text(
        PARAMS.replace("width: 4, layers: 2", "width: 8, layers: 3").replace("[1, 2]", "[1, 3]")
    )
    Path("code/model.py").write_text("second")
    assert why() == {
        "clean": ["clean.rows: [1, 2] → [1, 3]", "model.width: 4 → 8"],
        "finetune@cola": ["code changed"],
        "finetune@rte": ["code changed"],
        "table": [],
    }
    assert {told: who for who, told in lines(read_status(()))} == {
        "clean.rows: [1, 2] → [1, 3]; model.width: 4 → 8": ["clean"],
        "code changed": ["finetune (2)"],
        "after finetune": ["table"],
    }
    assert list(why(["finetune@rte"])) == ["clean", "finetune@rte"]


def test_changed_parameters_are_found_without_dvc_and_are_those_that_dvc_finds(checkout):
    """Read from dvc.lock's text; a stage without results, or that the graph no longer has, has been
    made with nothing.
    """
    changed = (
        PARAMS.replace("width: 4, layers: 2", "width: 0.5, layers: 3")
        .replace("[1, 2]", "[1, 3]")
        .replace("corpus: own, ", "")
    )
    Path("params.yaml").write_text(f"{changed}other: 1\n")
    status, values = read_status(()), read_yaml(Path("params.yaml"))
    found = changed_parameters(status.stages, values)
    assert sorted(map(str, found)) == [
        "clean.corpus: own → not set (clean)",
        "clean.rows: [1, 2] → [1, 3] (clean)",
        "model.width: 4 → 0.5 (clean)",
    ]
    assert [one.reason for one in found] == [
        one for reasons in status.would_run.values() for one in reasons if one.kind == "parameter"
    ]
    assert changed_parameters(status.stages, values, ["finetune@rte"]) == found, "it needs clean"
    assert changed_parameters({"table": Stage("table", frozenset())}, values) == []
    Path("data/clean").unlink()
    assert changed_parameters(status.stages, values) == []


def test_stages_with_the_same_change_are_told_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert changed_parameters({"b": Stage("b", frozenset())}, {}) == []
    stages = {name: Stage(name, frozenset()) for name in ("a@x", "a@y", "b", "check")}
    entry = (
        "    params:\n      params.yaml:\n        rate: 1e-05\n        list:\n        - {a: 1}\n"
    )
    Path("dvc.lock").write_text(
        "schema: '2.0'\nstages:\n" + "".join(f"  {name}:\n{entry}" for name in stages)
    )
    assert read_lock()["b"]["params"] == {"params.yaml": {"rate": 1e-5, "list": [{"a": 1}]}}
    (found,) = changed_parameters(stages, {"rate": 2e-5, "list": [{"a": 1}]})
    assert found == Changed(Reason("parameter", "rate", 1e-5, 2e-5), ("a@x", "a@y", "b"))
    assert str(found) == "rate: 1e-05 → 2e-05 (a, 2 stages, b)"
    Path("dvc.lock").write_text("stages: {b: {params: ")
    with pytest.raises(UserError, match=r"dvc\.lock cannot be read"):
        changed_parameters(stages, {})


def test_missing_results_lost_cache_and_changed_commands_are_reasons(checkout):
    Path("data/finetune/cola").unlink()
    Path("dvc.yaml").write_text(GRAPH.replace("echo clean", "echo cleaned"))
    digest = (
        Path("dvc.lock")
        .read_text()
        .partition("path: data/table")[2]
        .partition("md5: ")[2]
        .split()[0]
    )
    Path(f".dvc/cache/files/md5/{digest[:2]}/{digest[2:]}").unlink()
    assert why() == {
        "clean": ["its command changed"],
        "finetune@cola": ["data/finetune/cola is missing"],
        "finetune@rte": [],
        "table": ["data/table is not in DVC's cache"],
    }
    said = json.loads(
        subprocess.run(
            [*DVC, "status", "--json"], capture_output=True, check=True, text=True
        ).stdout
    )
    assert {"clean", "finetune@cola"} <= set(said), "DVC itself sees it otherwise"


def test_a_stage_that_never_ran_and_data_that_are_not_there(checkout):
    Path("dvc.lock").unlink()
    Path("word").unlink()
    assert why() == {
        "clean": ["has not run yet", "word is missing"],
        **{name: ["has not run yet"] for name in ("finetune@cola", "finetune@rte", "table")},
    }


def test_a_training_at_work_is_told_with_how_far_it_is(checkout):
    """A process that says it is DVC's, its claim, its log, and the checkpoints of a training."""
    Path("data/clean").unlink()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "dvc"]) as process:
        try:
            claim = {
                "write": {str(Path.cwd() / "data/clean"): {"pid": process.pid, "cmd": "dvc repro"}}
            }
            Path(".dvc/tmp/rwlock").write_text(json.dumps(claim))
            log = activity.log_of("clean")
            log.parent.mkdir(parents=True)
            log.write_text(
                "Running stage 'clean':\npretrain lstm: update 1000 of 2000, loss 2.5, 9 tokens/s,"
                " 1.5 min left\n"
            )
            for update in (900, 950):
                Path(f"data/checkpoints/clean--0123456789abcdef/update-{update:08d}").mkdir(
                    parents=True
                )
            status = read_status(())
        finally:
            process.kill()
    found = status.running["clean"]
    assert (found.process, found.update, found.updates, found.left, found.part) == (
        process.pid,
        1000,
        2000,
        "1.5 min",
        "lstm",
    )
    assert found.checkpoint == "checkpoint at update 950"
    assert abs(found.began - time.time()) < 60
    assert list(as_json(status, "tiny")["would_run"]) == ["finetune@cola", "finetune@rte", "table"]
    assert read_status(()).running == {}, "its process has ended"


@pytest.mark.slow
def test_how_a_stage_ended_by_its_log(checkout):
    began = "Running stage 'finetune@cola':\n> python -m gpt1.stages finetune cola\n"
    failed = (
        "ERROR: failed to reproduce 'finetune@cola': failed to run: python -m gpt1.stages finetune"
        " cola, exited with "
    )
    log = activity.log_of("finetune@cola")
    log.parent.mkdir(parents=True)
    for said, how, reason in (
        (f"{began}error: data/clean is broken\n{failed}2\n", "failed", "data/clean is broken"),
        (
            f"{began}interrupted at update 3: run it again\n{failed}-2\n",
            "interrupted",
            "interrupted at update 3: run it again",
        ),
        (f"{began}{failed}-9\n", "killed", "it was ended by signal 9"),
        (
            f"{began}finetune cola/seed-0: update 3 of 9\n",
            "killed",
            "it ended without a word: killed, or the machine went down",
        ),
    ):
        log.write_text(said)
        ended = activity.ended_badly("finetune@cola")
        assert ended is not None
        assert (ended.how, ended.why) == (how, reason)
    log.write_text(f"{began}Updating lock file 'dvc.lock'\n")
    assert activity.ended_badly("finetune@cola") is None
    log.write_text(f"{began}error: \x1b[2Jbad\x07\n{failed}1\n")
    Path("code/model.py").write_text("second")
    said = gpt1_status()
    assert "finetune@cola failed" in said.stdout
    assert "error: [2Jbad" in said.stdout.replace("\n", " ") or "[2Jbad" in said.stdout
    assert not {"\x1b", "\x07"} & set(said.stdout), "a file steers the terminal"
    assert max(map(len, said.stdout.splitlines())) <= 80
    assert (
        "next: mend what " in said.stdout
    )  # failed, or is in the way: there is no constraints.txt


def gpt1_status(*words: str) -> "subprocess.CompletedProcess[str]":
    root = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", "from gpt1.cli import main; main()", "status", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"},
    )


@pytest.mark.slow
def test_broken_files_and_wrong_names_are_one_line(checkout):
    with pytest.raises(UserError, match="no stage 'tabel'; did you mean table"):
        read_status(["tabel"])
    Path("dvc.lock").write_text("<<<<<<< HEAD\n")
    said = gpt1_status()
    assert (said.returncode, said.stderr.count("\n")) == (2, 1)
    assert "dvc.lock" in said.stderr


def test_reasons_by_hand():
    assert list(
        parameter_changes("a", {"b": 1, "c": {"d": 2}}, {"b": 1, "c": {"d": 3}, "e": 4})
    ) == [Reason("parameter", "a.c.d", 2, 3), Reason("parameter", "a.e", "was not set", 4)]
    assert list(parameter_changes("a", (1, 2), [1, 2])) == []
    assert str(next(parameter_changes("a", 1, ABSENT))) == "a: 1 → not set"
    stages = {
        name: Stage(name, frozenset(needs), writes=(f"data/{name}",))
        for name, needs in {"c": "b", "b": "a", "a": ""}.items()
    }
    changed = {"a": [Reason("command")], "b": [Reason("changed", "data/a")], "c": []}
    assert own_reasons(stages, changed) == {"a": [Reason("command")], "b": [], "c": []}
    assert own_reasons(stages, {**changed, "a": []}) == {
        "b": [Reason("changed", "data/a")],
        "c": [],
    }


def test_a_stage_needs_those_that_write_what_it_reads_above_it_or_below_it():
    rows = {
        "x": (("data/a/b",), ("data/c",)),
        "y": (("data",), ()),
        "z": (("data/ab",), ("data/a",)),
    }
    assert {name: stage.needs for name, stage in connected(rows).items()} == {
        "x": {"z"},
        "y": {"x", "z"},
        "z": set(),
    }


def test_what_the_check_of_all_parameters_writes_is_known_so_nothing_waits_for_it():
    """Unless its command is another, or its results are not there: who knows what it writes
    then.
    """
    needs = {"check": (), "world": ("check",), "clean": ("world",), "table": ("clean",)}
    stages = {
        name: Stage(name, frozenset(before), writes=(f"data/{name}",))
        for name, before in needs.items()
    }
    rate, gone = Reason("parameter", "rate", 1, 2), Reason("missing", "data/check")
    nothing: dict[str, list[Reason]] = {name: [] for name in stages}
    assert own_reasons(stages, {**nothing, "check": [rate]}) == {"check": [rate]}
    assert own_reasons(stages, {**nothing, "check": [rate], "clean": [rate]}) == {
        "check": [rate],
        "clean": [rate],
        "table": [],
    }
    assert list(own_reasons(stages, {**nothing, "check": [gone]})) == list(needs)
    status = Status(stages, {"check": [rate], "clean": [rate], "table": []}, "", {}, {}, {})
    assert (status.current, status.surely, status.perhaps) == (
        ["world"],
        ["check", "clean"],
        ["table"],
    )
    assert status.to_run() == "2 to run, then up to 1 after them"
    assert status.waits_for("world") == []
    assert status._replace(would_run={"check": [rate]}).to_run() == "1 to run"
    at_work = {name: Running(1, 0.0) for name in ("check", "clean")}
    assert status._replace(running=at_work).to_run() == "up to 1 to run after these"
    assert status._replace(would_run={}).to_run() == ""
