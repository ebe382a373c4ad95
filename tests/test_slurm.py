"""Slurm itself: one training by two tasks of srun; and stages as its jobs, by the work pool of flows/slurm, with a job killed and a node drained."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from copied_checkout import ROOT
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound
from prefect_server import prefect_server, until, without_prefect
from slurm_cluster import NODES, needs_slurm, slurm, slurm_cluster, wait_for
from test_many_processes import run as train

pytestmark = [needs_slurm, pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(400)]
POOL = "gpt1-slurm"
TASKS = ("cola", "rte", "mrpc", "sst2")
WORK = """
import json, os, pathlib, sys, time
name, out = sys.argv[1:]
shared, node, began = pathlib.Path.cwd().parent, os.environ.get("SLURMD_NODENAME"), time.time()
mark = shared / f"began-{name}"
mark.with_suffix(".new").write_text(os.environ.get("SLURM_JOB_ID", ""))
mark.with_suffix(".new").replace(mark)  # a test that sees it reads it at once
pathlib.Path("data/checkpoints", name).mkdir(parents=True, exist_ok=True)
held = shared / f"hold-{name}"
time.sleep(1)
while held.exists():
    time.sleep(0.1)
pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(out).write_text(name + pathlib.Path("data/raw/books/one.txt").read_text())
with (shared / "journal").open("a") as journal:
    journal.write(json.dumps([name, node, began, time.time()]) + "\\n")
"""
REPRODUCE = """
import sys
from flows.reproduce import reproduce_all
sys.exit(0 if reproduce_all(spread=True, pool=sys.argv[1], return_state=True).is_completed() else 1)
"""


DEPLOY = """
from prefect.flows import EntrypointType
from flows.remote import run_stage
from flows.service.server import prepare_pool
prepare_pool()
command = {"command": "python -m flows.engine"}
run_stage.to_deployment("stage", work_pool_name="gpt1", job_variables=command, entrypoint_type=EntrypointType.MODULE_PATH).apply()
"""


def graph() -> str:
    stages = {
        "acquire": ("data/raw/books", "books"),
        "pretrain": ("out/books", "pretrain"),
        "zero_shot": ("out/pretrain", "zero"),
    }
    stages |= {f"finetune-{task}": ("out/pretrain", f"finetune/{task}") for task in TASKS}
    rows = [
        f"  {name}:\n    cmd: python work.py {name} out/{out}\n    deps: [work.py, {needs}, gpt1/model]\n    outs: [out/{out}]"
        for name, (needs, out) in stages.items()
    ]
    return "\n".join(["stages:", *rows, ""])


def do(*words: object, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [*map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Lab:
    """A clone on a disk that all nodes have, a Prefect server, and a worker of the pool."""

    def __init__(self, folder: Path, client: SyncPrefectClient) -> None:
        self.folder, self.clone, self.client = folder, folder / "clone", client
        venv = Path(sys.executable).parent
        self.environment = without_prefect() | {
            "PATH": f"{venv}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(venv.parent),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": str(client.api_url),
            "PREFECT_WORKER_QUERY_SECONDS": "0.5",
            "GPT1_DEVICE": "cpu",
            "GPT1_THREADS": "1",
            "DO_NOT_TRACK": "1",
        }
        self.clone.mkdir()
        for name in ("gpt1", "flows", "conf"):
            shutil.copytree(
                ROOT / name, self.clone / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("params.yaml", "prefect.yaml", "prefect.toml", ".gitignore", ".dvcignore"):
            shutil.copy(ROOT / name, self.clone / name)
        (self.clone / "dvc.yaml").write_text(graph())
        (self.clone / "work.py").write_text(WORK)
        with (self.clone / ".gitignore").open("a") as ignored:
            ignored.write("/out/\n")
        self.do("git", "init", "-q")
        self.do("dvc", "init", "-q")
        self.do("dvc", "remote", "add", "--local", "-d", "shared", folder / "remote")
        (self.clone / "data/raw/books").mkdir(parents=True)
        (self.clone / "data/raw/books/one.txt").write_text("once\n")
        (self.clone / "data/raw/.gitkeep").touch()
        self.do("git", "add", "-A")
        self.do(
            "git", "-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "-m", "one"
        )
        self.do(
            "prefect",
            "work-pool",
            "create",
            POOL,
            "--type",
            "process",
            "--base-job-template",
            "flows/slurm/job-template.json",
        )
        deployments = re.sub(
            r"options: .*",
            "options: --cpus-per-task=1 --mem=500M}",
            (self.clone / "flows/slurm/prefect.yaml").read_text(),
        )
        (folder / "prefect.yaml").write_text(deployments)
        self.do(
            "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", folder / "prefect.yaml"
        )

    def do(self, *words: object) -> str:
        return do(*words, folder=self.clone, environment=self.environment)

    def start(self, *words: object, log: str) -> "subprocess.Popen[bytes]":
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                [*map(str, words)],
                cwd=self.clone,
                env=self.environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def start_worker(self) -> None:
        command = ["prefect", "worker", "start", "--pool", POOL, "--type", "process"]
        self.worker = self.start(*command, log="worker.log")

    def began(self, name: str) -> str:
        """The Slurm job in which a stage has begun."""
        mark = self.folder / f"began-{name}"
        wait_for(mark.exists, lambda: f"{name} has not begun: {self.said()}", 240)
        return mark.read_text()

    def first_of(self, names: list[str]) -> str:
        """Of these stages one that has begun."""
        marks = {name: self.folder / f"began-{name}" for name in names}
        wait_for(
            lambda: any(mark.exists() for mark in marks.values()),
            lambda: f"none of {names} has begun: {self.said()}",
            240,
        )
        return next(name for name, mark in marks.items() if mark.exists())

    def journal(self) -> list[tuple[str, str, float, float]]:
        """What ran since the last look, each stage once: its name and node, when it began and ended."""
        path = self.folder / "journal"
        ran = [json.loads(line) for line in path.read_text().splitlines()]
        path.unlink()
        names = sorted(name for name, *_ in ran)
        assert names == sorted(
            ["acquire", "pretrain", "zero_shot", *(f"finetune-{task}" for task in TASKS)]
        ), "each once"
        return ran

    def said(self) -> str:
        return "".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")):
        yield


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, cluster: None) -> Iterator[Lab]:
    with prefect_server(tmp_path_factory.mktemp("server")) as client:
        made = Lab(tmp_path_factory.mktemp("lab"), client)
        made.start_worker()
        until(
            lambda: any(one.status == "ONLINE" for one in client.read_workers_for_work_pool(POOL))
        )
        made.do("prefect", "work-pool", "set-concurrency-limit", POOL, "2")
        yield made
        made.worker.terminate()
        made.worker.wait(60)


def test_two_tasks_of_srun_train_as_one_process(cluster: None, tmp_path: Path) -> None:
    """The line of docs/machines.md, over two nodes."""
    plain = train(tmp_path / "plain")
    launcher = ["srun", "--nodes=2", "--ntasks-per-node=1", sys.executable, "-m"]
    found = train(tmp_path / "srun", launcher, MASTER_ADDR="127.0.0.1")
    np.testing.assert_allclose(found["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(found["norms"], plain["norms"], rtol=1e-5)


def test_six_stages_as_jobs_two_killed_a_node_drained_the_worker_too(lab: Lab) -> None:
    (lab.folder / "hold-finetune-rte").touch()
    (lab.folder / "hold-pretrain").touch()
    (lab.folder / "hold-zero_shot").touch()
    flow = lab.start(sys.executable, "-c", REPRODUCE, POOL, log="flow.log")
    first = lab.began("pretrain")
    node = slurm("squeue", "-h", "-j", first, "-o", "%N").strip()
    assert slurm("squeue", "-h", "-j", first, "-o", "%j").strip() == "pretrain"
    slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=a disk")
    (lab.folder / "hold-pretrain").unlink()
    held = [
        "finetune-rte",
        "zero_shot",
    ]  # side by side, or the one that came first where cores lack
    for kill in (cancel, kill_9):
        name = lab.first_of(held)
        held.remove(name)
        killed = lab.began(name)
        (lab.folder / f"began-{name}").unlink()
        kill(killed)
        assert lab.began(name) != killed
        if (
            kill is kill_9
        ):  # a worker that dies leaves the job at work, which tells the server itself
            lab.worker.kill()
            lab.start_worker()
        (lab.folder / f"hold-{name}").unlink()
    assert flow.wait(200) == 0, lab.said()
    ran = lab.journal()
    where = {name: at for name, at, *_ in ran}
    assert where.pop("acquire") is None, "what reads data/raw stays where the flow is"
    assert where.pop("pretrain") == node, "a job at work on a node that is drained goes on"
    assert {*where.values()} == {"node1", "node2"} - {node}
    jobs = [(began, ended) for name, _, began, ended in ran if name != "acquire"]
    most = max(sum(began <= moment < ended for began, ended in jobs) for moment, _ in jobs)
    assert most <= 2, "Prefect's limit of the work pool"
    assert lab.do("dvc", "status", "--quiet") == ""
    there = {path.name for path in (lab.clone / "data/checkpoints").iterdir()}
    assert {"finetune-rte", "zero_shot"} <= there, "what a killed stage has kept is no node's own"
    slurm("scontrol", "update", f"nodename={node}", "state=resume")


def cancel(job: str) -> None:
    slurm("scancel", job)


def kill_9(job: str) -> None:
    """As a kernel does that is out of memory, of all processes of a job."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SLURM_JOB_ID") == job and process.name() != "srun":
                process.kill()


@pytest.mark.long
def test_two_workers_on_one_shared_home(lab: Lab) -> None:
    (lab.clone / "data/raw/books/one.txt").write_text("twice\n")
    lab.do(sys.executable, "-c", DEPLOY)
    own = ["sh", "flows/own_clone.sh", "python", "-m", "flows.serve", "--worker"]
    workers = [lab.start("srun", "-w", node, *own, log=f"{node}.log") for node in NODES]
    until(lambda: online(lab.client) == 2)
    second = lab.start("srun", "-w", "node1", *own, log="second.log")
    assert second.wait(60) == 0
    assert "a service runs here already" in (lab.folder / "second.log").read_text()
    assert lab.start(sys.executable, "-c", REPRODUCE, "gpt1", log="flow.log").wait(200) == 0
    assert {at for name, at, *_ in lab.journal() if name != "acquire"} == set(NODES)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    assert slurm("squeue", "-h") == ""


def online(client: SyncPrefectClient) -> int:
    with suppress(ObjectNotFound):
        return sum(one.status == "ONLINE" for one in client.read_workers_for_work_pool("gpt1"))
    return 0
