"""A process group that does not outlive whoever made it, even one ended by SIGKILL: a guard in it waits for its pipe to close.

`python -m gpt1.process_group` is the guard. It leads the group, so the group's id stays valid, and holds the files it was given (a lock)
for as long as anything of the group lives.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

GRACE_SECONDS = 30.0  # an update of the paper's size on a CPU, and a checkpoint


@contextmanager
def process_group(held_file: int) -> Iterator[int]:
    """The id of a new process group (for Popen and killpg); it holds `held_file`, a descriptor, and ends at the end of the block."""
    guard = subprocess.Popen([sys.executable, "-m", "gpt1.process_group"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             pass_fds=(held_file,), process_group=0)
    assert guard.stdin is not None
    assert guard.stdout is not None
    try:
        guard.stdout.read(1)  # from here on it takes no notice of signals to the group
        yield guard.pid
    finally:
        guard.stdin.close()
        guard.wait()
        guard.stdout.close()


def others_alive() -> bool:
    """Whether anything but this process lives in its group."""
    import psutil

    for process in psutil.process_iter(["status"]):
        try:
            if process.pid != os.getpid() and os.getpgid(process.pid) == os.getpgrp() and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
        except (ProcessLookupError, PermissionError):
            continue
    return False


def guard() -> None:
    """Wait until the pipe at stdin closes, then end the group: by SIGINT, so that a training saves a checkpoint; in the end by SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b".")
    sys.stdin.buffer.read()
    deadline = time.monotonic() + GRACE_SECONDS
    if others_alive():
        os.killpg(0, signal.SIGINT)
    while others_alive():
        if time.monotonic() > deadline:
            os.killpg(0, signal.SIGKILL)  # this process too
        time.sleep(0.1)


if __name__ == "__main__":
    guard()
