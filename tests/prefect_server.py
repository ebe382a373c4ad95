"""A real Prefect server on a port of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient

from gpt1.train.launch import free_port

SECONDS = 120


def until(done: Callable[[], object]) -> None:
    limit = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < limit, f"not within {SECONDS} s"
        time.sleep(0.2)


def without_prefect() -> dict[str, str]:
    """The environment without settings of Prefect."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PREFECT")}


@contextmanager
def prefect_server(folder: Path) -> Iterator[SyncPrefectClient]:
    """A server whose files lie in a folder; it knows after seconds that a worker is gone."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)],
        cwd=folder,
        env=without_prefect()
        | {"PREFECT_HOME": str(folder), "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with SyncPrefectClient(f"http://127.0.0.1:{port}/api") as made:
            until(lambda: made.api_healthcheck() is None)
            yield made
    finally:
        server.terminate()
        server.wait()
