"""Locks on files. The system unlocks a file when the last process that holds its descriptor ends,
in any way; a child may inherit it.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[IO[str]]:
    """Give the file, open to read and append, locked for this process within the block. Waits for
    the process that holds it, or raises BlockingIOError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield file
