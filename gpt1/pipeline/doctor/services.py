"""Ports, Prefect's server, MLflow: what answers where the settings say, and whether MLflow's
database can be used.
"""

import os
import socket
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

from gpt1.pipeline.doctor.finding import Finding
from gpt1.pipeline.settings import setting
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
    prefect, mlflow = (
        setting("PREFECT_API_URL") or PREFECT,
        setting("GPT1_MLFLOW_PORT") or MLFLOW_PORT,
    )
    findings = []
    try:
        address = urlsplit(prefect)
        findings.append(
            service(
                "Prefect",
                address.hostname or "",
                address.port or 80,
                f"{prefect.rstrip('/')}/health",
                "true",
                lambda port: f"PREFECT_API_URL=http://127.0.0.1:{port}/api",
            )
        )
    except ValueError:
        findings.append(
            Finding(
                "ports",
                "do",
                f"PREFECT_API_URL={prefect} is no address",
                f"set it to {PREFECT} in .env, or take it out",
            )
        )
    if not mlflow.isdigit() or not 0 < int(mlflow) < 65536:
        findings.append(
            Finding(
                "ports",
                "do",
                f"GPT1_MLFLOW_PORT={mlflow} is no port",
                "set it to one from 1 to 65535 in .env",
            )
        )
    elif not switched_off():
        findings.append(
            service(
                "MLflow's pages",
                "127.0.0.1",
                int(mlflow),
                f"http://127.0.0.1:{mlflow}/health",
                "OK",
                lambda port: f"GPT1_MLFLOW_PORT={port}",
            )
        )
    return findings


def service(
    name: str, host: str, port: int, health: str, expected: str, elsewhere: Callable[[int], str]
) -> Finding:
    """Whether a service answers at its address, or something else does, or nothing."""
    try:
        with urllib.request.urlopen(health, timeout=ANSWER_SECONDS) as answer:
            if expected in answer.read(200).decode("utf-8", "replace"):
                return Finding("ports", "ok", f"{name}: answers at {host}:{port}")
    except (OSError, ValueError, urllib.error.URLError):
        pass
    if host not in ("127.0.0.1", "localhost"):
        return Finding(
            "ports",
            "do",
            f"{name}: no answer from {host}:{port} within {ANSWER_SECONDS:.0f} s",
            "start it there, or take its address out of .env, so that make serve starts one here"
            f" ({without_password(health)})",
        )
    if not listens(port):
        return Finding("ports", "ok", f"{name}: port {port} is free (make serve starts it)")
    return Finding(
        "ports",
        "do",
        f"{name}: port {port} is taken by something else",
        f"put a free one into .env: {elsewhere(free_port())}",
    )


def listens(port: int) -> bool:
    """Whether something on this machine listens at a port."""
    with socket.socket() as probe:
        probe.settimeout(ANSWER_SECONDS)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def mlflow_database() -> list[Finding]:
    """Whether results can be sent to MLflow."""
    if switched_off():
        return [
            Finding(
                "MLflow",
                "note",
                "switched off by GPT1_MLFLOW; results stay under data/, gpt1 sync sends them later",
            )
        ]
    uri = tracking_uri()
    if not uri.startswith(SQLITE):
        return [Finding("MLflow", "ok", f"runs are sent to {without_password(uri)}")]
    path = Path(uri.removeprefix(SQLITE).partition("?")[0])
    try:
        refuse_broken_sqlite(uri)
    except OSError:
        return [
            Finding(
                "MLflow",
                "do",
                f"{path} is no database, or a damaged one",
                f"mv {path.name} {path.name}.broken && gpt1 sync, which makes it anew from data/",
            )
        ]
    if not path.exists():
        return [
            Finding(
                "MLflow",
                "ok",
                f"{path.name} is not there yet; the first run, or gpt1 sync, makes it",
            )
        ]
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return [
            Finding(
                "MLflow",
                "do",
                f"{path} cannot be written",
                f"make it yours (chown, chmod u+w {path.name})",
            )
        ]
    return [usable(path)]


def usable(path: Path) -> Finding:
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
        return Finding(
            "MLflow",
            "do",
            f"{path} is locked by another process ({error})",
            f"end what holds it (fuser {path.name} names it); results stay under data/, gpt1 sync"
            " sends them later",
        )
    return Finding("MLflow", "ok", f"{path.name} holds {runs:,} {'run' if runs == 1 else 'runs'}")
