"""Who may run here: one run at a time in a checkout; and the checkout and this machine's GPUs, lent
to stages that a flow of another checkout has sent here.
"""

import fcntl
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.base.locks import locked
from gpt1.pipeline.progress import News, Watch

DVC = Path(".dvc")
TEMPORARY = DVC / "tmp"
RUN_LOCK = TEMPORARY / "gpt1-run.lock"  # held for a whole run
POLL_SECONDS = 0.5


@contextmanager
def alone_here(who: str, watch: Watch) -> Iterator[int]:
    """The descriptor of a locked file, so that one run at a time is at work in a checkout and its
    worktrees.

    Waits for another to end, and says for whom; `who` is what a third will be told.
    """
    if not DVC.is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: {ELSEWHERE}")

    def tell(other: str) -> None:
        watch(News(f"{other or 'another run'} is at work here; waiting for it to end"))

    with locked(RUN_LOCK, on_wait=tell) as file:
        file.truncate(0)
        file.write(f"{who} (process {os.getpid()})\n")
        file.flush()
        yield file.fileno()


def this_checkout() -> str:
    """Machine, folder and, in brackets, the digits that tell this checkout from every other, from
    whichever machine it is seen.
    """
    path = TEMPORARY / "gpt1-checkout"
    with locked(path) as file:
        file.seek(0)
        digits, _, inode = file.read().partition(" ")
        if inode != str(os.fstat(file.fileno()).st_ino):  # new, or copied with the checkout
            digits = uuid.uuid4().hex[:8]
            file.truncate(0)
            file.write(f"{digits} {os.fstat(file.fileno()).st_ino}")
    return f"{platform.node()}:{Path.cwd()} ({digits})"


def is_this(checkout: str) -> bool:
    """Whether what this_checkout told, here or on another machine with the same disk, is this
    checkout.
    """
    return checkout.rpartition("(")[2] == this_checkout().rpartition("(")[2]


@contextmanager
def lent_to(sender: str, tell: Callable[[str], None], wanted: Callable[[], bool]) -> Iterator[int]:
    """The descriptor of this checkout's locked file, shared among the stages of one sender; waits
    for others, and says so.

    What this checkout has sent to itself takes no lock: its own flow holds it. Raises
    KeyboardInterrupt once it is not wanted any more.
    """
    words, told = f"a stage sent by {sender}", False
    RUN_LOCK.parent.mkdir(parents=True, exist_ok=True)
    with RUN_LOCK.open("a+", encoding="utf-8") as file:
        while not is_this(sender) and not _joined(file, words):
            if not told:
                file.seek(0)
                tell(
                    f"{file.read().strip() or 'another run'} is at work in {Path.cwd()}; waiting"
                    " for it to end"
                )
            told = True
            if not wanted():
                raise KeyboardInterrupt("interrupted while it waited; nothing was begun")
            time.sleep(POLL_SECONDS)
        yield file.fileno()


def _joined(file: IO[str], words: str) -> bool:
    """Whether the lock is now held, alone or together with stages of the same sender."""
    for how in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        with suppress(BlockingIOError):
            fcntl.flock(file, how | fcntl.LOCK_NB)
            if how == fcntl.LOCK_EX:
                file.truncate(0)
                file.write(f"{words}\n")
                file.flush()
                fcntl.flock(
                    file, fcntl.LOCK_SH
                )  # another can come in between, hence the look at what it says then
            file.seek(0)
            if file.read() == f"{words}\n":
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
    return False


@contextmanager
def lent_devices(
    devices: Sequence[str], count: int, wanted: Callable[[], bool]
) -> Iterator[tuple[str, ...]]:
    """`count` of this machine's GPUs, of which no other sent stage has any; waits until as many are
    free. Raises KeyboardInterrupt.
    """
    job = os.environ.get("SLURM_JOB_ID", "")  # whose GPUs are its own, and counted from 0 in each
    folder = Path(tempfile.gettempdir()) / f"gpt1-devices-{os.getuid()}{job and '-'}{job}"
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        with ExitStack() as held:
            got: list[str] = []
            for device in devices:
                with suppress(TimeoutError):
                    if len(got) < count:
                        held.enter_context(locked(folder / f"{device.replace('/', '-')}.lock", 0))
                        got.append(device)
            if len(got) == count:
                yield tuple(got)
                return
        if not wanted():
            raise KeyboardInterrupt("interrupted while it waited for a GPU; nothing was begun")
        time.sleep(POLL_SECONDS)
