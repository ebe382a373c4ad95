"""Prefect's server: the one that the user's settings name, else that of `make serve`, else one for
this run alone, on the loopback address.
"""

import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.interrupts import end_with_parent

ADDRESS = "http://127.0.0.1:4200/api"  # of make serve
PATIENCE_SECONDS = 120.0
ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_HOME": str(Path(".prefect").absolute()),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def answers(url: str) -> bool:
    """Whether a page is there."""
    with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=3):
        return True
    return False


def free_port() -> int:
    """A port of this host that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def program(name: str, words: Sequence[str], health: str) -> Iterator[None]:
    """A server as a process of its own until the block ends; its log is data/logs/serve/NAME.log.
    Raises UserError where it does not come up.
    """
    log = Path("data/logs/serve", f"{name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the terminal's Ctrl-C is for the stages, which it outlives
            preexec_fn=end_with_parent,
        )
    try:
        began = time.monotonic()
        while not answers(health):
            if process.poll() is not None or time.monotonic() - began > PATIENCE_SECONDS:
                raise UserError(f"{name} did not start; its log: {log}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()


@contextmanager
def prefect_server(lasting: bool = False) -> Iterator[str]:
    """The address of an API that flows in the block run by: the configured one, that of make serve,
    or one that is started here for the block, if it is `lasting` where the others would be looked
    for. Raises UserError.
    """
    home = os.environ.get("PREFECT_HOME", "~/.prefect")
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH", f"{home}/profiles.toml")).expanduser()
    try:  # before Prefect, which warns of it and then fails
        tomllib.loads(profiles.read_text("utf-8") if profiles.is_file() else "")
    except ValueError as error:
        raise UserError(
            f"{profiles}: Prefect's profiles are no TOML ({error}): mend that line, or move the"
            " file away"
        ) from None
    from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

    named = (get_current_settings().api.url or "").rstrip("/")
    url = named or ADDRESS
    with ExitStack() as server:
        if not answers(f"{url}/health"):
            own = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/api", url) if lasting else None
            if named and not own:
                raise UserError(
                    f"no Prefect server answers at {url}, which PREFECT_API_URL or your Prefect"
                    " profile names: start it, or unset that"
                )
            port = own[1] if own else str(free_port())
            url = f"http://127.0.0.1:{port}/api"
            words = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
            server.enter_context(program("prefect", words, f"{url}/health"))
        with temporary_settings({PREFECT_API_URL: url}):
            yield url
