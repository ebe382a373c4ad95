"""Stages as processes: each is a `dvc repro --single-item` with its own group and log, and ends
with this process.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flows.graph import BUSY, POLL_SECONDS, TORN, read_graph
from gpt1.base.errors import ELSEWHERE, TEMPORARY_STATUS, UserError
from gpt1.base.files import LOGS
from gpt1.base.interrupts import end_with_parent
from gpt1.base.locks import locked

LOCK = Path(".dvc/tmp/gpt1-run.lock")
STOPS = LOCK.with_suffix(".ends")  # as many bytes as stops were requested of the run
EXITED = re.compile(
    r"^ERROR: failed to reproduce.* exited with (-?\d+)$", re.MULTILINE
)  # as DVC says of a command


class StageFailedError(Exception):
    """A failed stage, in one line that names its log."""


class StageLostError(StageFailedError):
    """A stage that was killed, or that another try may mend."""


def log_of(name: str) -> Path:
    """Return where the output of a stage goes."""
    return LOGS / "run" / f"{name}.log"


def log_text(name: str) -> str:
    """Return the log of a stage; "" before it starts."""
    log = log_of(name)
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def stops_requested() -> int:
    """Return how many stops were requested: after one, stages save; after two, they are killed."""
    return STOPS.stat().st_size


def request_stop(*_: object) -> None:
    """Handle Ctrl-C and SIGTERM in a flow. It takes no room, so it works on a full disk."""
    os.truncate(STOPS, stops_requested() + 1)


def stop_and_raise(*_: object) -> None:
    """Handle Ctrl-C before the flow starts: some libraries swallow a KeyboardInterrupt."""
    request_stop()
    raise KeyboardInterrupt


def repro(name: str, environment: Mapping[str, str]) -> None:
    """Have DVC bring one stage up to date. Raises StageLostError, or StageFailedError, also after a
    requested stop.
    """
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", name]
    waiting, path = "", f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    # DVC's shell must become the stage, as bash does and dash does not: then the stage is DVC's own
    # child, and ends with it
    shell = shutil.which("bash") or "/bin/sh"
    log_of(name).parent.mkdir(parents=True, exist_ok=True)
    while True:
        if stopped := stops_requested():
            raise StageFailedError(name)
        with log_of(name).open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, "PATH": path, "SHELL": shell, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=end_with_parent,
            )
        while (status := process.poll()) is None:
            if stopped < stops_requested():
                os.killpg(process.pid, signal.SIGKILL if stopped else signal.SIGINT)
                stopped += 1
            time.sleep(0.2)
        text = log_text(name)
        if not status:
            return
        if stopped:
            raise StageFailedError(name)
        if TORN in text:
            read_graph(())  # which mends it
        if not (busy := BUSY.search(text)):
            raise failure(name, status, text)
        if waiting != (waiting := busy[1]):  # another DVC reads or writes what this stage would
            print(f"{name} waits for {waiting}", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def failure(name: str, status: int, text: str) -> StageFailedError:
    """Explain a failed stage by DVC's exit status and the log."""
    exited = EXITED.search(text)
    killed = (-signal.SIGKILL, 128 + signal.SIGKILL, TEMPORARY_STATUS)
    lost = (int(exited[1]) if exited else status) in killed or TORN in text
    lines = ["it ended without a word", *re.findall(r".*\S.*", EXITED.sub("", text))]
    if lost:
        lines = ["its process was killed (out of memory?)"]
    if not shutil.disk_usage(LOGS).free:
        lines = ["no room is left on the disk: make some, and run again"]
    reason = [*lines, *re.findall("^error: (.*)", text, re.MULTILINE)][-1]
    return (StageLostError if lost else StageFailedError)(f"{name}: {reason} (log: {log_of(name)})")


@contextmanager
def alone_here() -> Iterator[None]:
    """Allow one run per folder. Raises UserError where another runs, or this is no project."""
    if not Path("dvc.yaml").is_file():
        raise UserError(f"no dvc.yaml in {Path.cwd()}: {ELSEWHERE}")
    with ExitStack() as held:
        try:
            lock = held.enter_context(locked(LOCK, wait=False))
        except BlockingIOError:
            whose = LOCK.read_text(encoding="utf-8").strip()
            line = f"another run is at work here, {whose}: wait for it, or end it"
            raise UserError(line) from None
        lock.truncate(0)
        print(f"process {os.getpid()}", file=lock, flush=True)
        STOPS.write_bytes(b"")
        yield


def is_at_work() -> bool:
    """Return whether a run is at work in this folder."""
    try:
        with locked(LOCK, wait=False):
            return False
    except BlockingIOError:
        return True
