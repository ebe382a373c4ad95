"""How far a run is: a line a finished stage, and on a terminal a bar under the lines, elsewhere a
line a minute.
"""

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from flows.graph import seconds_left
from flows.processes import log_of

UPDATE = re.compile(rb"update (\d+) of (\d+)[^\n]*\n(?!.*update \d+ of)", re.DOTALL)
TICK_SECONDS, QUIET_SECONDS, TAIL_BYTES = 1.0, 60.0, 20_000


class Progress:
    """A run's progress for a person, from its start to its end."""

    def __init__(self, names: Iterable[str], seconds: Mapping[str, float], lanes: int) -> None:
        """Of the stages that may have to run; what each took last time; how many side by side."""
        self.waiting, self.seconds, self.lanes = set(names), dict(seconds), lanes
        self.console = Console(stderr=True, highlight=False)
        self.bar = Bar(
            BarColumn(20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.shown = self.bar.add_task("", total=len(self.waiting))
        self.began: dict[str, float] = {}
        self.total, self.spoken = len(self.waiting), time.monotonic()

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, name: str) -> None:
        """A stage is at work."""
        self.began[name] = time.monotonic()

    def end(self, name: str, line: str) -> None:
        """A stage has ended; what there is to say of it, if anything."""
        self.began.pop(name)
        self.waiting.discard(name)
        if line:
            self.say(line)

    def tick(self) -> float:
        """Show what is at work; returns the seconds until that is to be done again."""
        at_work = ", ".join(f"{name}{updates_of(name)}" for name in self.began)
        done = self.total - len(self.waiting)
        self.bar.update(self.shown, completed=done, description=f"{self.left()[2:]} {at_work}")
        if self.bar.disable and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.say(f"at work: {at_work} ({done} of {self.total}{self.left()})")
        return TICK_SECONDS

    def say(self, line: str) -> None:
        """A line above the bar."""
        self.spoken = time.monotonic()
        self.console.print(line, markup=False, soft_wrap=True)

    def left(self) -> str:
        """The time left in words, where an earlier run tells it."""
        now = time.monotonic()
        since = {name: now - began for name, began in self.began.items()}
        seconds = seconds_left(self.waiting, self.seconds, since, self.lanes)
        if not seconds:
            return ""
        return f", {seconds:.0f} s left" if seconds < 90 else f", {seconds / 60:.0f} min left"


def updates_of(name: str) -> str:
    """How far a training is, by the last line of its log that tells it."""
    with suppress(OSError):
        with log_of(name).open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - TAIL_BYTES))
            found = UPDATE.search(log.read())
        if found:
            return f" (update {int(found[1]):,} of {int(found[2]):,})"
    return ""
