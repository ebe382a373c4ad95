"""Where a flow run works, and with whom it ends."""

import os
import signal
import threading
import time
from pathlib import Path

from gpt1.tracking.address import tracking_uri

ROOT = Path(__file__).resolve().parents[1]


def in_folder(place: Path) -> None:
    """Work in a checkout or worktree from here on, with its code, and with the MLflow of the
    checkout.
    """
    os.environ["MLFLOW_TRACKING_URI"] = (
        tracking_uri()
    )  # of the checkout, where this process still stands
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(place), os.environ.get("PYTHONPATH")))
    )
    os.chdir(place)


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
