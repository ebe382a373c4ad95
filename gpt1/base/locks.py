"""Locks on files, and the addresses of this folder's servers."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[IO[str]]:
    """Give the file, locked for this process. Without `wait`, raises BlockingIOError where another
    process has it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield file


def server_file(name: str) -> Path:
    """Return the file of a server: prefect or mlflow."""
    return Path(f".dvc/tmp/gpt1-{name}.lock")


def server_address(name: str) -> str:
    """Return the running server's address, or ""."""
    if not (path := server_file(name)).is_file():
        return ""
    try:
        with locked(path, wait=False):
            return ""
    except BlockingIOError:
        return path.read_text(encoding="utf-8").strip()


@contextmanager
def announced(name: str) -> Iterator[Callable[[str], None]]:
    """Give a function that publishes a server's address until the block ends. Raises
    BlockingIOError where one of that name runs.
    """
    with locked(server_file(name), wait=False) as file:

        def announce(address: str) -> None:
            file.truncate(0)
            file.write(address)
            file.flush()

        announce("")
        yield announce
