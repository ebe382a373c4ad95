"""Where MLflow is, and what to say of it without giving away a password."""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dotenv import load_dotenv

from gpt1.base.files import read_json
from gpt1.base.settings import setting
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
    """Whether a person wants no MLflow at all: the environment's word, else .env's."""
    return (setting("GPT1_MLFLOW") or "on").lower() in ("off", "0", "no", "false")


def tracking_uri() -> str:
    """Where MLflow is: the environment's word, else .env's, else a database in the checkout."""
    load_dotenv(".env")
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}mlflow.db"
    path = sqlite_file(uri)
    return uri if path is None else f"{SQLITE}{path.absolute()}"  # MLflow keeps stores by name


def runs_page(base: str) -> str:
    """The address of the scores of the experiment that `gpt1 sync` told results last; before, of
    all experiments.
    """
    kind = "workflowType=machine_learning"  # else MLflow opens its pages for prompts and agents
    if not RUNS.is_file():
        return f"{base}/#/experiments?{kind}"
    return (
        f"{base}/#/experiments/{read_json(RUNS)['experiment']}/runs?{kind}&viewStateShareKey=scores"
    )


def without_password(uri: str) -> str:
    """An address without the name and password that it may hold."""
    return re.sub(r"//[^/]*@", "//***@", uri)


def sqlite_file(uri: str) -> Path | None:
    """The file of a database of SQLite; None for another."""
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def problem(error: Exception) -> str:
    """An MLflow error in one line, without the name and password of its address."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    uri = tracking_uri()
    parts = urlsplit(uri)
    secrets = parts.netloc.rpartition("@")[0], parts.password, unquote(parts.password or "")
    for secret in filter(None, secrets):  # as a word: a short one stands in many others
        reason = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", reason)
    return f"MLflow at {without_password(uri)} does not work ({reason[:200]})"


def warn(text: str) -> None:
    """One line for a person, on the standard error stream."""
    print(f"warning: {text}", file=sys.stderr, flush=True)
