"""How long a run will yet take: from what stages took before, or `gpt1 plan` says they will, and
how this run compares with that; side by side in slots, started as `gpt1 run` starts them.
"""

import heapq
from collections.abc import Collection, Mapping
from contextlib import suppress
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
ENOUGH_SECONDS = (
    20.0  # of expected work done, before this run's pace is worth more than the last one's
)
MOST_TIMES = 5.0
LEAST_LEFT = 0.05  # of a stage that has already taken longer than it was to take


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
    seconds = {
        name: before[name] * pace(stages, before, took, stages[name].trains) for name in before
    } | expected({name: stage for name, stage in stages.items() if name not in before}, took)
    if not {*running, *waiting} <= seconds.keys():
        return None
    left = {
        name: max(seconds[name] - since, LEAST_LEFT * seconds[name])
        for name, since in running.items()
    }
    left |= {name: seconds[name] for name in waiting}
    return wall_seconds({name: stages[name] for name in stages if name in left}, left, slots, share)


def pace(
    stages: Mapping[str, Stage],
    before: Mapping[str, float],
    took: Mapping[str, float],
    trains: bool,
) -> float:
    """How many times as long as expected the stages that train have taken in this run, or those
    that do not: that the many short ones take longer to start beside others says nothing of
    trainings.
    """
    known = [name for name in took if name in before and stages[name].trains == trains]
    done = sum(before[name] for name in known)
    return (
        min(max(sum(took[name] for name in known) / done, 1 / MOST_TIMES), MOST_TIMES)
        if done > ENOUGH_SECONDS
        else 1.0
    )


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
