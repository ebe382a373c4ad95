"""One run at a time in a checkout, and how it takes note of being asked to end."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.locks import locked
from gpt1.pipeline.news import News, Watch

DVC = Path(".dvc")


@contextmanager
def alone_here(who: str, watch: Watch) -> Iterator[int]:
    """The descriptor of a locked file, so that one run at a time is at work in a checkout and its
    worktrees.

    Waits for another to end, and says for whom; `who` is what a third will be told.
    """
    if not DVC.is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: run this in the root of the checkout")

    def tell(other: str) -> None:
        watch(News(f"{other or 'another run'} is at work here; waiting for it to end"))

    with locked(DVC / "tmp" / "gpt1-run.lock", on_wait=tell) as file:
        file.truncate(0)
        file.write(f"{who} (process {os.getpid()})\n")
        file.flush()
        yield file.fileno()


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
