"""The progress of a run: a line per finished stage, and a bar, or a line a minute without a
terminal.
"""

import re
import time
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from flows.processes import log_text
from gpt1.estimate import PEAKS, SHARE, works
from gpt1.params.schema import read_params

QUIET_SECONDS = 60.0
CPU_PACE, GPU_PACE = 2e10, SHARE * PEAKS["RTX 4090"]  # operations a second, 6 N D
UPDATES = re.compile(r"update (\d+ of \d+), (loss [\d.]+).*, ([\d.]+) min left")


class Progress(Bar):
    """The progress of a run, from its start to its end."""

    def __init__(self, names: Iterable[str], seconds: Mapping[str, float], lanes: int) -> None:
        """Show these stages; `seconds`: what each takes; `lanes` run at once."""
        console = Console(stderr=True, highlight=False)
        # the description alone gives way where the terminal is narrow
        words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True))
        super().__init__(
            BarColumn(8),
            "{task.completed}/{task.total}",
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
        """Show the time left and the stages at work, with their losses."""
        words, left = list[str](), {name: self.seconds[name] for name in self.waiting}
        for name, began in self.began.items():
            words.append(name)
            left[name] = max(left[name] - time.monotonic() + began, 0.0)
            for updates, loss, minutes in UPDATES.findall(log_text(name))[-1:]:
                words[-1] += f" ({loss}, {updates})"
                if name.startswith("pretrain"):  # a fine-tuning has several seeds
                    left[name] = 60 * float(minutes)
        seconds = max(sum(left.values()) / self.lanes, *left.values(), 0.0)
        line = f"{seconds / 60:.1f} min left: {', '.join(words)}"
        self.update(self.shown, description=line)
        if self.disable and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.say(f"{len(self.waiting)} stages to go, {line}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.spoken = time.monotonic()
        self.console.print(line, markup=False, soft_wrap=True)


def usual_seconds(stages: Iterable[str], gpu: bool) -> dict[str, float]:
    """Guess the seconds of stages on a machine that has not run them yet."""
    trainings, pace = works(read_params()), GPU_PACE if gpu else CPU_PACE
    return {
        name: 5.0 + (trainings[name].operations / pace if name in trainings else 0.0)
        for name in stages
    }
