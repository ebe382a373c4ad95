"""Processes of one run on this host, started together, watched and ended together: none outlives
another, nor who started them.

Each holds the end of a pipe and beats on it: silence is a process that stands still, and a pipe
that nobody reads a launcher that is gone.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import IO

from gpt1.base.errors import INTERRUPTED_STATUS

HEARTBEAT = "GPT1_HEARTBEAT"  # names the pipe's descriptor to a process; no setting for people
BEAT_SECONDS = 1.0
FIRST_BEAT_SECONDS = 600.0  # imports on a slow disk
PAUSE_SECONDS = 5.0  # between two looks: more is no fault of those looked at
COMPANY_SECONDS = (
    1.0  # where all fail of one cause they do within it, and the first process has said why
)
END_SECONDS = 10.0  # from the first failure on, for the others to end by themselves
SAVE_SECONDS = (
    60.0  # from the end of an interrupted process on: another one may be writing its checkpoint
)
INTERRUPTED = {INTERRUPTED_STATUS: signal.SIGINT, 128 + signal.SIGTERM: signal.SIGTERM}


@dataclass
class Child:
    """A process, its stderr (None: ours), its pipe, and when it was last heard."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes] | None
    beats: int
    heard: float
    began: bool


def run_together(
    command: Sequence[str], environments: Sequence[Mapping[str, str]], silent_seconds: float
) -> None:
    """Run a command once in each environment and wait for all. Returns where all have succeeded.

    Otherwise ends this process: after an interruption with its status, after a failure with the
    status of the one that failed first and with its own words (the first process's stderr is shown
    as it comes, the others' last line in the end), and with status 1 where one has stood still for
    `silent_seconds`. Signals go on to all.
    """
    children: list[Child] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for environment in environments:
            children.append(_start(command, environment, own_errors=bool(children)))
        status = _watch(children, silent_seconds)
    finally:
        for child in children:
            child.process.kill()
            child.process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    if status:
        sys.exit(status)


def _start(command: Sequence[str], environment: Mapping[str, str], own_errors: bool) -> Child:
    errors = tempfile.TemporaryFile() if own_errors else None  # noqa: SIM115 (open as long as the process)
    beats, write_end = os.pipe()
    os.set_blocking(beats, False)
    try:
        process = subprocess.Popen(
            command,
            env={**environment, HEARTBEAT: str(write_end)},
            pass_fds=(write_end,),
            stderr=errors,
        )
    finally:
        os.close(write_end)
    return Child(process, errors, beats, time.monotonic(), False)


def _watch(children: list[Child], silent_seconds: float) -> int:
    """Wait until all have ended, and see to it that they do once one has failed; returns the status
    for this process.
    """
    looked = time.monotonic()
    while True:
        ended = [rank for rank, child in enumerate(children) if child.process.poll() is not None]
        failed = [rank for rank in ended if children[rank].process.returncode]
        if failed and children[failed[0]].process.returncode in INTERRUPTED:
            return _interrupted(children, children[failed[0]].process.returncode)
        if failed:
            return _failed(children, failed)
        if len(ended) == len(children):
            return 0
        now = time.monotonic()
        for rank, child in enumerate(children):
            with suppress(BlockingIOError):
                if os.read(child.beats, 4096):
                    child.heard, child.began = now, True
            if (
                now - looked > PAUSE_SECONDS
            ):  # this process stood still itself: a stopped job, a machine that slept
                child.heard = now
            if rank not in ended and now - child.heard > max(
                silent_seconds, 0.0 if child.began else FIRST_BEAT_SECONDS
            ):
                return _silent(children, rank, now - child.heard)
        looked = now
        time.sleep(0.1)


def _interrupted(children: list[Child], status: int) -> int:
    """One has ended as it was asked to: the others come after it, the first process perhaps with a
    checkpoint to write.
    """
    if not _wait(children, COMPANY_SECONDS):
        for child in children:
            child.process.send_signal(INTERRUPTED[status])
        _wait(children, SAVE_SECONDS)
    return status


def _failed(children: list[Child], failed: list[int]) -> int:
    _wait(children, COMPANY_SECONDS)
    first = 0 if children[0].process.poll() not in (None, 0) else failed[0]
    status = children[first].process.returncode
    _end(children)
    words, name = (
        _last_line(children[first].errors),
        f"process {first} of {len(children)} (the first is 0)",
    )
    if status < 0:
        print(
            f"error: {name} was ended by {signal.Signals(-status).name}, and the others with it;"
            " SIGKILL is often want of memory",
            file=sys.stderr,
            flush=True,
        )
    elif first:
        print(
            (
                words
                if words.startswith("error: ")
                else f"error: {name}: {words or f'ended with status {status} and without a word'}"
            ),
            file=sys.stderr,
            flush=True,
        )
    return status if status > 0 else 128 - status


def _silent(children: list[Child], rank: int, seconds: float) -> int:
    children[rank].process.kill()
    _end(children)
    print(
        f"error: process {rank} of {len(children)} (the first is 0) has stood still for"
        f" {seconds:.0f} s and all have been ended; see what stopped it (a debugger, memory that"
        " swaps, GPT1_SILENT_SECONDS too short), then run the same command again to go on",
        file=sys.stderr,
        flush=True,
    )
    return 1


def _end(children: list[Child]) -> None:
    for child in children:
        child.process.terminate()
    if not _wait(children, END_SECONDS):
        for child in children:
            child.process.kill()


def _wait(children: list[Child], seconds: float) -> bool:
    """Whether all have ended within that time."""
    deadline = time.monotonic() + seconds
    while any(child.process.poll() is None for child in children):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _last_line(errors: IO[bytes] | None) -> str:
    if errors is None:
        return ""
    errors.seek(0)
    return next(
        (
            line
            for line in reversed(errors.read().decode(errors="replace").split("\n"))
            if line.strip()
        ),
        "",
    )


def join() -> None:
    """In a process that `run_together` started: beat from a thread, and let a process that others
    have lost speak before them.
    """
    descriptor = os.environ.pop(HEARTBEAT, None)
    if descriptor is not None:
        threading.Thread(
            target=_beat, args=(int(descriptor),), daemon=True, name="heartbeat"
        ).start()
        sys.excepthook = _let_the_lost_speak


def _beat(descriptor: int) -> None:
    """Beat until nobody listens any more; then end this process, first in good order, so that a
    training saves a checkpoint.
    """
    os.set_blocking(descriptor, False)
    while True:
        try:
            os.write(descriptor, b".")
        except BlockingIOError:  # the launcher is stopped
            pass
        except OSError:
            break
        time.sleep(BEAT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SAVE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _let_the_lost_speak(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    torch = sys.modules.get("torch")
    if torch and (isinstance(error, torch.distributed.DistError) or "gloo" in str(error)):
        time.sleep(END_SECONDS)  # before it is over, the launcher has ended this process
    show: Callable[..., None] = sys.__excepthook__
    show(kind, error, traceback)
