"""How far a run is, as whoever watches it is told; how far a stage is, by its log."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpt1.pipeline.forecast import in_words


@dataclass(frozen=True)
class News:
    """What whoever watches is told: a line to show ('' for none), stages done, of how many that may
    run, which run now, whether the run is to end, seconds left (None: not known).
    """

    line: str
    done: int = 0
    total: int = 0
    running: tuple[str, ...] = ()
    ending: bool = False
    left: float | None = None

    def in_words(self) -> str:
        """The line, with how far the run is where it is under way."""
        left = f", about {in_words(self.left)} left" if self.left else ""
        under_way = self.total and not self.ending
        return f"{self.line} ({self.done} of {self.total}{left})" if under_way else self.line


Watch = Callable[[News], None]


TAIL_BYTES = 20_000
UPDATE = re.compile(r"^\w+ (?P<part>\S+): update (?P<update>\d+) of (?P<updates>\d+)(?P<more>.*)$")
LEFT = re.compile(r"([\d.]+ \w+) left$")


class TrainingProgress(NamedTuple):
    """How far a training is: its part (`lstm`, `cola/seed-0`), updates done, of how many; the time
    left and what else it says, in its words.
    """

    part: str
    update: int
    updates: int
    left: str
    says: str


def progress_in(lines: Sequence[str]) -> TrainingProgress | None:
    """What the last of these lines that tells of updates says; None where none does."""
    for line in reversed(lines):
        if told := UPDATE.match(line):
            left = LEFT.search(told["more"])
            says = told["more"].removesuffix(left[0] if left else "").strip(", ")
            update, updates = int(told["update"]), int(told["updates"])
            return TrainingProgress(told["part"], update, updates, left[1] if left else "", says)
    return None


def tail(path: Path) -> list[str]:
    """The last lines of a file that are not empty."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return [
            line.rstrip()
            for line in file.read().decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
