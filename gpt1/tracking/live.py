"""A stage's log, and a thread that sends points to MLflow."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from gpt1.base.files import write_json
from gpt1.base.machine import checkout, machine
from gpt1.params.schema import Params
from gpt1.tracking.address import problem, switched_off, warn
from gpt1.tracking.log import Point, log_path, read_facts

LIVE_AFTER_SECONDS = 30.0  # a shorter stage leaves MLflow to `gpt1 sync`
SEND_EVERY_SECONDS, CLOSE_SECONDS = 10.0, 10.0


@contextmanager
def tracked(
    stage: str, name: str, params: Params, fingerprint: str
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Begin or resume a run's log, give the function that reports points, and record how the block
    ended. Only rank 0 writes.
    """
    if os.environ.get("RANK", "0") != "0":
        yield lambda update, values: None
        return
    tracker = Tracker(stage, name, params, fingerprint)
    try:
        yield tracker.log
    except BaseException as error:
        tracker.close("FAILED" if isinstance(error, Exception) else "KILLED")
        raise
    tracker.close("FINISHED")


class Tracker:
    """Writes the log and, after half a minute, sends the points. It never raises."""

    def __init__(self, stage: str, name: str, params: Params, fingerprint: str) -> None:
        self.params, self.began, self.ended = params, time.monotonic(), Event()
        self.status, self.writable = "", True
        self.path, self.points = log_path(stage, name), list[Point]()
        self.sender: Thread | None = None
        before = read_facts(self.path)
        if before.get("fingerprint") != fingerprint or before.get("status") == "FINISHED":
            before = {}
        self.seconds_before = before.get("seconds", 0.0)
        self.facts: dict[str, Any] = {
            "stage": stage,
            "name": name,
            "fingerprint": fingerprint,
            "time": before.get("time", time.time()),
            "machine": machine(),
            "checkout": checkout(Path()),
        }
        self._write("RUNNING")

    def _write(self, status: str) -> None:
        seconds = round(self.seconds_before + time.monotonic() - self.began, 1)
        try:
            if self.writable:
                write_json(self.path, self.facts | {"status": status, "seconds": seconds})
        except OSError as error:
            self.writable = False
            warn(f"the log of the run cannot be written ({error}); it goes on without")

    def log(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point of the curve at `update`."""
        self.facts["last"] = {"update": update, **values}
        self.points.append({"time": time.time(), **self.facts["last"]})
        if "heldout_loss" in values:  # so that a kill loses few of the seconds
            self._write("RUNNING")
        late = time.monotonic() - self.began >= LIVE_AFTER_SECONDS
        if late and not self.sender and not switched_off():
            self.sender = Thread(target=self._send, daemon=True)
            self.sender.start()

    def close(self, status: str) -> None:
        """Record how the run ended: FINISHED, FAILED, KILLED."""
        self._write(status)
        self.status = status
        self.ended.set()
        if self.sender:
            self.sender.join(CLOSE_SECONDS)
            if self.sender.is_alive():
                warn("MLflow is slow; gpt1 sync sends it the rest of the curve")

    def _send(self) -> None:
        try:
            from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

            from gpt1.tracking.store import Store

            store, facts = Store(self.params), self.facts
            run = store.run(
                facts["stage"], facts["name"], facts["fingerprint"], facts["time"], last={}
            )
            run_id, sent, there = run.info.run_id, 0, store.points_of(run)
            store.client.update_run(run_id, "RUNNING")
            machine = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=store.uri)
            machine.start()
            while not self.ended.wait(SEND_EVERY_SECONDS if sent else 0):
                sent += store.send(run, self.points[sent:], there)
            machine.finish()
            store.send(run, self.points[sent:], there)
            store.client.set_terminated(run_id, self.status)
        except Exception as error:
            warn(f"{problem(error)}; the run goes on, and gpt1 sync sends its curve later")
