"""Stages as processes: each is a `dvc repro --single-item` with a process group and a log of its
own, which ends when this process does, however that comes.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from flows.graph import BUSY, POLL_SECONDS, TORN, read_graph
from gpt1.base.errors import TEMPORARY_STATUS, UserError
from gpt1.base.files import LOGS
from gpt1.base.interrupts import end_with_parent
from gpt1.base.locks import locked

LOCK = Path(".dvc/tmp/gpt1-run.lock")
EXITED = re.compile(r"exited with (-?\d+)$", re.MULTILINE)  # as DVC says of a command

running: set["subprocess.Popen[bytes]"] = set()
signals: list[int] = []  # that asked for an end


class StageFailedError(Exception):
    """A stage that failed, in one line with its log."""


class StageLostError(StageFailedError):
    """A stage whose process was killed, or that says a later try may go well."""


class StageInterruptedError(Exception):
    """A stage that was asked to end, or was not started because the run is to end."""


def log_of(name: str) -> Path:
    """Where the output of a stage goes."""
    return LOGS / "run" / f"{name}.log"


def log_text(name: str) -> str:
    """What a stage said; nothing where it was not started."""
    log = log_of(name)
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def interrupt(number: int, _: FrameType | None) -> None:
    """Ctrl-C until then: noted besides, for not every KeyboardInterrupt comes through."""
    signals.append(number)
    raise KeyboardInterrupt


def take_signals() -> None:
    """From now on Ctrl-C and SIGTERM are handed to the stages, which save and end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _hand_on)


def _hand_on(number: int, _: FrameType | None) -> None:
    signals.append(number)
    end = signal.SIGINT if len(signals) == 1 else signal.SIGKILL
    for process in list(running):
        with suppress(OSError):
            os.killpg(process.pid, end)


def repro(name: str, environment: Mapping[str, str]) -> None:
    """Have DVC bring one stage up to date. Raises StageFailedError, StageLostError, or
    StageInterruptedError.
    """
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", name]
    waiting, path = "", f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    # DVC's shell must become the stage, as bash does and dash does not: then the stage is DVC's own
    # child, and ends with it
    shell = shutil.which("bash") or os.environ.get("SHELL", "/bin/sh")
    log_of(name).parent.mkdir(parents=True, exist_ok=True)
    while True:
        if signals:
            raise StageInterruptedError(name)
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
        running.add(process)
        try:
            status = process.wait()
        finally:
            running.discard(process)
        said = log_text(name)
        if not status:
            return
        if signals:
            raise StageInterruptedError(name)
        if TORN in said:
            read_graph(())  # which mends it
        if not (busy := BUSY.search(said)):
            raise failure(name, status, said)
        if waiting != busy[1]:  # another DVC reads or writes what this stage would
            waiting = busy[1]
            print(f"{name} waits for {waiting}", file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)


def failure(name: str, status: int, said: str) -> StageFailedError:
    """What became of a stage, by the status of its DVC and what the two said."""
    exited = [int(number) for number in EXITED.findall(said)][-1:] or [status]
    killed = (-signal.SIGKILL, 128 + signal.SIGKILL, TEMPORARY_STATUS)
    lost = exited[0] in killed or TORN in said
    why = "its process was killed (out of memory?)" if lost else "it ended without a word"
    lines = re.findall(
        r"^(?!ERROR: failed to reproduce).*\S.*$", "" if lost else said, re.MULTILINE
    )
    reason = [why, *lines, *re.findall("^error: (.*)", said, re.MULTILINE)][-1]
    kind = StageLostError if lost else StageFailedError
    return kind(f"{name}: {reason} (log: {log_of(name)})")


@contextmanager
def alone_here() -> Iterator[None]:
    """One run a folder. Raises UserError where another is at work."""
    try:
        with locked(LOCK, 0) as lock:
            lock.truncate(0)
            print(f"process {os.getpid()}", file=lock, flush=True)
            yield
    except TimeoutError:
        whose = LOCK.read_text(encoding="utf-8").strip()
        raise UserError(f"another run is at work here, {whose}: wait for it, or end it") from None
