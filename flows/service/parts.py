"""The service's parts: processes that are started, watched, and started again where they die by
themselves.
"""

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.service.ending import VARIABLE
from gpt1.base.errors import UserError
from gpt1.base.files import LOGS

FOLDER = LOGS / "serve"
RESTARTS, RESTART_SECONDS = 3, 60.0
LAST_LINES = 3


@dataclass
class Part:
    """A part of the service: its command, its own variables, how to tell that it is well (None: it
    ends by itself, with status 0).

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
        lines = [
            line.strip()
            for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
        return " | ".join([line for line in lines if line][-LAST_LINES:]) or "it said nothing"

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
