"""Ctrl-C delayed, and processes that end with their parent."""

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)  # before any fork


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Have the kernel send a signal when this process's parent ends. Linux only."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, number)


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """Delay a Ctrl-C until the block ends; until then the list holds it. Raises
    KeyboardInterrupt.
    """
    signals: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before is signal.SIG_IGN:
        yield signals
        return
    signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, before)
        if signals and callable(before):
            before(signal.SIGINT, None)
