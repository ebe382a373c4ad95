"""What whoever watches a run is told."""

from collections.abc import Callable
from dataclasses import dataclass

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
