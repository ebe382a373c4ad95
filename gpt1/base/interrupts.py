"""Ctrl-C held back where it must not come in the middle of something."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """A Ctrl-C within the block is answered after it. Raises KeyboardInterrupt there.

    A blocked signal would not do: another thread takes it, and Python answers in the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if asked and callable(before):
            before(signal.SIGINT, None)
