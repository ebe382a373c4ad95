"""Tracking while a stage runs: points go to its log at once, and to MLflow by a thread that nothing
waits for.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread

from gpt1.params.schema import Params
from gpt1.tracking.address import problem, switched_off, warn
from gpt1.tracking.log import RunLog

LIVE_AFTER_SECONDS = 30.0  # a shorter stage leaves MLflow to `gpt1 sync`
SEND_EVERY_SECONDS, CLOSE_SECONDS = 10.0, 10.0


@contextmanager
def tracked(
    stage: str, name: str, params: Params, fingerprint: str
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Begin or resume the log of a run, give the function that reports points, and note how the
    block ended. `fingerprint` stands for the run's parameters and inputs. Only rank 0 writes.
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
    """Writes the log and, after half a minute, starts a thread that sends it. Neither method ever
    raises.
    """

    def __init__(self, stage: str, name: str, params: Params, fingerprint: str) -> None:
        self.params, self.began, self.ended = params, time.monotonic(), Event()
        self.status, self.slow = "", False
        self.sender: Thread | None = None
        self.run_log: RunLog | None = None
        with self._guarded():
            self.run_log = RunLog(stage, name, fingerprint)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (OSError, LookupError, TypeError, ValueError) as error:
            self.run_log = None
            warn(f"the log of the run cannot be written ({error}); it goes on without")

    def log(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point of the curve at `update`."""
        if self.run_log:
            with self._guarded():
                self.run_log.append(update, values)
        late = time.monotonic() - self.began >= LIVE_AFTER_SECONDS
        if late and self.run_log and not self.sender and not switched_off():
            self.sender = Thread(target=self._send, args=(self.run_log,), daemon=True)
            self.sender.start()

    def close(self, status: str) -> None:
        """Record how the run ended, in MLflow's words: FINISHED, FAILED, KILLED."""
        if self.run_log:
            with self._guarded():
                self.run_log.close(status)
        self.status = status
        self.ended.set()
        if self.sender:
            self.sender.join(CLOSE_SECONDS)
            if self.sender.is_alive():
                self.slow = True
                warn("MLflow is slow; gpt1 sync sends it the rest of the curve")

    def _send(self, log: RunLog) -> None:
        """Send new points every few seconds until the run has ended."""
        try:
            from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

            from gpt1.tracking.store import Store

            store = Store(self.params)
            keys = ("stage", "name", "fingerprint", "time")
            run = store.run(*(log.facts[key] for key in keys))
            run_id, sent = run.info.run_id, 0
            store.client.update_run(run_id, "RUNNING")
            machine = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=store.uri)  # type: ignore[no-untyped-call]
            machine.start()  # type: ignore[no-untyped-call]
            while not self.ended.wait(SEND_EVERY_SECONDS if sent else 0):
                sent += store.send(run, log.points[sent:])
            machine.finish()  # type: ignore[no-untyped-call]
            store.send(run, log.points[sent:])
            store.client.set_terminated(run_id, self.status)
        except Exception as error:
            if not self.slow:
                warn(f"{problem(error)}; the run goes on, and gpt1 sync sends its curve later")
