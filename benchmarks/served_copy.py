"""For kills.py: a copy of this checkout in a folder of its own, a real service (make serve) at work
in it, a look at its processes.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from gpt1.params.yaml import parse_yaml

ROOT = Path(__file__).resolve().parent.parent
VICTIMS = ("engine", "worker", "dvc", "stage", "server")
STAGE, UPDATES, ROWS, CONTEXT = "pretrain@transformer", 100, 4, 128
PROFILE = [
    "demo",
    "--tasks",
    "rte",
    "world.town.books=30",
    "shard.heldout_fraction=0.2",
    f"pretrain.updates={UPDATES}",
    f"pretrain.batch_size={ROWS}",
    f"model.context={CONTEXT}",
    "pretrain.warmup_updates=10",
    "pretrain.log_updates=1",
    "pretrain.heldout_updates=50",
    "pretrain.checkpoint_minutes=0.02",
    "finetune.epochs=1",
    "finetune.seeds=[0]",
]
COMMANDS = {
    "stage": ["-m", "gpt1.stages", "pretrain", "transformer"],
    "dvc": ["-m", "gpt1.pipeline.dvc"],
    "engine": ["-m", "flows.engine"],
    "worker": ["-m", "prefect", "worker"],
}
RUN, OUTPUTS = Path("data/logs/run"), Path("data/pretrain/transformer")
MARK, SPEED = RUN / f"{STAGE}.finished", Path("data/logs/pretrain/transformer-speed.json")
POLL_SECONDS = 0.005


class Place:
    """A copy of the checkout with a service at work in it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.api = f"http://127.0.0.1:{port}/api"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PREFECT_", "GPT1_", "MLFLOW_"))
        }
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "PREFECT_HOME": str(folder / ".prefect"),
            "DO_NOT_TRACK": "1",
        }
        self.service: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """The files that git knows or would take, as a repository of their own, with the small
        profile composed.
        """
        listed = subprocess.check_output(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            text=True,
        )
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.folder / name)
        settings = {
            "PREFECT_API_URL": self.api,
            "GPT1_MLFLOW_PORT": self.port + 1,
            "GPT1_DEVICE": "cpu",
            "GPT1_THREADS": 1,
        }
        (self.folder / ".env").write_text(
            "".join(f"{name}={value}\n" for name, value in settings.items())
        )
        self.call("git", "init", "-q")
        self.call("git", "add", "-A")
        self.call(
            "git",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@localhost",
            "commit",
            "-q",
            "-m",
            "kills",
        )
        self.call(sys.executable, "-m", "gpt1.cli", "profile", *PROFILE)

    def call(self, *words: str) -> str:
        """What a command says; ends this script where it fails."""
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    @contextmanager
    def serving(self) -> Iterator[None]:
        """The service, ended as Ctrl-C ends it."""
        log = self.folder / "serve.log"
        with log.open("wb") as output:
            self.service = subprocess.Popen(
                [sys.executable, "-m", "flows.serve"],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            wait(150, lambda: "Ctrl-C here" in log.read_text() or not self.alive(), 0.2)
            if not self.alive():
                raise RuntimeError(f"the service could not be started: {log.read_text()}")
            yield
        finally:
            self.service.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.service.wait(90)
            for left in self.processes():
                left.kill()

    def alive(self) -> bool:
        """Whether the service is at work."""
        return self.service is not None and self.service.poll() is None

    def processes(self, part: str = "") -> list[psutil.Process]:
        """What lives of the service, or of one part of it, whoever its parent is."""
        assert self.service is not None
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                service, _, whose = process.environ().get("GPT1_SERVICE", "").partition("/")
                if (
                    service.startswith(f"{self.service.pid}-")
                    and part in ("", whose)
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
        return found

    def known(self) -> dict[str, list[psutil.Process]]:
        """The possible victims that live now."""
        found: dict[str, list[psutil.Process]] = {name: [] for name in VICTIMS} | {
            "server": self.processes("server")
        }
        for process in self.processes("worker"):
            with suppress(psutil.Error):
                words = process.cmdline()[1:]
                for name, command in COMMANDS.items():
                    if words[: len(command)] == command and (name != "dvc" or words[-1] == STAGE):
                        found[name].append(process)
        return found

    def orphans(self) -> list[psutil.Process]:
        """What belongs to a flow run and to no worker that lives."""
        at_work = self.processes("worker")
        workers = {process.pid for process in at_work if runs(process, COMMANDS["worker"])}
        left = []
        for process in at_work:
            with suppress(psutil.Error):
                if workers.isdisjoint({process.pid, *(parent.pid for parent in process.parents())}):
                    left.append(process)
        return left

    def ask(self) -> str:
        """Ask for the run by the command that people use; returns its id."""
        said = self.call("prefect", "deployment", "run", "reproduce-table2")
        found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", said)
        if found is None:
            raise RuntimeError(f"no id of a flow run in: {said}")
        return found[0]

    def state(self, run: str) -> tuple[str, str]:
        """Name and message of the state that Prefect has of a run; no name while the server does
        not answer.
        """
        with (
            suppress(OSError),
            urllib.request.urlopen(f"{self.api}/flow_runs/{run}", timeout=5) as answer,
        ):
            state = json.load(answer)["state"]
            return str(state["name"]), str(state["message"] or "")
        return "", ""

    def ended(self, run: str) -> bool:
        """Whether a run has come to an end, as Prefect has it."""
        return self.state(run)[0] in ("Completed", "Failed", "Crashed", "Cancelled")

    def lock(self) -> dict[str, Any]:
        """What dvc.lock says of each stage; one that is being written now is looked at again."""
        while True:
            with suppress(Exception):  # half a file is many kinds of error
                return dict(
                    parse_yaml((self.folder / "dvc.lock").read_text(encoding="utf-8"))["stages"]
                )
            time.sleep(POLL_SECONDS)

    def sums(self) -> dict[str, str]:
        """md5 of every output of every stage on disk."""
        outputs = [
            self.folder / out["path"] for stage in self.lock().values() for out in stage["outs"]
        ]
        files = [
            file for output in outputs for file in [output, *output.rglob("*")] if file.is_file()
        ]
        return {
            str(file.relative_to(self.folder)): hashlib.md5(file.read_bytes()).hexdigest()
            for file in files
        }

    def undo(self) -> None:
        """Make the pre-training as if it had never run: outputs, entry, DVC's memory of runs, what
        the stage keeps beside.
        """
        lock = self.folder / "dvc.lock"
        lock.write_text(
            re.sub(rf"^  {STAGE}:\n(    .*\n)+", "", lock.read_text(), flags=re.MULTILINE)
        )
        for gone in (OUTPUTS, Path(".dvc/cache/runs"), Path("data/checkpoints")):
            shutil.rmtree(self.folder / gone, ignore_errors=True)
        for gone in (MARK, SPEED):
            (self.folder / gone).unlink(missing_ok=True)

    def updates(self) -> tuple[int, int]:
        """The last update in the curve, and that of the newest checkpoint."""
        curves = list(self.folder.glob("data/checkpoints/pretrain-transformer-*/curve.jsonl"))
        lines = curves[0].read_text().split("\n")[:-1] if curves else []
        saved = [
            int(path.parent.name[7:])
            for path in self.folder.glob(
                "data/checkpoints/pretrain-transformer-*/update-*/state.json"
            )
        ]
        return (json.loads(lines[-1])["update"] if lines else 0), max(saved, default=0)


def runs(process: psutil.Process, command: Sequence[str]) -> bool:
    """Whether a process is `python` with this command."""
    with suppress(psutil.Error):
        return bool(process.cmdline()[1 : 1 + len(command)] == list(command))
    return False


def wait(seconds: float, there: Callable[[], object], poll: float) -> bool:
    """Until something is there, at most so long; whether it came."""
    deadline = time.monotonic() + seconds
    while not there():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll)
    return True
