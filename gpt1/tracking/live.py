"""What a stage sees of tracking while it runs: points go to its log at once, and to MLflow by a
process of its own.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gpt1.params.schema import Params
from gpt1.tracking.address import switched_off, tracking_uri, warn, without_password
from gpt1.tracking.log import RunLog, log_path
from gpt1.tracking.names import pretraining_name

LIVE_AFTER_SECONDS = 30.0  # a shorter stage leaves MLflow to `sync`
CLOSE_SECONDS = 10.0


@contextmanager
def tracked(
    stage: str, name: str, params: Params, fingerprint: str
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Begin, or go on with, the log of a run; gives the function that reports points, and notes how
    the block ended. `fingerprint` stands for the run's parameters and inputs; only rank 0 writes.
    """
    if stage == "pretrain":
        name = pretraining_name(params, name)
    tracker = Tracker(stage, name, params, fingerprint, os.environ.get("RANK", "0") != "0")
    try:
        yield tracker.log
    except BaseException as error:
        tracker.close("failed" if isinstance(error, Exception) else "interrupted")
        raise
    tracker.close("finished")


class Tracker:
    """Writes the log, and after half a minute has another process send it. Neither method ever
    raises.
    """

    def __init__(
        self, stage: str, name: str, params: Params, fingerprint: str, silent: bool
    ) -> None:
        self.began = time.monotonic()
        self.request: dict[str, Any] = {"stage": stage, "name": name}
        self.request |= {"fingerprint": fingerprint, "params": params.model_dump(mode="json")}
        self.path = log_path(stage, name)
        self.sender: subprocess.Popen[bytes] | None = None
        self.live = not (silent or switched_off())
        self.run_log: RunLog | None = None
        if not silent:
            try:
                self.run_log = RunLog(stage, name, fingerprint, {"profile": params.profile})
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.run_log = None
        warn(f"the log {self.path} cannot be written ({error}); the run goes on without it")

    def log(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point of the curve at `update`."""
        if self.run_log is None:
            return
        try:
            self.run_log.append(update, values)
        except (OSError, TypeError, ValueError) as error:
            self._give_up(error)
        if self.live and time.monotonic() - self.began >= LIVE_AFTER_SECONDS:
            self.live = False
            self._start_sender()

    def _start_sender(self) -> None:
        try:
            self.sender = subprocess.Popen(
                [sys.executable, "-m", "gpt1.tracking.sync"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            assert self.sender.stdin is not None
            self.sender.stdin.write(json.dumps(self.request).encode() + b"\n")
            self.sender.stdin.flush()
        except OSError as error:
            warn(
                f"nothing is sent to MLflow while the run goes on ({error}); gpt1 sync does it"
                " later"
            )

    def close(self, status: str) -> None:
        """Say how the run ended: finished, failed or interrupted."""
        if self.run_log is not None:
            try:
                self.run_log.close(status)
            except OSError as error:
                self._give_up(error)
            self.run_log = None
        if self.sender is None:
            return
        try:
            self.sender.communicate(b"close\n", timeout=CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.sender.kill()
            already_warned, _ = self.sender.communicate()
            if not already_warned:
                uri = without_password(tracking_uri())
                warn(f"MLflow at {uri} is slow; gpt1 sync adds what it has not got")
        self.sender = None
