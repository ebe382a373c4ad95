"""Which stages run next, side by side, and with how many threads: pure functions of DVC's graph.

A result can differ in its last bits with the number of threads, so threads follow from the graph, the lanes and the cores alone, never
from what happens to run when. Of the stages of one group (`finetune` of `finetune@cola`) that train, as many as there are lanes run side
by side and share the cores; a group of one has all of them, and so runs alone. Every other stage takes one lane.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gpt1.errors import UserError


@dataclass(frozen=True)
class Stage:
    """A stage of DVC's graph: the stages whose results it needs, the paths that it reads, whether it trains, whether it is out of date."""

    name: str
    needs: frozenset[str]
    reads: tuple[str, ...] = ()
    trains: bool = False
    stale: bool = False


@dataclass(frozen=True)
class Share:
    """What a stage has of the machine: lanes that it fills, threads of each of its processes (None: as the environment says)."""

    lanes: int
    threads: int | None


def group(name: str) -> str:
    """`finetune` for `finetune@cola`."""
    return name.partition("@")[0]


def choose(stages: Mapping[str, Stage], targets: Collection[str]) -> list[str]:
    """Names of the targets (stages or groups; none: all) and of all that they need, in the graph's order. Raises UserError for others."""
    known = {*stages, *map(group, stages)}
    for target in targets:
        if target not in known:
            near = difflib.get_close_matches(target, sorted(known), 1, 0.5)
            raise UserError(f"no stage {target!r}{f'; did you mean {near[0]}?' if near else ''} "
                            f"(expected one of {', '.join(dict.fromkeys(map(group, stages)))}, or one item of a group, as finetune@cola)")
    waiting = [name for name in stages if not targets or name in targets or group(name) in targets]
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
        return name in names and (stages[name].stale or any(touched(need) for need in stages[name].needs))

    return {name for name in names if touched(name)}


def path_lengths(stages: Mapping[str, Stage]) -> dict[str, int]:
    """For each stage, how many stages the longest path from it to an end of the graph has, itself included."""
    after: dict[str, list[str]] = {name: [] for name in stages}
    for stage in stages.values():
        for need in stage.needs:
            after[need].append(stage.name)

    @cache
    def length(name: str) -> int:
        return 1 + max(map(length, after[name]), default=0)

    return {name: length(name) for name in stages}


def shares(stages: Mapping[str, Stage], lanes: int, threads: int | None) -> dict[str, Share]:
    """What each stage has: `threads` are those of one process that has the machine for itself, None where the environment sets them."""
    trained = [group(stage.name) for stage in stages.values() if stage.trains]

    def share(stage: Stage) -> Share:
        if threads is None or lanes == 1:
            return Share(1, None)
        beside = min(lanes, trained.count(group(stage.name))) if stage.trains else lanes
        return Share(lanes // beside, max(1, threads // beside))

    return {name: share(stage) for name, stage in stages.items()}


def startable(ready: Sequence[str], share: Mapping[str, Share], free: int) -> list[str]:
    """The first of `ready` (the most urgent first) that fit into `free` lanes; one that has to wait is not overtaken."""
    start = []
    for name in ready:
        free -= share[name].lanes
        if free < 0:
            break
        start.append(name)
    return start
