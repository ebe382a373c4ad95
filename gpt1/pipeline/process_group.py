"""Processes that belong together, and their end: a process group that does not outlive whoever made
it, even one ended by SIGKILL; a guard in it waits for its pipe to close.

`python -m gpt1.pipeline.process_group` is the guard. It leads the group, so the group's id stays
valid, and holds the files it was given, a lock, for as long as anything of the group lives.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def guarded_by(
    module: str,
    *words: str,
    held_file: int,
    new_session: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """`python -m module` as a guard, leader of a process group or session, until the end of the
    block; it holds `held_file`, a descriptor, for as long as it lives.
    """
    guard = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(held_file,),
        process_group=None if new_session else 0,
        start_new_session=new_session,
        env=environment,
    )
    assert guard.stdin is not None
    assert guard.stdout is not None
    try:
        guard.stdout.read(1)  # from here on it takes no notice of signals
        yield guard
    finally:
        guard.stdin.close()
        guard.wait()
        guard.stdout.close()


def stand_guard() -> None:
    """In the guard: wait, whatever signals come, until whoever started it is gone or is done."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b".")
    sys.stdin.buffer.read()


def living(belongs: Callable[[Any], bool]) -> list[Any]:
    """The processes of this machine that belong, as psutil has them; not those that we may not look
    at.
    """
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(OSError, ValueError, psutil.Error):
            if belongs(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def tell(process: Any, number: int) -> None:
    """Send a signal to a process that may have ended."""
    import psutil

    with suppress(psutil.Error):
        process.send_signal(number)


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """The signals that asked for an end, as they come, instead of ending this process at once; in
    the main thread only.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    numbers = [
        signal.SIGINT,
        signal.SIGTERM,
    ]  # even where ignored (a shell's `&`): or else the stages would ignore them too
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    before = {
        number: signal.signal(number, lambda number, _: noted.append(number)) for number in numbers
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


DVC = ["-m", "gpt1.pipeline.dvc"]  # what follows the interpreter on its command lines
GRACE_SECONDS = 30.0  # a micro-batch of the paper's size on a CPU, and a checkpoint


@contextmanager
def process_group(held_file: int) -> Iterator[int]:
    """The id of a new process group (for Popen and killpg); it holds `held_file`, a descriptor, and
    ends at the end of the block.
    """
    with guarded_by("gpt1.pipeline.process_group", held_file=held_file) as guard:
        yield guard.pid


def members(group: int) -> list[Any]:
    """What lives in a process group, as psutil's processes."""
    return living(lambda process: os.getpgid(process.pid) == group)


def end_group(group: int, insistence: int, asked: set[tuple[int, int]]) -> None:
    """End what DVC has started in the group: by SIGINT at insistence 1, by SIGKILL at 2; at 3 kill
    the whole group.

    Not DVC itself before that: it could be writing dvc.lock, and records what has just finished;
    when its stage fails it ends by itself, but it can also be about to start one. So call this
    until all have ended; `asked` keeps who has been signalled already.
    """
    if insistence > 2:
        os.killpg(group, signal.SIGKILL)
        return
    started_by_dvc, orphans = stages_in(group)
    _tell([*started_by_dvc, *orphans], insistence, asked)


def end_orphans(group: int) -> None:
    """End what a killed DVC has left in the group, in the same way, and wait for it: nothing is to
    start beside it.
    """
    began, asked = time.monotonic(), set[tuple[int, int]]()
    while orphans := stages_in(group)[1]:
        _tell(orphans, 1 if time.monotonic() - began < GRACE_SECONDS else 2, asked)
        time.sleep(0.1)


def stages_in(group: int) -> tuple[list[Any], list[Any]]:
    """What DVC has started in the group, and what has lost the DVC that started it; as psutil's
    processes.
    """
    import psutil

    parents, spared = {}, {group}  # its leader is the guard
    for process in members(group):
        with suppress(psutil.Error):
            parents[process] = process.ppid()
            if process.cmdline()[1:3] == DVC:
                spared.add(process.pid)
    pids = {process.pid for process in parents}
    return (
        [process for process, parent in parents.items() if parent in spared],
        [
            process
            for process, parent in parents.items()
            if parent not in pids and process.pid not in spared
        ],
    )


def _tell(processes: list[Any], insistence: int, asked: set[tuple[int, int]]) -> None:
    for process in processes:
        if (process.pid, insistence) not in asked:
            asked.add((process.pid, insistence))
            for one in [process, *_descendants(process)]:
                tell(one, signal.SIGINT if insistence == 1 else signal.SIGKILL)


def _descendants(process: Any) -> list[Any]:
    import psutil

    with suppress(psutil.Error):
        return list(process.children(recursive=True))
    return []


def guard() -> None:
    """Wait until the pipe at stdin closes, then end the group: by SIGINT, so that a training saves
    a checkpoint; in the end by SIGKILL.
    """
    stand_guard()
    began, asked = time.monotonic(), set[tuple[int, int]]()
    while any(process.pid != os.getpid() for process in members(os.getpgrp())):
        end_group(os.getpgrp(), 1 + int((time.monotonic() - began) // GRACE_SECONDS), asked)
        time.sleep(0.1)


if __name__ == "__main__":
    guard()
