"""Which stages run next, side by side, and with how many threads: pure functions of DVC's graph.

A result can differ in its last bits with the number of threads, so threads follow from the graph,
the slots and the cores alone, never from what happens to run when. On a CPU a slot is a lane: of
the stages of one group (`finetune` of `finetune@cola`) that train, as many as there are lanes run
side by side and share the cores; a group of one has all of them, and so runs alone; every other
stage takes one lane. Where there are GPUs, a stage that trains takes one of them, pre-training all,
and every other stage a lane of the CPU. A download waits for others' machines and takes no lane:
all of them run side by side.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gpt1.base.errors import UserError, perhaps
from gpt1.params.rows import place_of

NO_RESULTS = (  # the stage that reads all of params.yaml; what it writes depends on none of it
    "check"
)


@dataclass(frozen=True)
class Stage:
    """A stage of DVC's graph: the stages that it needs, the paths that it reads and writes; whether
    it trains, and is out of date.
    """

    name: str
    needs: frozenset[str]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    trains: bool = False
    stale: bool = False


@dataclass(frozen=True)
class Slots:
    """What stages share: lanes of the CPU; devices, as CUDA_VISIBLE_DEVICES names them (none:
    stages train on the CPU).
    """

    lanes: int
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Allocation:
    """What a stage has of the machine: lanes or devices that it fills, threads of each of its
    processes (None: as the environment says).
    """

    lanes: int
    threads: int | None
    devices: int = 0


def group(name: str) -> str:
    """`finetune` for `finetune@cola`."""
    return name.partition("@")[0]


def subject(name: str) -> str:
    """`finetune@cola` for `finetune@cola-seed-0`, and for itself."""
    verb, at, item = name.partition("@")
    return f"{verb}{at}{place_of(item).split('/')[0]}"


def choose(stages: Mapping[str, Stage], targets: Collection[str]) -> list[str]:
    """Names of the targets (stages; groups; finetune@cola for all its seeds' stages; none: all) and
    of all that they need, in the graph's order. Raises UserError for others.
    """
    parts = {name: {name, group(name), subject(name)} for name in stages}
    known = set[str]().union(*parts.values())
    for target in targets:
        if target not in known:
            raise UserError(
                f"no stage {target!r}{perhaps(target, known)} (expected one of"
                f" {', '.join(dict.fromkeys(map(group, stages)))}, or one item of a group, as"
                " finetune@cola)"
            )
    waiting = [name for name in stages if not targets or parts[name] & {*targets}]
    chosen = set()
    while waiting:
        name = waiting.pop()
        if name not in chosen:
            chosen.add(name)
            waiting += stages[name].needs
    return [name for name in stages if name in chosen]


def concerned(stages: Mapping[str, Stage], names: Iterable[str]) -> set[str]:
    """Those of `names` that are out of date or come after one that is: all that may have to run."""
    names = set(names)

    @cache
    def touched(name: str) -> bool:
        return name in names and (
            stages[name].stale or any(touched(need) for need in stages[name].needs)
        )

    return {name for name in names if touched(name)}


def after(stages: Mapping[str, Stage], name: str, among: Collection[str]) -> set[str]:
    """Those of `among` that need a stage, be it through others of them."""

    @cache
    def needs_it(other: str) -> bool:
        return any(
            need == name or (need in among and needs_it(need)) for need in stages[other].needs
        )

    return {other for other in among if needs_it(other)}


def may_run(
    stages: Mapping[str, Stage], waiting: Collection[str], moving: Collection[str]
) -> set[str]:
    """Those of `waiting` that are out of date, or come after one that is or after one of `moving`,
    whose results may be others now.
    """
    moved = {*moving} - {NO_RESULTS}

    @cache
    def may(name: str) -> bool:
        return stages[name].stale or any(
            need in moved or (need in waiting and need != NO_RESULTS and may(need))
            for need in stages[name].needs
        )

    return {name for name in waiting if may(name)}


def urgencies(stages: Mapping[str, Stage], seconds: Mapping[str, float]) -> dict[str, float]:
    """For each stage, seconds along the longest path from its start to an end of the graph: what is
    longest starts first.

    A stage of which nothing is known is taken to last as long as the longest of its group, or else
    a second, ten where it trains.
    """
    after: dict[str, list[str]] = {name: [] for name in stages}
    for stage in stages.values():
        for need in stage.needs & stages.keys():
            after[need].append(stage.name)
    longest: dict[str, float] = {}
    for name, lasted in seconds.items():
        longest[group(name)] = max(lasted, longest.get(group(name), 0.0))

    @cache
    def urgency(name: str) -> float:
        own = (
            seconds.get(name) or longest.get(group(name)) or (10.0 if stages[name].trains else 1.0)
        )
        return own + max(map(urgency, after[name]), default=0.0)

    return {name: urgency(name) for name in stages}


def shares(stages: Mapping[str, Stage], slots: Slots, threads: int | None) -> dict[str, Allocation]:
    """What each stage has: `threads` are those of one process that has the machine for itself, None
    where the environment sets them.
    """
    trained = [group(stage.name) for stage in stages.values() if stage.trains]

    def share(stage: Stage) -> Allocation:
        if group(stage.name) == "download":
            return Allocation(0, None)
        if slots.devices and stage.trains:
            return Allocation(
                0,
                threads and max(1, threads // len(slots.devices)),
                len(slots.devices) if group(stage.name) == "pretrain" else 1,
            )
        if threads is None or slots.lanes == 1:
            return Allocation(1, None)
        beside = min(slots.lanes, trained.count(group(stage.name))) if stage.trains else slots.lanes
        return Allocation(slots.lanes // beside, max(1, threads // beside))

    return {name: share(stage) for name, stage in stages.items()}


def startable(
    ready: Sequence[str], share: Mapping[str, Allocation], free: Slots
) -> list[tuple[str, tuple[str, ...]]]:
    """The first of `ready` (the most urgent first) that fit into what is free, with the devices of
    each.

    One that has to wait is not overtaken by another that wants the same kind of slot.
    """
    start, lanes, devices = [], free.lanes, free.devices
    for name in ready:
        if 0 < share[name].devices <= len(devices):
            start.append((name, devices[: share[name].devices]))
            devices = devices[share[name].devices :]
        elif share[name].devices:
            devices = ()
        elif share[name].lanes <= lanes:
            start.append((name, ()))
            lanes -= share[name].lanes
        else:
            lanes = 0
    return start
