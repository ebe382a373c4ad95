"""The service as people use it: a real server, pool, worker and MLflow, in a copy whose flow only
sleeps; Ctrl-C and SIGKILL.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]
START_SECONDS, END_SECONDS, GONE_SECONDS = 120, 45, 45
STAND_IN = """
import subprocess
import sys
from pathlib import Path
from typing import Literal

from prefect import flow


def made(name):
    @flow(name=f"reproduce-{name}")
    def reproduce(profile: str | None = None, seconds: int = 0, tasks: list[Literal["snli", "rte"]] | None = None) -> None:
        Path(f"{name}.began").touch()
        child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
        try:
            child.wait()
        finally:
            child.kill()
            child.wait()
            Path(f"{name}.ended").touch()

    return reproduce


reproduce_table2, reproduce_table3 = made("table2"), made("table3")
reproduce_table4 = reproduce_table5 = reproduce_figure2 = reproduce_all = reproduce_table3
"""
DEPLOYMENTS = """
name: gpt1
pull: []
definitions:
  - &process {name: gpt1, job_variables: {command: python -m flows.engine}}
deployments:
  - {name: checkout, entrypoint: flows.reproduce.reproduce_table2, work_pool: *process}
  - {name: small, entrypoint: flows.reproduce.reproduce_table2, work_pool: *process, parameters: {profile: small}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Copy:
    """A copy of what the service needs, its ports, and its command lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a copy"
        for name in ("gpt1", "flows"):
            shutil.copytree(
                ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "prefect.toml", self.folder)
        (self.folder / "flows/reproduce.py").write_text(STAND_IN)
        (self.folder / "prefect.yaml").write_text(DEPLOYMENTS)
        information = (
            self.folder / "gpt1-0.1.0.dist-info"
        )  # the copy's own, so that Prefect finds the copy's plug-in
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: gpt1\nVersion: 0.1.0\n")
        (information / "entry_points.txt").write_text(
            "[prefect.plugins]\ngpt1 = gpt1.pipeline.prefect_names\n"
        )
        lost_runs = self.folder / "flows/service/server.py"
        lost_runs.write_text(
            re.sub(r"(?m)^(LOOK_SECONDS, LOOKS) = .*", r"\1 = 0.5, 8", lost_runs.read_text())
        )  # four seconds in the place of forty
        self.mlflow = free_port()
        self.prefect = f"http://127.0.0.1:{free_port()}/api"
        (self.folder / ".env").write_text(
            f"PREFECT_API_URL={self.prefect}\nGPT1_MLFLOW_PORT={self.mlflow}\n"
        )
        self.said = self.folder / "said"
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PREFECT", "MLFLOW", "GPT1_MLFLOW"))
        }
        self.environment = {
            **kept,
            "PYTHONPATH": str(self.folder),
            "PREFECT_HOME": str(self.folder / ".prefect"),
        }

    def start(self, **variables: str) -> "subprocess.Popen[bytes]":
        """Start the service and wait until it says what to type next."""
        with self.said.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.serve"],
                cwd=self.folder,
                env=self.environment | variables,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.until(
            lambda: "prefect deployment run" in self.said.read_text() or process.poll() is not None,
            START_SECONDS,
        )
        assert process.poll() is None, f"the service ended: {self.said.read_text()}"
        return process

    def until(self, done: "object", seconds: float) -> None:
        """Wait; the service's own words are the message where that takes too long."""
        assert callable(done)
        limit = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < limit, (
                f"not within {seconds:.0f} s; the service said: {self.said.read_text()}"
            )
            time.sleep(0.2)

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def run_at_work(self, seconds: int) -> str:
        """A flow run that has begun and sleeps; its id."""
        (self.folder / "table2.began").unlink(missing_ok=True)
        (self.folder / "table2.ended").unlink(missing_ok=True)
        run = self.ask(seconds)
        self.until((self.folder / "table2.began").exists, START_SECONDS)
        return run

    def ask(self, seconds: int) -> str:
        """Ask for a flow run; returns its id."""
        asked = self.command(
            "prefect", "deployment", "run", "reproduce-table2", "-p", f"seconds={seconds}"
        )
        found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", asked.stdout)
        assert found, asked.stdout + asked.stderr
        return found[0]

    def states(self, run: str) -> list[str]:
        """The states that a flow run went through."""
        with urllib.request.urlopen(f"{self.prefect}/flow_run_states/?flow_run_id={run}") as answer:
            found = json.load(answer)
        return [each["name"] for each in sorted(found, key=lambda each: each["timestamp"])]

    def processes(self) -> list[str]:
        """The command lines of all that lives and was started in the copy."""
        found = []
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get("PYTHONPATH", "").startswith(str(self.folder))
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found


def is_part(process: psutil.Process, copy: Copy, command: list[str], word: str = "") -> bool:
    """Whether a process is `python` with this command and, where one is given, this word, in a
    copy.
    """
    try:
        words = process.cmdline()
        return (
            words[1 : 1 + len(command)] == command
            and word in ["", *words]
            and process.environ().get("PYTHONPATH", "").startswith(str(copy.folder))
        )
    except (psutil.Error, OSError):
        return False


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    made = Copy(tmp_path_factory.mktemp("serve"))
    yield made
    for process in psutil.process_iter():  # only where a test has failed
        try:
            if process.environ().get("PYTHONPATH", "").startswith(str(made.folder)):
                process.kill()
        except (psutil.Error, OSError):
            continue


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(400)
@pytest.mark.long
def test_service(copy: Copy) -> None:
    service = copy.start()
    said = copy.said.read_text()
    assert f"MLflow at http://127.0.0.1:{copy.mlflow}" in said
    assert (copy.folder / "mlflow.db").exists(), "MLflow's database is to lie in the checkout"

    ran = copy.command("prefect", "deployment", "run", "reproduce-table2", "--watch")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "warning" not in ran.stderr, "a worker is there, of the same version"
    assert (copy.folder / "table2.ended").exists(), "a flow run is to work in the root of the clone"

    refused = copy.command(
        "prefect", "deployment", "run", "reproduce-table2/small", "-p", 'tasks=["nope"]'
    )
    assert refused.returncode == 1
    assert "'nope' is not one of ['snli', 'rte']" in " ".join(refused.stdout.split())
    assert "Created flow run" not in refused.stdout

    unknown = copy.command("prefect", "deployment", "run", "reproduce-tabel2")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1), unknown.stderr
    assert "did you mean reproduce-table2 " in unknown.stderr

    second = copy.command("flows.serve")
    assert (second.returncode, second.stdout.count("\n"), second.stderr) == (0, 1, ""), (
        second.stdout + second.stderr
    )
    assert f"process {service.pid}, Prefect at http://127.0.0.1:" in second.stdout

    copy.run_at_work(300)
    os.kill(service.pid, signal.SIGINT)
    assert service.wait(END_SECONDS) == 0, copy.said.read_text()
    assert (copy.folder / "table2.ended").exists(), (
        "the flow run was killed before it could end its stages"
    )
    assert copy.processes() == []

    service = copy.start(GPT1_MLFLOW="off")
    copy.run_at_work(300)
    os.kill(service.pid, signal.SIGKILL)
    service.wait()
    copy.until(lambda: not copy.processes(), GONE_SECONDS)
    assert (copy.folder / "table2.ended").exists(), (
        "the flow run was killed before it could end its stages"
    )


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_run_that_has_ended_keeps_its_state_and_a_dead_one_is_known(copy: Copy) -> None:
    service = copy.start(GPT1_MLFLOW="off")
    short = [copy.ask(0) for _ in range(3)]
    for run in short:
        copy.until(lambda run=run: copy.states(run)[-1] == "Completed", START_SECONDS)
    dead = copy.run_at_work(300)
    found = [
        process
        for process in psutil.process_iter()
        if is_part(process, copy, ["-m", "flows.engine"])
        or is_part(process, copy, ["-m", "prefect", "worker", "start"], "default")
    ]  # both at once: nobody is left who could tell
    assert len(found) == 2
    for process in found:
        process.suspend()
    for process in found:
        process.kill()
    long = copy.ask(20)
    copy.until(lambda: copy.states(dead)[-1] == "Crashed", 60)
    copy.until(lambda: copy.states(long)[-1] == "Completed", START_SECONDS)
    time.sleep(15)
    assert [copy.states(run)[-1] for run in [*short, long, dead]] == [*["Completed"] * 4, "Crashed"]
    os.kill(service.pid, signal.SIGINT)
    assert service.wait(END_SECONDS) == 0, copy.said.read_text()


def test_a_service_of_another_machine_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared disk, where its process number would mean another process, or none."""
    from flows import serve
    from gpt1.base.errors import UserError
    from gpt1.base.locks import locked

    monkeypatch.setattr(serve, "HOME", tmp_path)
    about = {"host": "node7", "process": os.getpid(), "what": "a worker of http://first:4200"}
    (tmp_path / "service.json").write_text(json.dumps(about))
    with (
        locked(tmp_path / "service.lock"),
        pytest.raises(UserError, match=r"on node7, a worker of .*sh flows/own_clone\.sh"),
        serve.only_service("mine"),
    ):
        pass


@pytest.mark.slow
def test_a_server_that_the_users_profile_names_is_taken(tmp_path: Path) -> None:
    other = Copy(tmp_path)
    (other.folder / ".env").unlink()
    theirs = "https://127.0.0.1:9/api"  # nothing answers, and none is started there
    profiles = other.folder / "profiles.toml"
    profiles.write_text(f'active = "work"\n[profiles.work]\nPREFECT_API_URL = "{theirs}"\n')
    other.environment["PREFECT_PROFILES_PATH"] = str(profiles)
    served = other.command("flows.serve")
    assert served.returncode == 2
    assert f"Prefect's address is {theirs}, by your Prefect profile 'work'" in served.stdout
    assert f"no Prefect server answers at {theirs}" in served.stderr


@pytest.mark.slow
def test_where_nothing_names_a_server_it_is_this_machines(tmp_path: Path) -> None:
    """With neither .env nor a profile: what is wrong is said of the next setting, not of Prefect's."""
    fresh = Copy(tmp_path)
    (fresh.folder / ".env").unlink()
    fresh.environment["PREFECT_PROFILES_PATH"] = str(fresh.folder / "none.toml")
    fresh.environment["GPT1_MLFLOW_PORT"] = "none"
    assert "GPT1_MLFLOW_PORT: expected a port" in fresh.command("flows.serve").stderr
