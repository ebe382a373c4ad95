"""Servers that were started in this folder: each holds the lock of a file with its address in it,
so that none of another folder, whatever answers on a port, is taken for one of ours.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.locks import locked


def server_file(name: str) -> Path:
    """The file of a server: prefect or mlflow."""
    return Path(f".dvc/tmp/gpt1-{name}.lock")


def server_address(name: str) -> str:
    """The address of the server that was started in this folder and is up; "" for none."""
    if not (path := server_file(name)).is_file():
        return ""
    try:
        with locked(path, wait=False):
            return ""
    except BlockingIOError:
        return path.read_text(encoding="utf-8").strip()


@contextmanager
def announced(name: str) -> Iterator[Callable[[str], None]]:
    """A function that makes an address known until the block ends. Raises BlockingIOError where a
    server of this name is at work in this folder.
    """
    with locked(server_file(name), wait=False) as file:

        def announce(address: str) -> None:
            file.truncate(0)
            file.write(address)
            file.flush()

        announce("")
        yield announce
