"""A guard: a process that outlives whoever started it, even one ended by SIGKILL, to end what that
one leaves behind. It waits for its pipe to close.
"""

import os
import signal
import subprocess
import sys
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
