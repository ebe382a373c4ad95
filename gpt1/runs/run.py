"""`gpt1 run`: what is out of date of DVC's graph, several stages side by side, each by a `dvc repro
-s` of its own.

DVC stays the only judge of what is up to date and the only writer of dvc.lock; this module decides
when a stage is tried, and where. How a stage is started is the launcher's: a process here, a task
of Prefect in flows/.
"""

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from gpt1.errors import UserError
from gpt1.runs import mark
from gpt1.runs.forecast import foretold_seconds, in_words, last_seconds, note_seconds, seconds_left
from gpt1.runs.graph import read_graph, recorded_outputs
from gpt1.runs.job import Ended, log_of, out_of_memory_kills, outcome, start
from gpt1.runs.process_group import end_group, end_orphans, process_group
from gpt1.runs.schedule import Share, Slots, Stage, concerned, may_run, shares, startable, urgencies
from gpt1.runs.slots import find_slots, variables

DVC = Path(".dvc")
POLL_SECONDS = 0.05
NEWS_SECONDS = 15.0  # so that the time left is not that of a stage's start


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
        return (
            f"{self.line} ({self.done} of {self.total}{left})"
            if self.done and not self.ending
            else self.line
        )


Watch = Callable[[News], None]


class Job(Protocol):
    """A stage at work."""

    def ended(self) -> Ended | None:
        """What became of it; None while it is at work."""


class Launcher(Protocol):
    """How a stage is started, by whoever runs the graph."""

    def start(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> Job:
        """Start a stage with these variables in its environment; `ending` says whether the run has
        been asked to end.
        """

    def current(self, stage: Stage) -> None:
        """Take note of a stage that is up to date."""


class Here:
    """Stages as processes here, their output in a log each."""

    def start(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> Job:
        """Start a stage's DVC."""
        return _Process(stage, given, ending, group)

    def current(self, stage: Stage) -> None:
        """Nothing."""


class _Process:
    def __init__(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> None:
        self.stage, self.ending, self.group, self.kills = (
            stage,
            ending,
            group,
            out_of_memory_kills(),
        )
        log_of(stage.name).parent.mkdir(parents=True, exist_ok=True)
        with log_of(stage.name).open("wb") as log:
            self.process = start(stage, given, group, log)

    def ended(self) -> Ended | None:
        status = self.process.poll()
        if status is None:
            return None
        if status < 0:
            end_orphans(self.group)
        return outcome(self.stage, status, self.kills, self.ending())


def print_line(news: News) -> None:
    """The quiet way to watch: one line a finished stage, to stderr."""
    if news.line:
        print(news.in_words(), file=sys.stderr, flush=True)


@dataclass
class Running:
    """A stage at work, when it began (monotonic seconds), the devices that it has."""

    job: Job
    began: float
    devices: tuple[str, ...]


@contextmanager
def alone_here(who: str, watch: Watch) -> Iterator[int]:
    """The descriptor of a locked file, so that one run at a time is at work in a checkout and its
    worktrees.

    Waits for another to end, and says for whom; `who` is what a third will be told.
    """
    if not DVC.is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: run this in the root of the checkout")
    (DVC / "tmp").mkdir(exist_ok=True)
    with (DVC / "tmp" / "gpt1-run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            watch(
                News(
                    f"{file.read().strip() or 'another run'} is at work here; waiting for it to end"
                )
            )
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"{who} (process {os.getpid()})\n")
        file.flush()
        yield file.fileno()


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """The signals that asked for an end, as they come, instead of ending this process at once; in
    the main thread only.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    numbers = [
        signal.SIGINT,
        signal.SIGTERM,
    ]  # even where ignored (a shell's `&`): or else the stages would ignore them too
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    before = {
        number: signal.signal(number, lambda number, _: noted.append(number)) for number in numbers
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Plan:
    """What there is to do: every stage by name, the names of those that may have to run, slots,
    what each stage has of them.
    """

    stages: dict[str, Stage]
    chosen: list[str]
    todo: set[str]
    slots: Slots
    share: dict[str, Share]
    urgency: dict[str, float]


def make_plan(targets: Collection[str], lanes: int | None) -> Plan:
    """Who runs where with how many threads. Raises UserError for unknown targets and GPT1_…
    settings that make no sense.
    """
    stages, chosen = read_graph(targets)
    todo = concerned(stages, chosen)
    slots, threads = (
        find_slots(lanes, any(stages[name].trains for name in todo)) if todo else (Slots(1), None)
    )
    return Plan(
        stages,
        chosen,
        todo,
        slots,
        shares(stages, slots, threads),
        urgencies(stages, last_seconds()),
    )


def bytes_read(stage: Stage) -> int:
    """Bytes of the data that a stage reads: of stages that are as urgent, the one with most is
    likely to take longest.
    """
    return sum(
        file.stat().st_size
        for file in mark.files_under(read for read in stage.reads if not read.startswith("gpt1"))
    )


def run_stages(
    targets: Collection[str] = (), lanes: int | None = None, watch: Watch = print_line
) -> dict[str, float]:
    """Run what is out of date of the targets (none: of the whole graph) and of all that they need;
    returns seconds by stage.

    Runs stages side by side in `lanes` slots (default: one a GPU, or as many as cores and memory
    bear). A stage that fails starts nothing new and lets the running ones end; then UserError says
    why. A signal that asks for an end is handed to the stages, a second one ends them at once; then
    KeyboardInterrupt is raised. A second run here waits for the first to end. Returns seconds,
    DVC's start included, by name of each stage that changed.
    """
    with alone_here("gpt1 run", watch) as lock:
        return carry_out(make_plan(targets, lanes), Here(), watch, lock)


def carry_out(plan: Plan, launcher: Launcher, watch: Watch, lock: int) -> dict[str, float]:
    """Run the stages of a plan; what is left of them, should this process die, holds `lock` until
    it has ended. Raises as run_stages.
    """
    for name in plan.chosen:
        if name not in plan.todo:
            launcher.current(plan.stages[name])
    if not plan.todo:
        return {}
    with signals_noted() as signals, process_group(lock) as group:
        return _run(plan, launcher, watch, signals, group)


def _run(
    plan: Plan, launcher: Launcher, watch: Watch, signals: list[int], group: int
) -> dict[str, float]:
    stages, waiting, size = plan.stages, set(plan.todo), cache(bytes_read)
    lanes, devices = plan.slots.lanes, plan.slots.devices
    running, seconds, took, failed, renewed = (
        dict[str, Running](),
        dict[str, float](),
        dict[str, float](),
        list[str](),
        set[str](),
    )
    ending, spoken = False, time.monotonic()
    outputs, asked, ended_well, foretold = (
        recorded_outputs(),
        set[tuple[int, int]](),
        list[str](),
        foretold_seconds(),
    )

    def tell(line: str = "") -> None:
        now, may = time.monotonic(), may_run(stages, waiting, {*running, *renewed})
        left = (
            None
            if signals
            else seconds_left(
                stages,
                foretold,
                took,
                {name: now - stage.began for name, stage in running.items()},
                may,
                plan.slots,
                plan.share,
            )
        )
        watch(
            News(
                line,
                len(ended_well),
                len(ended_well) + len(running) + len(may),
                tuple(running),
                bool(signals),
                left,
            )
        )

    while True:
        if not failed and not signals:
            ready = [
                name
                for name in stages
                if name in waiting and not stages[name].needs & {*waiting, *running}
            ]
            needless = [
                name
                for name in ready
                if not stages[name].stale and not stages[name].needs & renewed
            ]
            waiting.difference_update(needless)
            for name in needless:
                launcher.current(stages[name])
            if needless:
                continue  # what comes after them may be ready now
            ready.sort(key=lambda name: (-plan.urgency[name], -size(stages[name])))
            for name, given in startable(ready, plan.share, Slots(lanes, devices)):
                job = launcher.start(
                    stages[name], variables(plan.share[name], given), lambda: bool(signals), group
                )
                running[name] = Running(job, time.monotonic(), given)
                waiting.discard(name)
                lanes, devices = (
                    lanes - plan.share[name].lanes,
                    tuple(device for device in devices if device not in given),
                )
                tell()
        if not running:
            break
        time.sleep(POLL_SECONDS)
        if time.monotonic() - spoken > NEWS_SECONDS:
            spoken = time.monotonic()
            tell()
        if signals:
            tell(
                ""
                if ending
                else (
                    f"ending: {', '.join(running)} {'stops' if len(running) == 1 else 'stop'}, and"
                    " what is finished is kept (Ctrl-C again ends at once)"
                )
            )
            ending = True
            end_group(group, len(signals), asked)
        for name, ended in [
            (name, ended) for name, stage in running.items() if (ended := stage.job.ended())
        ]:
            stage = running.pop(name)
            lanes, devices = lanes + plan.share[name].lanes, (*devices, *stage.devices)
            if ended.well:
                lasted = time.monotonic() - stage.began
                ended_well.append(name)
                if ended.how != "unchanged":
                    seconds[name] = lasted
                if ended.how == "run":
                    took[name] = lasted
                    note_seconds(name, lasted)
                if (now := recorded_outputs().get(name)) is None or now != outputs.get(name):
                    renewed.add(name)
                tell(f"{name}: {f'{lasted:.0f} s' if ended.how == 'run' else ended.how}")
            elif not signals:
                failed.append(ended.why)
    if failed:
        raise UserError("; ".join(failed))
    if signals:
        raise KeyboardInterrupt(
            "interrupted: nothing finished was lost; run the same command again to go on"
        )
    return seconds


def run_and_show(targets: Collection[str], lanes: int | None) -> None:
    """run_stages for a person: on a terminal a bar with the time and what runs now, elsewhere a
    line a finished stage.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console, began = Console(stderr=True, highlight=False), time.monotonic()
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn(
            "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    with Progress(
        *columns,
        console=console,
        expand=True,
        transient=True,
        refresh_per_second=2,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("what is out of date?", total=None)

        def watch(news: News) -> None:
            words = [
                "ending" if news.ending else f"{in_words(news.left)} left" if news.left else "",
                ", ".join(news.running),
            ]
            bar.update(
                task,
                completed=news.done,
                total=news.total or None,
                description="; ".join(filter(None, words)),
            )
            if news.line:
                console.print(
                    news.line if console.is_terminal else news.in_words(),
                    markup=False,
                    soft_wrap=True,
                )

        seconds = run_stages(targets, lanes, watch)
    print(
        f"{len(seconds)} {'stage' if len(seconds) == 1 else 'stages'} run in"
        f" {time.monotonic() - began:.0f} s"
        if seconds
        else "everything is up to date"
    )
