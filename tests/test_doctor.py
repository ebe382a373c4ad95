"""`gpt1 doctor`: real troubles, each made here: packages, disk, ports, locks, MLflow's database,
settings, data.
"""

import fcntl
import http.server
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from gpt1.pipeline.doctor import checkout, machine, services
from gpt1.pipeline.doctor.doctor import plain_values, print_findings
from gpt1.pipeline.doctor.finding import Finding, size
from gpt1.pipeline.leases import RUN_LOCK
from gpt1.tasks.table import all_sources
from gpt1.train.launch import free_port

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_API_URL", "GPT1_MLFLOW_PORT", "MLFLOW_TRACKING_URI", "GPT1_MLFLOW"):
        monkeypatch.delenv(name, raising=False)


def states(findings: list[Finding]) -> list[str]:
    return [finding.state for finding in findings]


def test_packages_are_held_against_constraints_and_what_is_asked_for(tmp_path):
    pins = machine.read_pins(
        [
            "# a comment",
            "numpy==2.4.6",
            "Foo_Bar==1.0  # why",
            "torch==2.13.0",
            "spacy==3.8.0; python_version > '3'",
        ]
    )
    assert pins == {"numpy": "2.4.6", "foo-bar": "1.0", "torch": "2.13.0", "spacy": "3.8.0"}
    installed = {"numpy": "2.4.5", "foo-bar": "1.0", "torch": "2.13.0+cpu"}
    assert machine.differences(
        pins, installed, ["numpy>=2", "ftfy>=6.2", "pytest>=8; extra == 'test'"]
    ) == (["ftfy"], [("numpy", "2.4.5", "2.4.6")])
    for folder in (
        "first/numpy-2.4.6.dist-info",
        "second/numpy-1.0.dist-info",
        "second/Foo.Bar-1.0.dist-info",
        "second/deepspeed-0.19.8-py3.11.egg-info",
        "second/gpt1.egg-info",
    ):
        (tmp_path / folder).mkdir(parents=True)
    assert machine.read_installed(["first", "second", "nowhere"]) == {
        "numpy": "2.4.6",
        "foo-bar": "1.0",
        "deepspeed": "0.19.8",
    }


def test_this_environment_is_seen_as_python_itself_sees_it():
    from importlib import metadata

    seen = machine.read_installed(sys.path)
    for name in ("torch", "dvc", "ruamel.yaml", "typer"):
        assert seen[machine.normal(name)] == metadata.version(name)


def test_a_wrong_version_is_named_with_the_right_one():
    from importlib import metadata

    found = metadata.version("rich")
    Path("constraints.txt").write_text("rich==1.2.3\n")
    (finding,) = machine.packages()
    assert (finding.state, finding.found) == ("do", f"rich {found}, not 1.2.3")
    assert "make setup" in finding.what_to_do


def test_disk_by_the_plan_and_by_trying_to_write():
    Path("data/logs").mkdir(parents=True)
    assert states(machine.disk()) == ["ok"] or "wanted" in machine.disk()[0].found
    Path("data/logs/plan.json").write_text(
        json.dumps({"stages": {"pretrain": {"disk_bytes": 1e18}, "table2": {"disk_bytes": 0}}})
    )
    (finding,) = machine.disk()
    assert (finding.state, finding.found.partition("; ")[2]) == (
        "do",
        "1000000000.0 GB are wanted by the plan",
    )
    refused = machine.unwritable(Path("/proc"))
    assert refused is not None
    assert "cannot be written" in refused[0]
    assert (size(2.34e9), size(12.3e6)) == ("2.3 GB", "12 MB")


class Answering(http.server.BaseHTTPRequestHandler):
    """A server that says OK, as MLflow's does at /health."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
        self.wfile.write(b"OK" if self.path == "/health" else b"no")

    def log_message(self, *_: object) -> None:
        pass


def test_ports_free_taken_and_answering():
    free = free_port()
    with socket.socket() as taken, http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Path(".env").write_text(
            f"PREFECT_API_URL=http://127.0.0.1:{server.server_port}/api\nGPT1_MLFLOW_PORT={server.server_port}\n"
        )
        prefect, mlflow = services.ports()
        assert (prefect.state, mlflow.state) == (
            "do",
            "ok",
        ), "what answers is MLflow, and no Prefect"
        assert f"port {server.server_port} is taken by something else" in prefect.found
        assert "PREFECT_API_URL=http://127.0.0.1:" in prefect.what_to_do
        server.shutdown()
        Path(".env").write_text(
            f"PREFECT_API_URL=http://127.0.0.1:{free}/api\nGPT1_MLFLOW_PORT=many\n"
        )
        assert [finding.found for finding in services.ports()] == [
            f"Prefect: port {free} is free (make serve starts it)",
            "GPT1_MLFLOW_PORT=many is no port",
        ]


def test_a_held_lock_names_who_holds_it_and_a_dead_claim_is_told():
    Path(".dvc/tmp").mkdir(parents=True)
    assert states(checkout.locks()) == ["ok"]
    with checkout.DVC_LOCK.open("w") as lock:
        lock.write(f" {os.getpid()}\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        (finding,) = checkout.locks()
        assert (finding.state, f"held by process {os.getpid()} " in finding.found) == ("do", True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    Path(".dvc/tmp/rwlock").write_text(
        json.dumps(
            {
                "write": {"/x": {"pid": gone.pid, "cmd": "dvc repro"}},
                "read": {"/y": [{"pid": os.getpid(), "cmd": "dvc repro"}]},
            }
        )
    )
    assert checkout.locks()[0].found.startswith("a DVC that was killed left 1 claim;")
    Path(".dvc/tmp/rwlock").write_text('{"write": ')
    assert "cannot be read" in checkout.locks()[0].found


def test_mlflow_database_absent_broken_locked_and_well():
    (absent,) = services.mlflow_database()
    assert absent.state == "ok"
    Path("mlflow.db").write_text("this is no database, however long it may be" * 50)
    (broken,) = services.mlflow_database()
    assert (broken.state, broken.what_to_do.split(" && ")[0]) == (
        "do",
        "mv mlflow.db mlflow.db.broken",
    )
    Path("mlflow.db").unlink()
    with closing(sqlite3.connect("mlflow.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE runs (id TEXT)")
        database.execute("INSERT INTO runs VALUES ('a')")
        assert [finding.found for finding in services.mlflow_database()] == [
            "mlflow.db holds 1 run"
        ]
        database.execute("BEGIN IMMEDIATE")
        (locked,) = services.mlflow_database()
        assert (locked.state, "is locked by another process" in locked.found) == ("do", True)


def test_settings_that_nothing_reads_and_those_that_make_no_sense(monkeypatch):
    monkeypatch.setenv("GPT1_DEVICE", "cpu")
    Path(".env").write_text("GPT1_THREAD=2\nOTHER=1\n")
    assert [(finding.found, finding.what_to_do) for finding in machine.unknown_settings()] == [
        ("GPT1_THREAD in .env is nothing that gpt1 knows", "did you mean GPT1_THREADS?")
    ]
    Path(".env").write_text("GPT1_MICRO_BATCH=many\n")
    (finding,) = machine.settings()
    assert (finding.state, finding.found) == (
        "do",
        "GPT1_MICRO_BATCH: expected a whole number above 0, found 'many'",
    )


def test_a_compiler_that_lacks_is_told_as_a_training_tells_it(monkeypatch):
    from gpt1.train import speed

    monkeypatch.delenv("GPT1_COMPILE", raising=False)
    assert machine.tools()[1] == ("compiler", "ok", speed.compiler(), "")
    monkeypatch.setenv("CXX", "a-compiler-that-is-nowhere")
    assert machine.tools()[1] == ("compiler", "note", speed.NO_COMPILER, "")
    monkeypatch.setenv("GPT1_COMPILE", "1")
    assert machine.tools()[1].state == "do"


def test_every_setting_that_the_code_reads_is_known():
    import re

    from gpt1.pipeline.settings import INTERNAL, KNOWN

    sources = [*ROOT.glob("gpt1/**/*.py"), *ROOT.glob("flows/**/*.py")]
    read = {
        name
        for path in sources
        if path.name != "settings.py"
        for name in re.findall(r"\bGPT1_[A-Z]+(?:_[A-Z]+)*\b", path.read_text(encoding="utf-8"))
    }
    assert read <= {*KNOWN, *INTERNAL}, (
        "a setting that is read is missing in gpt1/pipeline/settings.py"
    )


def test_data_that_are_absent_dangling_incomplete_or_whole():
    assert checkout.absent("rte") == "data/raw/rte is not there"
    Path("data/raw/books").mkdir(parents=True)
    Path("data/raw/rte").symlink_to("/nowhere/at/all")
    assert checkout.absent("rte") == "data/raw/rte is a link to /nowhere/at/all, which is not there"
    assert checkout.absent("books") == "data/raw/books holds no *.txt files"
    Path("data/raw/books/one.txt").write_text("It was a book.")
    assert checkout.absent("books") == ""
    Path("data/raw/rte").unlink()
    Path("data/raw/rte").mkdir()
    Path("data/raw/rte/train.tsv").write_text("x")
    assert checkout.absent("rte") == f"data/raw/rte holds no {all_sources()['rte'].expected}"


def test_json_says_well_only_where_nothing_is_to_do():
    note, trouble = Finding("GPU", "note", "none"), Finding("disk", "do", "full", "make room")
    assert plain_values([note])["well"] is True
    assert plain_values([note, trouble]) == {
        "well": False,
        "findings": [note._asdict(), trouble._asdict()],
    }


def doctor(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from gpt1.cli import main; main()", "doctor", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_outside_of_the_checkout_one_line_says_so(tmp_path):
    said = doctor(tmp_path)
    assert (said.returncode, said.stderr) == (
        2,
        f"error: no dvc.yaml in {tmp_path}: run this in a project folder (the root of a clone, or what gpt1 init made)\n",
    )


@pytest.mark.slow
def test_the_whole_examination_of_this_checkout_agrees_with_its_exit_status():
    said = doctor(ROOT, "--json")
    told = json.loads(said.stdout)
    assert said.returncode == (0 if told["well"] else 1)
    names = [finding["name"] for finding in told["findings"]]
    for name in (
        "Python",
        "packages",
        "memory",
        "GPU",
        "bf16",
        "DeepSpeed",
        "compiler",
        "disk",
        "ports",
        "git",
        "params",
        "DVC",
        "stages",
        "MLflow",
        "data",
    ):
        assert name in names, f"nothing was said of {name}"
    assert all(finding["what_to_do"] for finding in told["findings"] if finding["state"] == "do")


def test_memory_is_what_a_training_took_where_one_has_run_with_these_sizes(monkeypatch):
    subprocess.run(["cp", str(ROOT / "params.yaml"), str(ROOT / "dvc.yaml"), "."], check=True)
    (finding,) = machine.memory()
    assert re.search(
        r"a training on the CPU takes at most [\d.]+ GB, reckoned with caution", finding.found
    )
    for name, device, peak in (
        ("a", "cpu", 602e6),
        ("b", "cpu", 400e6),
        ("c", "cuda", 9e9),
        ("d", "cpu", "?"),
    ):
        path = Path(f"data/logs/finetune/{name}-speed.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"device": device, "peak_memory_bytes": peak}))
    (finding,) = machine.memory()
    assert "took at most 602 MB when it last ran" in finding.found
    monkeypatch.setattr(
        "gpt1.pipeline.reasons.changed_since",
        lambda _: ["model.width: 128 → 768 (pretrain@transformer)"],
    )
    assert "reckoned with caution" in machine.memory()[0].found


def test_while_a_run_is_at_work_the_last_line_says_so(capsys):
    Path(".dvc/tmp").mkdir(parents=True)
    print_findings(Console(width=80), [Finding("git", "ok", "a clone")])
    assert capsys.readouterr().out.endswith("nothing to do: gpt1 run runs what is out of date\n")
    with RUN_LOCK.open("w") as lock:
        lock.write(f"gpt1 run (process {os.getpid()})\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        print_findings(Console(width=80), [Finding("git", "ok", "a clone")])
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(
        f"nothing to do: gpt1 run (process {os.getpid()}) is at work, and gpt1 status says how far"
        " it is"
    )
