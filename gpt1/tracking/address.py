"""Where MLflow is, and its errors without a password."""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dotenv import load_dotenv

from gpt1.base.files import read_json
from gpt1.base.machine import setting
from gpt1.tracking.log import RUNS

SQLITE = "sqlite:///"
PATIENCE = {  # short with a server; no telemetry, no chatter
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
}


os.environ.update(PATIENCE | os.environ)  # before MLflow is imported


def switched_off() -> bool:
    """Return whether the environment, or else .env, says GPT1_MLFLOW=off."""
    return (setting("GPT1_MLFLOW") or "on").lower() in ("off", "0", "no", "false")


def tracking_uri() -> str:
    """Return MLflow's address by the environment, else .env, else a database."""
    load_dotenv(".env")
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}mlflow.db"
    path = sqlite_file(uri)
    return uri if path is None else f"{SQLITE}{path.absolute()}"  # MLflow keeps stores by name


def runs_page(base: str) -> str:
    """Return the address of MLflow's scores of the last `gpt1 sync`, else of all experiments,
    without a password.
    """
    base = without_password(base)
    kind = "workflowType=machine_learning"  # else MLflow opens its pages for prompts and agents
    if not RUNS.is_file():
        return f"{base}/#/experiments?{kind}"
    return (
        f"{base}/#/experiments/{read_json(RUNS)['experiment']}/runs?{kind}&viewStateShareKey=scores"
    )


def without_password(uri: str) -> str:
    """Remove name and password from an address."""
    return re.sub(r"//[^/]*@", "//***@", uri)


def sqlite_file(uri: str) -> Path | None:
    """Return the file of an SQLite database, if it is one."""
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def problem(error: Exception) -> str:
    """Describe an MLflow error in one line, without name and password."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    uri = tracking_uri()
    parts = urlsplit(uri)
    secrets = parts.netloc.rpartition("@")[0], parts.password, unquote(parts.password or "")
    for secret in filter(None, secrets):  # as a word: a short one stands in many others
        reason = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", reason)
    return f"MLflow at {without_password(uri)} does not work ({reason[:200]})"


def warn(text: str) -> None:
    """Print one line on stderr."""
    print(f"warning: {text}", file=sys.stderr)
