"""The log of a training, `data/logs/<stage>/<name>.run.json`."""

from pathlib import Path
from typing import Any

from gpt1.base.files import LOGS, read_json

RUNS = LOGS / "mlflow.json"  # which of MLflow's runs the last sync brought up to date
Point = dict[str, Any]  # {"time": seconds since 1970, "update": n, <name>: number, ...}


def log_path(stage: str, name: str) -> Path:
    """Return where a run's facts lie."""
    return LOGS / stage / f"{name}.run.json"


def read_log(path: Path) -> dict[str, Any]:
    """Return the facts of a run, none where they cannot be read."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError):
        return {}
