"""The process of a flow run: Prefect's engine, in this clone, with a file for what it says; where
the run works, and with whom it ends.

A worker gives it a pipe, and a run that outlives its worker would fail at the next line that it
writes.
"""

import os
import runpy
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from gpt1.base.files import LOGS
from gpt1.pipeline.worktrees import open_worktree
from gpt1.tracking.address import tracking_uri

ROOT = Path(__file__).resolve().parents[1]
LOG = LOGS / "serve" / "runs.log"


def enter(
    profile: str | None,
    overrides: Sequence[str],
    seeds: Sequence[int] | None,
    tasks: Sequence[str] | None,
) -> Path:
    """Work in the checkout from here on, or where anything differs from it in a worktree, with its
    code, and with the MLflow of the checkout. Raises UserError as open_worktree does.
    """
    changed = profile or overrides or seeds is not None or tasks is not None
    place = open_worktree(profile, overrides, seeds, tasks) if changed else Path.cwd()
    path = filter(None, (str(place), os.environ.get("PYTHONPATH")))
    # the MLflow of the checkout, where this process still stands
    os.environ |= {"MLFLOW_TRACKING_URI": tracking_uri(), "PYTHONPATH": os.pathsep.join(path)}
    os.chdir(place)
    return place


def end_with_worker() -> None:
    """End this run, as a cancellation does, when the worker that started it is no more: nobody else
    would.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    if os.environ.get("PREFECT__FLOW_RUN_ID"):
        threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Become the engine; which flow run is meant, the environment says."""
    os.chdir(ROOT)  # where prefect.toml and .env are
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
