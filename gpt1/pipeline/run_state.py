"""A run's state, whoever starts its stages: which may start now, with which lanes and devices, and
what the end of one means for the others.

`gpt1 run` starts processes by it; in a flow Prefect starts tasks, and each of them gets its lanes
here. Safe to use from several threads.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from functools import cache

from gpt1.base.errors import UserError
from gpt1.base.files import files_under
from gpt1.pipeline.forecast import Countdown, foretold_seconds, note_seconds, seconds_left
from gpt1.pipeline.graph import recorded_outputs
from gpt1.pipeline.job import Ended, log_of
from gpt1.pipeline.progress import News
from gpt1.pipeline.schedule import Allocation, Slots, Stage, after, may_run, startable
from gpt1.pipeline.slots import variables

SHOWN_NAMES = 8


@dataclass(frozen=True)
class Plan:
    """What there is to do: every stage by name, the names of those chosen, of those that may have
    to run, slots, what each stage has of them.
    """

    stages: dict[str, Stage]
    chosen: list[str]
    todo: set[str]
    slots: Slots
    share: dict[str, Allocation]
    urgency: dict[str, float]


def bytes_read(stage: Stage) -> int:
    """Bytes of the data that a stage reads: of stages that are as urgent, the one with most is
    likely to take longest.
    """
    return sum(
        file.stat().st_size
        for file in files_under(read for read in stage.reads if not read.startswith("gpt1"))
    )


class RunState:
    """A plan under way: what waits, what runs (since when, with which devices), what became of the
    others, what is free.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.ending = plan, False
        self.waiting, self.free = set(plan.todo), plan.slots
        self.running = dict[str, tuple[float, tuple[str, ...]]]()
        self.well, self.seconds = dict[str, Ended](), dict[str, float]()
        self.failed, self.not_run = dict[str, Ended](), set[str]()
        self.renewed = set[str]()  # their results may be others now
        self.unread = deque[News]()  # for whoever watches, in the order in which it happened
        self.outputs, self.foretold = recorded_outputs(), foretold_seconds()
        self.countdown = Countdown()
        self.size = cache(bytes_read)
        self.changed = threading.Condition()

    def begin(self) -> dict[str, dict[str, str]]:
        """Start all that fits: variables by stage. What is up to date after all is not tried."""
        with self.changed:
            while needless := {name for name in self._ready() if not self._has_reason(name)}:
                self.waiting -= needless  # what comes after them may be ready now
            fits = self._startable()
            return {name: self._begin(name, devices) for name, devices in fits.items()}

    def turn(self, name: str) -> dict[str, str] | None:
        """Wait until a stage whose needs have ended has its lanes and devices: its variables; None
        where it is not to run. The same again for one that has them.
        """

        def decided() -> bool:
            waits = name in self.waiting and not self.ending
            return not waits or not self._has_reason(name) or name in self._startable()

        with self.changed:
            self.changed.wait_for(decided)
            if name in self.running:
                return variables(self.plan.share[name], self.running[name][1])
            if name not in self.waiting or self.ending:
                return None
            if self._has_reason(name):
                return self._begin(name, self._startable()[name])
            self.waiting.discard(name)
            self.changed.notify_all()
            return None

    def _ready(self) -> list[str]:
        """Those that wait for no other."""
        unfinished = {*self.waiting, *self.running}
        return [
            name
            for name, stage in self.plan.stages.items()
            if name in self.waiting and not stage.needs & unfinished
        ]

    def _has_reason(self, name: str) -> bool:
        """Whether a stage that is ready is to be tried."""
        stage = self.plan.stages[name]
        return stage.stale or bool(stage.needs & self.renewed)

    def _startable(self) -> dict[str, tuple[str, ...]]:
        """The devices of each stage that is ready and fits; the most urgent first."""
        plan = self.plan
        ready = sorted(
            filter(self._has_reason, self._ready()),
            key=lambda name: (-plan.urgency[name], -self.size(plan.stages[name])),
        )
        return dict(startable(ready, plan.share, self.free))

    def _begin(self, name: str, devices: tuple[str, ...]) -> dict[str, str]:
        share = self.plan.share[name]
        left = tuple(device for device in self.free.devices if device not in devices)
        self.free = Slots(self.free.lanes - share.lanes, left)
        self.waiting.discard(name)
        self.running[name] = time.monotonic(), devices
        self.unread.append(self.news())
        self.changed.notify_all()
        return variables(share, devices)

    def end(self, name: str, ended: Ended) -> None:
        """Note what became of a stage, free its place, give up what needs one that failed."""
        with self.changed:
            began, devices = self.running.pop(name, (time.monotonic(), None))
            lasted = time.monotonic() - began
            if devices is not None:
                lanes = self.free.lanes + self.plan.share[name].lanes
                self.free = replace(self.free, lanes=lanes, devices=(*self.free.devices, *devices))
            self.waiting.discard(name)
            if ended.well:
                self._end_well(name, ended, lasted)
            elif not self.ending:
                self.well.pop(name, None)
                self.failed[name] = ended
                stages, waiting = self.plan.stages, self.waiting
                lost = set(waiting) if ended.of_machine else after(stages, name, waiting)
                self.not_run |= lost
                self.waiting -= lost
                self.unread.append(self.news(f"{name}: failed, see {log_of(name)}"))
            self.changed.notify_all()

    def refuse(self, name: str, ended: Ended) -> None:
        """Note a failure of a stage that whoever starts stages tells of, unless it is known why."""
        with self.changed:
            if not {name} & {*self.failed, *self.not_run}:
                self.end(name, ended)

    def _end_well(self, name: str, ended: Ended, lasted: float) -> None:
        self.well[name] = ended
        if ended.how != "unchanged":
            self.seconds[name] = lasted
        if ended.how == "run":
            note_seconds(name, lasted)
        if (now := recorded_outputs().get(name)) is None or now != self.outputs.get(name):
            self.renewed.add(name)
        how = f"{lasted:.0f} s" if ended.how == "run" else ended.how
        self.unread.append(self.news(f"{name}: {how}"))

    def stop(self) -> None:
        """Start nothing more: the run has been asked to end."""
        with self.changed:
            if not self.ending:
                self.ending = True
                stop = "stops" if len(self.running) == 1 else "stop"
                line = f"ending: {', '.join(self.running)} {stop}, and what is finished is kept"
                self.unread.append(self.news(f"{line} (Ctrl-C again ends at once)"))
            self.changed.notify_all()

    def news(self, line: str = "") -> News:
        """How far the run is, with a line or without."""
        with self.changed:
            plan, now = self.plan, time.monotonic()
            may = may_run(plan.stages, self.waiting, {*self.running, *self.renewed})
            since = {name: now - began for name, (began, _) in self.running.items()}
            took = {name: self.seconds[name] for name, how in self.well.items() if how.how == "run"}
            done = len(self.well)
            total = done + len(self.running) + len(may)
            left = None
            if done < total and not self.ending:  # the countdown trails the end
                estimate = seconds_left(
                    plan.stages, self.foretold, took, since, may, plan.slots, plan.share
                )
                left = self.countdown.told(now, estimate)
            return News(line, done, total, tuple(self.running), self.ending, left)

    def conclude(self) -> dict[str, float]:
        """Seconds of the stages that changed. Raises KeyboardInterrupt where the run was asked to
        end, UserError where a stage failed.
        """
        if self.ending:
            raise KeyboardInterrupt(
                "interrupted: nothing finished was lost; run the same command again to go on"
            )
        if self.failed:
            count = f"{len(self.failed)} {'stage' if len(self.failed) == 1 else 'stages'} failed"
            raise UserError(f"{count}; {self._left_undone()}")
        return self.seconds

    def _left_undone(self) -> str:
        """Which stages were not run, and why, in words."""
        names = [name for name in self.plan.stages if name in self.not_run]
        more = [f"{len(names) - SHOWN_NAMES} more"] if len(names) > SHOWN_NAMES + 1 else []
        shown = ", ".join([*names[: SHOWN_NAMES if more else None], *more])
        if any(ended.of_machine for ended in self.failed.values()):
            return (
                f"others would fail likewise, so nothing more was started: {shown or 'no others'}"
            )
        if not names:
            return "all else is up to date"
        return f"not run, because they need what failed: {shown}"
