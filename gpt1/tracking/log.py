"""The log of a training, `data/logs/<stage>/<name>.run.json`, and how results are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, read_json

RUNS = LOGS / "mlflow.json"  # which of MLflow's runs the last sync brought up to date
Point = dict[str, Any]  # {"time": seconds since 1970, "update": n, <name>: number, ...}


def log_path(stage: str, name: str) -> Path:
    """Return where a run's facts lie."""
    return LOGS / stage / f"{name}.run.json"


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts in a JSON file, none where they cannot be read."""
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError):
        return {}


@contextmanager
def reading(what: Path | str, cure: str) -> Iterator[None]:
    """Turn the error of a damaged result into a UserError that ends with the cure."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{what} cannot be read ({type(error).__name__}: {error}); {cure}"
        ) from None
