"""How long a run will yet take: from what stages took before, or `gpt1 plan` says they will, and
how this run compares with that; side by side in slots, started as `gpt1 run` starts them.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from math import exp
from statistics import mean
from typing import Any, NamedTuple

from gpt1.base.files import LOGS, parse_json, read_json, write_json
from gpt1.pipeline.job import log_of
from gpt1.pipeline.schedule import Allocation, Slots, Stage, group, startable, urgencies


def wall_seconds(
    stages: Mapping[str, Stage],
    seconds: Mapping[str, float],
    slots: Slots,
    share: Mapping[str, Allocation],
) -> float:
    """Seconds until the last of `stages` has ended; stages without seconds take none."""
    urgency = urgencies(stages, seconds)
    waiting, running = set(stages), list[tuple[float, str, tuple[str, ...]]]()
    lanes, devices, now, ended = slots.lanes, slots.devices, 0.0, set[str]()
    while waiting or running:
        ready = sorted(
            (
                one
                for one in stages
                if one in waiting and not stages[one].needs & stages.keys() - ended
            ),
            key=lambda name: -urgency[name],
        )
        for name, given in startable(ready, share, Slots(lanes, devices)):
            heapq.heappush(running, (now + seconds.get(name, 0.0), name, given))
            waiting.discard(name)
            lanes, devices = (
                lanes - share[name].lanes,
                tuple(device for device in devices if device not in given),
            )
        assert running, f"{sorted(waiting)} can never start: they take more than there is"
        now, name, given = heapq.heappop(running)
        ended.add(name)
        lanes, devices = lanes + share[name].lanes, (*devices, *given)
    return now


SECONDS = LOGS / "run" / "seconds.json"  # how long each stage took when it last ran
PLAN = LOGS / "plan.json"  # what gpt1 plan foretold of params.yaml
SHORT_SECONDS = 3.0  # a stage that trains nothing, and of which nothing is known
DOUBT = 0.05  # of a kind's expected work: as much done counts as much as what was expected of it
LEAST_DOUBT_SECONDS = 10.0
MOST_TIMES = 3.0  # what one kind of stage tells of another at the most
LEAST_LEFT = 0.1  # of what a stage has taken that was to have ended by now
PATIENCE = 0.1  # of the time left: within about as much a new estimate is believed


def last_seconds() -> dict[str, float]:
    """How long each stage took when it last ran, as far as that was written down."""
    try:
        return {
            str(name): float(lasted)
            for name, lasted in parse_json(SECONDS.read_text(encoding="utf-8")).items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def note_seconds(name: str, took: float) -> None:
    """Write down how long a stage took; a full disk is no reason to stop."""
    with suppress(OSError):
        write_json(SECONDS, last_seconds() | {name: round(took, 1)})


class StageFacts(NamedTuple):
    """Seconds that a stage took, when it ended (seconds since 1970), its peak memory in bytes (0:
    not written down).
    """

    seconds: float
    ended: float
    memory_bytes: float


def memory_of(stage: str) -> float:
    """Peak memory in bytes that a stage wrote down beside its speed; 0 for none."""
    verb, _, item = stage.partition("@")
    try:
        return float(read_json(LOGS / verb / f"{item}-speed.json")["peak_memory_bytes"])
    except (OSError, ValueError, KeyError):
        return 0.0


def stage_facts(plan: Mapping[str, Any]) -> dict[str, StageFacts]:
    """What each stage of a plan took that `gpt1 run` has run since it was made."""
    seconds, found = last_seconds(), {}
    for name in plan["stages"]:
        log = log_of(name)
        if name not in seconds or not log.is_file() or log.stat().st_mtime <= plan["made"]:
            continue
        if "Running stage '" in log.read_text(encoding="utf-8", errors="replace"):
            found[name] = StageFacts(seconds[name], log.stat().st_mtime, memory_of(name))
    return found


def foretold_seconds() -> dict[str, float]:
    """What each stage is to take: what it took last, or what a plan says that was made since."""
    took = last_seconds()
    try:
        stages = parse_json(PLAN.read_text(encoding="utf-8"))["stages"]
        planned = {str(name): float(stage["seconds"]) for name, stage in stages.items()}
        newer = not took or PLAN.stat().st_mtime > SECONDS.stat().st_mtime
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return took
    return took | planned if newer else planned | took


def expected(stages: Mapping[str, Stage], foretold: Mapping[str, float]) -> dict[str, float]:
    """Seconds of every stage: its own, or the mean of its group; a stage that trains and of whose
    group nothing is known is left out.
    """
    groups: dict[str, list[float]] = {}
    for name, seconds in foretold.items():
        groups.setdefault(group(name), []).append(seconds)
    found = {}
    for name, stage in stages.items():
        if name in foretold or group(name) in groups or not stage.trains:
            found[name] = foretold.get(name) or (
                mean(groups[group(name)]) if group(name) in groups else SHORT_SECONDS
            )
    return found


def seconds_left(
    stages: Mapping[str, Stage],
    foretold: Mapping[str, float],
    took: Mapping[str, float],
    running: Mapping[str, float],
    waiting: Collection[str],
    slots: Slots,
    share: Mapping[str, Allocation],
) -> float | None:
    """Seconds until the last stage has ended; None where too little is known.

    `took`: seconds of the stages that have run; `running`: those at work, and since how many
    seconds; `waiting`: those that may run yet.
    """
    before = expected(stages, foretold)
    overdue = {name: since for name, since in running.items() if since > before.get(name, since)}
    times = paces(stages, before, {**took, **overdue})
    seconds = {name: before[name] * times[name] for name in before}
    seconds |= expected({name: stages[name] for name in stages.keys() - before.keys()}, took)
    if not {*running, *waiting} <= seconds.keys():
        return None
    left = {
        name: max(seconds[name] - since, LEAST_LEFT * max(seconds[name], since))
        for name, since in running.items()
    }
    left |= {name: seconds[name] for name in waiting}
    return wall_seconds({name: stages[name] for name in stages if name in left}, left, slots, share)


def paces(
    stages: Mapping[str, Stage], before: Mapping[str, float], took: Mapping[str, float]
) -> dict[str, float]:
    """How many times as long as expected each stage takes in this run, by those of its group that
    have run; as far as these are few, by all that train, or all that do not.
    """

    def times(kind: Callable[[str], object], prior: Mapping[str, float]) -> dict[str, float]:
        whole, done, real = (defaultdict[object, float](float) for _ in range(3))
        for name, seconds in before.items():
            whole[kind(name)] += seconds
            if name in took:
                done[kind(name)] += seconds
                real[kind(name)] += took[name]
        doubt = {one: max(DOUBT * whole[one], LEAST_DOUBT_SECONDS) for one in whole}
        return {
            name: (prior[name] * doubt[kind(name)] + real[kind(name)])
            / (doubt[kind(name)] + done[kind(name)])
            for name in before
        }

    alike = times(lambda name: stages[name].trains, dict.fromkeys(before, 1.0))
    return times(
        group, {name: min(max(one, 1 / MOST_TIMES), MOST_TIMES) for name, one in alike.items()}
    )


class Countdown:
    """The time left as it is told: a new estimate moves the end of the run little by little, so
    that what one stage took does not make it jump.
    """

    def __init__(self) -> None:
        self.at = 0.0
        self.end: float | None = None

    def told(self, now: float, estimate: float | None) -> float | None:
        """Seconds left to tell at `now` (seconds) where `estimate` seconds are; None for None."""
        if estimate is None:
            self.end = None
        elif self.end is None:
            self.end = now + estimate
        else:
            kept = exp((self.at - now) / max(PATIENCE * estimate, 1.0))
            self.end = kept * self.end + (1.0 - kept) * (now + estimate)
        self.at = now
        return None if self.end is None else max(self.end - now, 0.0)


def in_words(seconds: float) -> str:
    """A time as a person says it of what is not known exactly."""
    if seconds < 90:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return (
        f"{minutes // 60} h {minutes % 60:02d} min"
        if minutes < 1440
        else f"{minutes / 1440:.1f} days"
    )
