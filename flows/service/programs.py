"""The service's programs: started, watched, and started again where they die by themselves; and
their end: flow runs, worker, servers, in this order, by a guard, so that it also comes where the
service itself is killed.

Every process of a service inherits the variable GPT1_SERVICE, by which it is found, whoever its
parent is by then. `python -m flows.service.programs NAME` is the guard: it waits for its pipe to
close.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS
from gpt1.pipeline.process_group import guarded_by, living, stand_guard, tell
from gpt1.pipeline.progress import tail

VARIABLE = "GPT1_SERVICE"  # NAME of the service, a slash, the part's name
WORKER, ENGINE = ["-m", "prefect", "worker"], ["-m", "flows.engine"]
FLOW_RUN_SECONDS = 30.0  # a stage ends with a checkpoint
WORKER_SECONDS = 5.0
SERVER_SECONDS = 5.0
FOLDER = LOGS / "serve"
RESTARTS, RESTART_SECONDS = 3, 60.0
LAST_LINES = 3
INSIST_SECONDS = 1.0  # signals that come together are one wish: make hands its own on
POLL_SECONDS = 0.1


def processes(service: str, part: str = "") -> list[Any]:
    """What lives of a service, or of one of its parts, as psutil's processes; not the caller."""
    return living(
        lambda process: (
            process.environ().get(VARIABLE, "").startswith(f"{service}/{part}")
            and process.pid != os.getpid()
        )
    )


def runs(process: Any, command: list[str]) -> bool:
    """Whether a process is `python` with this command."""
    import psutil

    with suppress(psutil.Error):
        return list(process.cmdline()[1 : 1 + len(command)]) == command
    return False


def wait(seconds: float, alive: Callable[[], list[Any]]) -> list[Any]:
    """Until nothing is alive, at most so long; returns what still is."""
    limit = time.monotonic() + seconds
    while (left := alive()) and time.monotonic() < limit:
        time.sleep(POLL_SECONDS)
    return left


def end(service: str) -> None:
    """End all of a service: first the flow runs, which end their stages with a checkpoint, for a
    worker that ends kills its flow runs.
    """
    asked = set()

    def workers() -> list[Any]:
        return [process for process in processes(service, "worker") if runs(process, WORKER)]

    def flow_runs() -> list[Any]:
        left = [process for process in processes(service, "worker") if not runs(process, WORKER)]
        for process in left:
            if process.pid not in asked and runs(process, ENGINE):
                asked.add(process.pid)
                tell(process, signal.SIGTERM)
        return left

    for process in wait(FLOW_RUN_SECONDS, flow_runs):
        tell(process, signal.SIGKILL)
    for process in workers():
        tell(process, signal.SIGINT)
    wait(WORKER_SECONDS, workers)
    for process in processes(service):
        tell(process, signal.SIGTERM)
    wait(SERVER_SECONDS, lambda: processes(service))
    end_at_once(service)


def end_at_once(service: str) -> None:
    """Kill all of a service."""
    while left := processes(service):
        for process in left:
            tell(process, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


@contextmanager
def guarded(service: str, held_file: int, signals: list[int]) -> Iterator[None]:
    """A guard ends the service when this process, or the block, has ended; it holds `held_file`, a
    descriptor, so long.

    A signal that comes while the block is being ended, noted in `signals`, ends everything at once.
    """
    module = "flows.service.programs"
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    with guarded_by(
        module, service, held_file=held_file, new_session=True, environment=environment
    ) as guard:
        try:
            yield
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            began = time.monotonic()
            while guard.poll() is None:
                if time.monotonic() - began < INSIST_SECONDS:
                    signals.clear()
                elif signals:
                    end_at_once(service)
                time.sleep(POLL_SECONDS)
            if guard.returncode:  # it was killed
                end(service)


def main() -> None:
    """The guard: wait until the pipe at stdin closes, then end the service named on the command
    line.
    """
    stand_guard()
    end(sys.argv[1])


@dataclass
class ServiceProgram:
    """A program of the service: its command, its own variables, how to tell that it is well (None:
    it ends by itself, with status 0).

    Then its process, and when it was started again.
    """

    name: str
    command: Sequence[str]
    variables: Mapping[str, str]
    well: Callable[[], bool] | None
    process: "subprocess.Popen[bytes] | None" = None
    restarts: deque[float] = field(default_factory=deque)

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return FOLDER / f"{self.name}.log"

    def start(self, service: str) -> None:
        """Start it, out of reach of the terminal's Ctrl-C: the guard ends the parts, in their
        order.
        """
        FOLDER.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab" if self.process else "wb") as log:
            self.process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.variables, VARIABLE: f"{service}/{self.name}"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def died(self) -> bool:
        """Whether it has ended, and was not to."""
        status = self.process.poll() if self.process else None
        return status is not None and (self.well is not None or status != 0)

    def ready(self) -> bool:
        """Whether it answers, or has done its work."""
        return self.well() if self.well else bool(self.process and self.process.poll() == 0)

    def last_lines(self) -> str:
        """The end of its log, in one line."""
        return " | ".join(map(str.strip, tail(self.log)[-LAST_LINES:])) or "it said nothing"

    def start_again(self, service: str, say: Callable[[str], None]) -> None:
        """Start it anew after it died. Raises UserError where that happens too often."""
        assert self.process is not None
        now = time.monotonic()
        while self.restarts and now - self.restarts[0] > RESTART_SECONDS:
            self.restarts.popleft()
        if len(self.restarts) == RESTARTS:
            raise UserError(
                f"{self.name} ended again, {RESTARTS} times within a minute: {self.last_lines()}"
                f" (log: {self.log})"
            )
        say(
            f"{self.name} ended by itself (status {self.process.returncode}); started again; its"
            f" log: {self.log}"
        )
        self.restarts.append(now)
        self.start(service)


if __name__ == "__main__":
    main()
