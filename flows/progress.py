"""The progress of a run: one line per finished stage, and a bar on a terminal, else one line a
minute.
"""

import re
import time
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from flows.graph import seconds_left
from flows.processes import log_text

QUIET_SECONDS = 60.0


class Progress(Bar):
    """A run's progress for a person, from its start to its end."""

    def __init__(self, names: Iterable[str], seconds: Mapping[str, float], lanes: int) -> None:
        """Show the progress of these stages; `seconds`: what each took last time; `lanes` run at
        once.
        """
        console = Console(stderr=True, highlight=False)
        # the description alone gives way where the terminal is narrow
        words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True))
        super().__init__(
            BarColumn(10),
            "{task.completed}/{task.total}",
            TimeElapsedColumn(),
            words,
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self.waiting, self.seconds, self.lanes = set(names), seconds, lanes
        self.shown = self.add_task("", total=len(self.waiting))
        self.began: dict[str, float] = {}  # what is at work, since when
        self.spoken = time.monotonic()

    def end(self, name: str, line: str) -> None:
        """Report the end of a stage with this line."""
        self.began.pop(name)
        self.skip(name)
        self.say(line)

    def skip(self, name: str) -> None:
        """Count a stage as done that does not have to run."""
        self.waiting.discard(name)
        self.advance(self.shown)

    def tick(self) -> None:
        """Show which stages are at work."""
        at_work = ", ".join(f"{name}{updates_of(name)}" for name in self.began)
        self.update(self.shown, description=f"{(time_left := self.left())[2:]} {at_work}".strip())
        if self.disable and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.say(f"at work: {at_work} ({len(self.waiting)} to go{time_left})")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.spoken = time.monotonic()
        self.console.print(line, markup=False, soft_wrap=True)

    def left(self) -> str:
        """Return the time left in words; "" where no earlier run tells it."""
        now = time.monotonic()
        since = {name: now - began for name, began in self.began.items()}
        seconds = seconds_left(self.waiting, self.seconds, since, self.lanes)
        return f", {seconds / 60:.1f} min left" if seconds else ""


def updates_of(name: str) -> str:
    """Return how far a training is and how long it will take, from the last line of its log."""
    updates = re.findall(r"update (\d+ of \d+).*?(, [\d.]+ min left)", log_text(name))
    return f" ({''.join(updates[-1])})" if updates else ""
