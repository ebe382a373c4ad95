"""Files that one process at a time has locked. The system unlocks a file when the last process that
holds its descriptor has ended, however that came; a child may inherit it.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.1


@contextmanager
def locked(
    path: Path, seconds: float | None = None, on_wait: Callable[[str], None] | None = None
) -> Iterator[IO[str]]:
    """The file, open to read and append, locked for this process alone within the block.

    Waits for whoever holds it, at most so many seconds; `on_wait` is told first what is written in
    it. Raises TimeoutError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        began = time.monotonic()
        if not _lock(file):
            if on_wait:
                file.seek(0)
                on_wait(file.read().strip())
            while not _lock(file):
                if seconds is not None and time.monotonic() - began >= seconds:
                    raise TimeoutError(f"{path} is locked by another process")
                time.sleep(POLL_SECONDS)
        yield file


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
