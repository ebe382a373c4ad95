"""Where MLflow is, and what to say of it without giving away a password."""

import os
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpt1.base.extras import how_to_get

SQLITE = "sqlite:///"
DEFAULT_URI = f"{SQLITE}mlflow.db"


def switched_off() -> bool:
    """Whether a person wants no MLflow at all: the environment's word, else .env's."""
    from dotenv import dotenv_values

    said = os.environ.get("GPT1_MLFLOW") or dotenv_values(".env").get("GPT1_MLFLOW") or "on"
    return said.lower() in ("off", "0", "no", "false")


def tracking_uri() -> str:
    """Where MLflow is: the environment's word, else .env's, else a database in the checkout."""
    from dotenv import dotenv_values

    for key, value in dotenv_values(".env").items():
        if key.startswith("MLFLOW_") and value:
            os.environ.setdefault(key, value)
    uri = os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    path = uri.removeprefix(SQLITE)
    return (
        uri if path == uri or path.startswith("/") else f"{SQLITE}{Path(path).absolute()}"
    )  # MLflow keeps stores by their name


def prepare_mlflow() -> None:
    """Before MLflow is imported: no telemetry, no chatter, short patience with a server."""
    os.environ.update({"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"})
    for key, value in {
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
    }.items():
        os.environ.setdefault(key, value)


def without_password(uri: str) -> str:
    """An address without the name and password that it may hold."""
    parts = urlsplit(uri)
    return (
        uri.replace(f"{parts.netloc.rpartition('@')[0]}@", "***@") if "@" in parts.netloc else uri
    )


def sqlite_file(uri: str) -> Path | None:
    """The file of a database of SQLite; None for another."""
    return Path(uri.removeprefix(SQLITE).partition("?")[0]) if uri.startswith(SQLITE) else None


def refuse_broken_sqlite(uri: str) -> None:
    """MLflow itself tries a broken file for a minute and more. Raises OSError."""
    path = sqlite_file(uri)
    if path is None or not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            tables = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if tables and not database.execute("SELECT COUNT(*) FROM experiments").fetchone()[0]:
                raise OSError(
                    f"{path}: only half made, by a process that was ended; move it away and a new"
                    " one is made"
                )
    except sqlite3.OperationalError:
        return  # busy, say; MLflow waits for that
    except sqlite3.DatabaseError as error:
        raise OSError(f"{path}: {error}; move it away and a new one is made") from None


def problem(error: Exception) -> str:
    """What is wrong with MLflow, in one line without secrets."""
    reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, ModuleNotFoundError):
        reason = how_to_get(error) or reason
    uri = tracking_uri()
    parts = urlsplit(uri)
    reason = reason.replace(uri, without_password(uri))
    if "@" in parts.netloc:
        reason = reason.replace(f"{parts.netloc.rpartition('@')[0]}@", "***@")
    for secret in (
        parts.password,
        unquote(parts.password or ""),
        *(os.environ.get(f"MLFLOW_TRACKING_{key}") for key in ("PASSWORD", "TOKEN")),
    ):
        if secret:  # as a word: a short one stands in many others
            reason = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", reason)
    return f"MLflow at {without_password(uri)} does not work ({reason[:200]})"


def warn(text: str) -> None:
    """One line for a person, on the standard error stream."""
    print(f"warning: {' '.join(text.split())}", file=sys.stderr, flush=True)
