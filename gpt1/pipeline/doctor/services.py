"""Ports, Prefect's server, MLflow: what answers where the settings say, and whether MLflow's
database can be used.
"""

import os
import socket
import sqlite3
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

from gpt1.base.settings import setting
from gpt1.pipeline.doctor.finding import Finding, to_do, well
from gpt1.tracking.address import (
    SQLITE,
    refuse_broken_sqlite,
    switched_off,
    tracking_uri,
    without_password,
)
from gpt1.train.launch import free_port

PREFECT = "http://127.0.0.1:4200/api"
MLFLOW_PORT = "5000"
ANSWER_SECONDS = 1.0


def ports() -> list[Finding]:
    """Whether Prefect and MLflow answer, or their ports are free for `make serve`."""
    prefect = (setting("PREFECT_API_URL") or PREFECT).rstrip("/")
    mlflow = setting("GPT1_MLFLOW_PORT") or MLFLOW_PORT
    try:
        findings = service("Prefect", prefect, "true", "PREFECT_API_URL=http://127.0.0.1:{}/api")
    except ValueError:
        findings = to_do(
            "ports",
            f"PREFECT_API_URL={prefect} is no address",
            f"set it to {PREFECT} in .env, or take it out",
        )
    if not mlflow.isdigit() or not 0 < int(mlflow) < 65536:
        found, cure = f"GPT1_MLFLOW_PORT={mlflow} is no port", "set it to one from 1 to 65535"
        return [*findings, *to_do("ports", found, f"{cure} in .env")]
    if not switched_off():
        address = f"http://127.0.0.1:{mlflow}"
        findings += service("MLflow's pages", address, "OK", "GPT1_MLFLOW_PORT={}")
    return findings


def service(name: str, address: str, expected: str, elsewhere: str) -> list[Finding]:
    """Whether a service answers at its address, or something else does, or nothing. Raises
    ValueError for what is no address.
    """
    parts, health = urlsplit(address), f"{address}/health"
    host, port = parts.hostname or "", parts.port or 80
    with (
        suppress(OSError, ValueError),
        urllib.request.urlopen(health, timeout=ANSWER_SECONDS) as answer,
    ):
        if expected in answer.read(200).decode("utf-8", "replace"):
            return well("ports", f"{name}: answers at {host}:{port}")
    if host not in ("127.0.0.1", "localhost"):
        return to_do(
            "ports",
            f"{name}: no answer from {host}:{port} within {ANSWER_SECONDS:.0f} s",
            "start it there, or take its address out of .env, so that make serve starts one here"
            f" ({without_password(health)})",
        )
    if not listens(port):
        return well("ports", f"{name}: port {port} is free (make serve starts it)")
    found = f"{name}: port {port} is taken by something else"
    return to_do("ports", found, f"put a free one into .env: {elsewhere.format(free_port())}")


def listens(port: int) -> bool:
    """Whether something on this machine listens at a port."""
    with socket.socket() as probe:
        probe.settimeout(ANSWER_SECONDS)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def mlflow_database() -> list[Finding]:
    """Whether results can be sent to MLflow."""
    uri = tracking_uri()
    if switched_off():
        found = "switched off by GPT1_MLFLOW; results stay under data/, gpt1 sync sends them later"
        return well("MLflow", found, noted=True)
    if not uri.startswith(SQLITE):
        return well("MLflow", f"runs are sent to {without_password(uri)}")
    path = Path(uri.removeprefix(SQLITE).partition("?")[0])
    name = path.name
    try:
        refuse_broken_sqlite(uri)
    except OSError:
        cure = f"mv {name} {name}.broken && gpt1 sync, which makes it anew from data/"
        return to_do("MLflow", f"{path} is no database, or a damaged one", cure)
    if not path.exists():
        return well("MLflow", f"{name} is not there yet; the first run, or gpt1 sync, makes it")
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        cure = f"make it yours (chown, chmod u+w {name})"
        return to_do("MLflow", f"{path} cannot be written", cure)
    return usable(path)


def usable(path: Path) -> list[Finding]:
    """Whether a database can be read and written now."""
    try:
        with closing(
            sqlite3.connect(path, timeout=ANSWER_SECONDS, isolation_level=None)
        ) as database:
            database.execute("BEGIN IMMEDIATE")
            runs = 0
            with suppress(sqlite3.OperationalError):  # not MLflow's yet
                runs = int(database.execute("SELECT COUNT(*) FROM runs").fetchone()[0])
            database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return to_do(
            "MLflow",
            f"{path} is locked by another process ({error})",
            f"end what holds it (fuser {path.name} names it); results stay under data/, gpt1 sync"
            " sends them later",
        )
    return well("MLflow", f"{path.name} holds {runs:,} {'run' if runs == 1 else 'runs'}")
