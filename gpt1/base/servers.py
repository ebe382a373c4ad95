"""Servers that this folder started: each locks a file with its address, so that another folder's
server is never taken for ours, whatever answers on a port.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.locks import locked


def server_file(name: str) -> Path:
    """Return the file of a server: prefect or mlflow."""
    return Path(f".dvc/tmp/gpt1-{name}.lock")


def server_address(name: str) -> str:
    """Return the address of this folder's running server; "" for none."""
    if not (path := server_file(name)).is_file():
        return ""
    try:
        with locked(path, wait=False):
            return ""
    except BlockingIOError:
        return path.read_text(encoding="utf-8").strip()


@contextmanager
def announced(name: str) -> Iterator[Callable[[str], None]]:
    """Give a function that publishes an address until the block ends. Raises BlockingIOError where
    this folder has a server of this name at work.
    """
    with locked(server_file(name), wait=False) as file:

        def announce(address: str) -> None:
            file.truncate(0)
            file.write(address)
            file.flush()

        announce("")
        yield announce
