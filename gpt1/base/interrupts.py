"""Ctrl-C held back where it must not come in the middle of something; an end that comes with the
parent's.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)  # before any fork


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Have this process sent a signal when its parent has ended, however that came. Linux only."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, number)


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """A Ctrl-C within the block is answered after it, and is in the list until then. Raises
    KeyboardInterrupt at the end. A process that heeds no Ctrl-C, a job in the background, goes on
    so; in another thread than the main one nothing is held.

    A blocked signal would not do: another thread takes it, and Python answers in the main one.
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
