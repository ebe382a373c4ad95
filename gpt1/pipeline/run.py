"""A run: what is out of date of DVC's graph, several stages side by side, each by a `dvc repro -s`
of its own.

DVC stays the only judge of what is up to date and the only writer of dvc.lock; this module decides
when a stage is tried, and where. How a stage is started is the launcher's: a process here, a task
of Prefect in flows/.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from gpt1.base.errors import UserError
from gpt1.pipeline import mark
from gpt1.pipeline.alone import signals_noted
from gpt1.pipeline.forecast import foretold_seconds, last_seconds, note_seconds, seconds_left
from gpt1.pipeline.graph import read_graph, recorded_outputs
from gpt1.pipeline.job import Ended, log_of
from gpt1.pipeline.news import News, Watch
from gpt1.pipeline.process_group import end_group, process_group
from gpt1.pipeline.schedule import (
    Share,
    Slots,
    Stage,
    after,
    concerned,
    may_run,
    shares,
    startable,
    urgencies,
)
from gpt1.pipeline.slots import find_slots, variables

POLL_SECONDS = 0.05
NEWS_SECONDS = 15.0  # so that the time left is not that of a stage's start
SHOWN_NAMES = 8


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


@dataclass
class Running:
    """A stage at work, when it began (monotonic seconds), the devices that it has."""

    job: Job
    began: float
    devices: tuple[str, ...]


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


def carry_out(plan: Plan, launcher: Launcher, watch: Watch, lock: int) -> dict[str, float]:
    """Run the stages of a plan; what is left of them, should this process die, holds `lock` until
    it has ended. Returns seconds, DVC's start included, by name of each stage that changed.

    Where a stage fails, all that does not need it goes on, and in the end UserError says what
    failed; where the machine fails, nothing more is started. A signal that asks for an end is
    handed to the stages, a second one ends them at once; then KeyboardInterrupt is raised.
    """
    for name in plan.chosen:
        if name not in plan.todo:
            launcher.current(plan.stages[name])
    if not plan.todo:
        return {}
    with signals_noted() as signals, process_group(lock) as group:
        return _Run(plan, launcher, watch, signals, group).to_the_end()


class _Run:
    """A plan under way: what waits, what runs, what became of the others, what is free."""

    def __init__(
        self, plan: Plan, launcher: Launcher, watch: Watch, signals: list[int], group: int
    ) -> None:
        self.plan, self.launcher, self.watch = plan, launcher, watch
        self.signals, self.group, self.ending = signals, group, False
        self.waiting, self.running, self.free = set(plan.todo), dict[str, Running](), plan.slots
        self.well, self.seconds = dict[str, Ended](), dict[str, float]()
        self.failed, self.not_run = dict[str, Ended](), set[str]()
        self.renewed = set[str]()  # their results may be others now
        self.outputs, self.foretold = recorded_outputs(), foretold_seconds()
        self.size = cache(bytes_read)

    def to_the_end(self) -> dict[str, float]:
        """Start what can start and take what has ended, until nothing runs."""
        asked, told = set[tuple[int, int]](), time.monotonic()
        while True:
            if not self.signals:
                self.start_ready()
            if not self.running:
                return self.conclude()
            time.sleep(POLL_SECONDS)
            if time.monotonic() - told > NEWS_SECONDS:
                told = time.monotonic()
                self.tell()
            if self.signals:
                self.tell_of_ending()
                end_group(self.group, len(self.signals), asked)
            for name, stage in list(self.running.items()):
                if ended := stage.job.ended():
                    self.take(name, ended)

    def start_ready(self) -> None:
        """Start what is ready and fits; what is up to date after all is not tried."""
        plan, ready = self.plan, self.ready()
        while needless := [name for name in ready if not self.has_reason(plan.stages[name])]:
            self.waiting.difference_update(needless)
            for name in needless:
                self.launcher.current(plan.stages[name])
            ready = self.ready()  # what comes after them may be ready now
        ready.sort(key=lambda name: (-plan.urgency[name], -self.size(plan.stages[name])))
        for name, given in startable(ready, plan.share, self.free):
            share = plan.share[name]
            job = self.launcher.start(
                plan.stages[name], variables(share, given), lambda: bool(self.signals), self.group
            )
            self.running[name] = Running(job, time.monotonic(), given)
            self.waiting.discard(name)
            left = tuple(device for device in self.free.devices if device not in given)
            self.free = Slots(self.free.lanes - share.lanes, left)
            self.tell()

    def ready(self) -> list[str]:
        """Those that wait for no other."""
        unfinished = {*self.waiting, *self.running}
        return [
            name
            for name, stage in self.plan.stages.items()
            if name in self.waiting and not stage.needs & unfinished
        ]

    def has_reason(self, stage: Stage) -> bool:
        """Whether a stage that is ready is to be tried."""
        return stage.stale or bool(stage.needs & self.renewed)

    def take(self, name: str, ended: Ended) -> None:
        """Note what became of a stage, and free its place."""
        stage = self.running.pop(name)
        lasted = time.monotonic() - stage.began
        lanes = self.free.lanes + self.plan.share[name].lanes
        self.free = replace(self.free, lanes=lanes, devices=(*self.free.devices, *stage.devices))
        if ended.well:
            self.well[name] = ended
            if ended.how != "unchanged":
                self.seconds[name] = lasted
            if ended.how == "run":
                note_seconds(name, lasted)
            if (now := recorded_outputs().get(name)) is None or now != self.outputs.get(name):
                self.renewed.add(name)
            self.tell(f"{name}: {f'{lasted:.0f} s' if ended.how == 'run' else ended.how}")
        elif not self.signals:
            self.failed[name] = ended
            lost = self.waiting if ended.of_machine else after(self.plan.stages, name, self.waiting)
            self.not_run |= lost
            self.waiting -= lost
            self.tell(f"{name}: failed, see {log_of(name)}")

    def tell(self, line: str = "") -> None:
        """Say how far the run is, with a line or without."""
        plan, now = self.plan, time.monotonic()
        may = may_run(plan.stages, self.waiting, {*self.running, *self.renewed})
        since = {name: now - stage.began for name, stage in self.running.items()}
        took = {name: self.seconds[name] for name, how in self.well.items() if how.how == "run"}
        left = (
            None
            if self.signals
            else seconds_left(plan.stages, self.foretold, took, since, may, plan.slots, plan.share)
        )
        done = len(self.well)
        total = done + len(self.running) + len(may)
        self.watch(News(line, done, total, tuple(self.running), bool(self.signals), left))

    def tell_of_ending(self) -> None:
        """Say so once, when the run is to end."""
        line = "" if self.ending else f"ending: {', '.join(self.running)}"
        self.ending = True
        stop = "stops" if len(self.running) == 1 else "stop"
        self.tell(
            line and f"{line} {stop}, and what is finished is kept (Ctrl-C again ends at once)"
        )

    def conclude(self) -> dict[str, float]:
        """Seconds by stage. Raises KeyboardInterrupt where the run was asked to end, UserError
        where a stage failed, after a line for each that did.
        """
        for ended in self.failed.values():
            self.watch(News(f"error: {ended.why}"))
        if self.signals:
            raise KeyboardInterrupt(
                "interrupted: nothing finished was lost; run the same command again to go on"
            )
        if self.failed:
            count = f"{len(self.failed)} {'stage' if len(self.failed) == 1 else 'stages'} failed"
            raise UserError(f"{count}; {self.left_undone()}")
        return self.seconds

    def left_undone(self) -> str:
        """Which stages were not run, and why, in words."""
        names = [name for name in self.plan.stages if name in self.not_run]
        more = [f"{len(names) - SHOWN_NAMES} more"] if len(names) > SHOWN_NAMES + 1 else []
        shown = ", ".join([*names[: SHOWN_NAMES if more else None], *more])
        if any(ended.of_machine for ended in self.failed.values()):
            return (
                f"others would fail likewise, so nothing more was started: {shown or 'no others'}"
            )
        return (
            f"not run, because they need what failed: {shown}"
            if names
            else "all else is up to date"
        )
