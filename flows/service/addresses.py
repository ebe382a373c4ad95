"""Where Prefect and MLflow answer, by the environment, `.env` and Prefect's own profile; and what
there is to say where something is in the way.
"""

import os
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from dotenv import dotenv_values

from gpt1.base.errors import UserError
from gpt1.base.settings import setting
from gpt1.tracking.address import switched_off, tracking_uri, without_password

LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1"}
MLFLOW_PORT = 5000
ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class Addresses:
    """Prefect's API; MLflow's pages for people ('': none); port and store of the MLflow that is to
    be started (None: none is).
    """

    prefect: str
    mlflow: str
    mlflow_port: int | None
    mlflow_store: str

    @property
    def pages(self) -> str:
        """Prefect's pages for people."""
        return self.prefect.removesuffix("/api")


def read_addresses() -> Addresses:
    """What the settings say. Raises UserError for a port that is none."""
    from prefect.settings import get_current_settings

    from gpt1.pipeline.prefect_names import ADDRESS

    store = tracking_uri()
    prefect = (get_current_settings().api.url or "").rstrip("/")
    if not prefect:
        raise UserError(
            f"PREFECT_API_URL: expected an address such as {ADDRESS}, found nothing; set it in .env"
        )
    if switched_off():
        return Addresses(prefect, "", None, store)
    if store.startswith(("http://", "https://")):
        return Addresses(prefect, without_password(store), None, store)
    port = setting("GPT1_MLFLOW_PORT") or str(MLFLOW_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(
            f"GPT1_MLFLOW_PORT: expected a port from 1 to 65535, found {port!r}; set it in the"
            " environment or in .env"
        )
    return Addresses(prefect, f"http://127.0.0.1:{port}", int(port), store)


def named_by() -> str:
    """What names Prefect's address, in the order in which Prefect heeds it."""
    from prefect.context import get_settings_context

    if "PREFECT_API_URL" in os.environ:
        return "PREFECT_API_URL in the environment"
    if "PREFECT_API_URL" in dotenv_values(".env"):
        return "PREFECT_API_URL in .env"
    return f"your Prefect profile {get_settings_context().profile.name!r}"


def own_address(url: str) -> tuple[str, int]:
    """Host and port at which a server of ours would answer at `url`. Raises UserError for an
    address that is not this machine's own.
    """
    from gpt1.pipeline.prefect_names import ADDRESS

    parts = urlsplit(url)
    host = LOOPBACK.get(parts.hostname or "")
    if host is None or parts.scheme != "http" or parts.path != "/api":
        raise UserError(
            f"no Prefect server answers at {url}, and one is started at this machine's own address"
            f" only: set PREFECT_API_URL in .env to one that answers, or to {ADDRESS}"
        )
    return host, parts.port or 80


def refuse_taken(port: int, setting: str) -> None:
    """Raises UserError where something else listens at the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UserError(
                f"port {port} is taken by something else ({error.strerror}); name a free one in"
                f" .env: {setting}"
            ) from None


def prefect_version() -> str | None:
    """The version of the Prefect server that answers at PREFECT_API_URL; None where none does."""
    import prefect
    from prefect.client.base import ServerType
    from prefect.client.orchestration import get_client

    try:
        with get_client(httpx_settings={"timeout": ANSWER_SECONDS}, sync_client=True) as client:
            if client.api_healthcheck() is not None:
                return None
            cloud = client.server_type is ServerType.CLOUD  # it is compatible with any
            return prefect.__version__ if cloud else client.api_version()
    except Exception:  # whatever answers there is no Prefect
        return None


def answers(url: str) -> bool:
    """Whether a page is there."""
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False
