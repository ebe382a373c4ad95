"""Prefect's and MLflow's servers: those of the user's settings, and those that this folder
starts.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from gpt1.base.errors import UserError
from gpt1.base.interrupts import end_with_parent
from gpt1.base.locks import announced, server_address
from gpt1.base.machine import setting
from gpt1.tracking.address import switched_off, tracking_uri, without_password

PREFECT_PORT, MLFLOW_PORT = 4200, 5000  # where they are free
PATIENCE_SECONDS = 120.0  # without a new line in its log
SHORT_LIFE_SECONDS = 20.0
ENVIRONMENT = {  # beside what gpt1.tracking.address says of telemetry
    "PREFECT_HOME": str(Path(".prefect").absolute()),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # seven more processes, for what we do not use
}


def is_up(url: str) -> bool:
    """Return whether a page answers."""
    with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=3):
        return True
    return False


def free_port(wanted: int = 0) -> int:
    """Return the wanted port of this host, or any free port."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # of a server just ended
        try:
            free.bind(("127.0.0.1", wanted))
        except OSError:
            free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def usual_ports(usual: int = 0) -> list[str]:
    """Return ports to try: the usual or a free one, then another."""
    # the second in case the first is taken meanwhile
    return [str(free_port(usual)), str(free_port())]


@contextmanager
def program(name: str, words: Sequence[str], health: str, ports: Sequence[str]) -> Iterator[str]:
    """Run a server until the block ends, on the first of `ports` that works, and give its address.
    It is started again if it ends early; its log is data/logs/serve/NAME.log. Raises UserError.
    """
    log = Path("data/logs/serve", f"{name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)

    def started(port: str) -> "subprocess.Popen[bytes]":
        with log.open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-m", *words, "--host", "127.0.0.1", "--port", port],
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the stages, which the server outlives
                preexec_fn=end_with_parent,
            )

    def comes_up(port: str) -> bool:
        spoken, length = time.monotonic(), 0
        while not (listens(process.pid, port) and is_up(f"http://127.0.0.1:{port}{health}")):
            if length != (length := log.stat().st_size):
                spoken = time.monotonic()
            if process.poll() is not None or time.monotonic() - spoken > PATIENCE_SECONDS:
                return False
            time.sleep(0.2)
        return True

    process: subprocess.Popen[bytes]
    block_ended = Event()

    def keep_up() -> None:
        nonlocal process
        began = 0.0  # the first server has come up
        while not block_ended.wait(1):
            if (status := process.poll()) is None:
                continue
            short_lived = time.monotonic() - began < SHORT_LIFE_SECONDS
            what = f"its log: {log}" if short_lived else "it is started again"
            print(f"{name}'s server has ended (status {status}); {what}", file=sys.stderr)
            if short_lived:
                return
            kill(process)  # what a killed server has left behind holds the port
            process, began = started(port), time.monotonic()

    keeper = Thread(target=keep_up, daemon=True)
    try:
        for port in ports:
            process = started(port)
            if comes_up(port):
                break
            kill(process)
        else:
            raise UserError(
                f"{name} did not start on port {' or '.join(ports)} of 127.0.0.1: is another"
                f" program there? Its log: {log}"
            )
        keeper.start()
        yield f"http://127.0.0.1:{port}"
    finally:
        block_ended.set()
        if keeper.ident:
            keeper.join()
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        kill(process)


def listens(pid: int, port: str) -> bool:
    """Return whether a process or its children listen on a port."""
    import psutil

    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        return any(
            connection.status == psutil.CONN_LISTEN and str(connection.laddr.port) == port
            for process in (parent, *parent.children(recursive=True))
            for connection in process.net_connections("tcp")
        )
    return False


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a server and all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def mlflow_server() -> Iterator[str]:
    """Give the address of MLflow: MLFLOW_TRACKING_URI, or this folder's pages, started if they are
    not up; "" where it is off. Raises UserError.
    """
    store = tracking_uri()
    if switched_off():
        yield ""
    elif not store.startswith("sqlite:"):
        yield store
    elif address := server_address("mlflow"):
        yield address
    else:
        named = setting("GPT1_MLFLOW_PORT")
        ports = [named] if named else usual_ports(MLFLOW_PORT)
        words = ["mlflow", "server", "--workers", "1", "--backend-store-uri", store]
        with announced("mlflow") as announce, program("mlflow", words, "/health", ports) as pages:
            announce(pages)
            yield pages


@contextmanager
def prefect_server(lasting: bool = False) -> Iterator[str]:
    """Give the address of Prefect's API: the configured one, this folder's make serve, or one
    started for the block.

    A `lasting` server uses the configured port, or the usual one; a run takes any, also where the
    configured server does not answer. Raises UserError.
    """
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        get_current_settings,
        temporary_settings,
    )

    try:
        named = (get_current_settings().api.url or "").rstrip("/")
    except ValueError as error:  # its warning names the file
        raise UserError(
            f"Prefect's profiles are no TOML ({error}): mend that line, or move the file away"
        ) from None
    url = named or ("" if lasting else server_address("prefect"))
    if url and not (refusal := why_not_prefect(url)):
        # a server that goes and is not ours to start again: seconds, not minutes, until we say so
        with temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: 1}):
            yield url
        return
    ports = usual_ports(PREFECT_PORT) if lasting else usual_ports()
    if named:
        line = (
            f"no Prefect server answers at {without_password(url)}, which PREFECT_API_URL or your"
            f" Prefect profile names ({refusal})"
        )
        if not lasting:
            print(f"{line}: this run has a server of its own", file=sys.stderr)
        elif here := re.fullmatch(r"http://(?:127\.0\.0\.1|localhost):(\d+)/api", url):
            ports = [here[1]]
        else:
            raise UserError(f"{line}: start it, or unset that")
    words = ["prefect", "server", "start"]
    with program("prefect", words, "/api/health", ports) as address:
        url = f"{address}/api"
        with temporary_settings({PREFECT_API_URL: url}):
            yield url


def why_not_prefect(url: str) -> str:
    """Say why an address is no Prefect server that lets us in, or ""."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_API_URL, temporary_settings

    try:
        with (
            temporary_settings({PREFECT_API_URL: url, PREFECT_API_REQUEST_TIMEOUT: 5}),
            get_client(sync_client=True) as client,
        ):
            version = client.api_version()
    except Exception as error:  # httpx's, Prefect's, JSON's
        return str(error).partition("\n")[0] or type(error).__name__
    return "" if re.match(r"\d+\.\d", str(version)) else "another program's page"
