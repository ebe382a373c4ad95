"""`gpt1 plan`: every stage's work, measured and estimated paces, and what comes of them for this
machine and for others by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpt1.base.cores import cores, cpu_name
from gpt1.base.errors import UserError
from gpt1.params.schema import Params
from gpt1.pipeline.graph import expand, read_graph
from gpt1.pipeline.plan import benchmark, estimate, formulas, knobs, machines
from gpt1.pipeline.plan.work import Work, work_of
from gpt1.pipeline.schedule import Slots, Stage, concerned, shares
from gpt1.pipeline.slots import find_slots, memory_bytes, training_bytes
from gpt1.pipeline.walltime import wall_seconds
from gpt1.train import launch, speed


@dataclass(frozen=True)
class Planned:
    """What one stage will take here (`measured`: whether at a measured pace), and seconds on other
    machines by their names.
    """

    work: Work
    seconds: float
    measured: bool
    memory_bytes: float
    memory_measured: bool
    elsewhere: dict[str, float]


@dataclass(frozen=True)
class Plan:
    """A whole plan. wall_seconds: end to end by machine, "" this one; left_seconds: of what is out
    of date; watts: None if unknown; beside: trainings side by side here; elsewhere_bytes: the most
    memory that a device takes; uncompiled: pre-training would be compiled, were there a compiler.
    """

    profile: str
    stages: dict[str, Planned]
    wall_seconds: dict[str, float]
    left_seconds: float | None
    matmul_flops: float
    watts: float | None
    beside: int
    device: str
    room: machines.Room
    elsewhere_bytes: float
    uncompiled: bool


def make_plan(values: Mapping[str, Any], params: Params, active: bool, measure: bool) -> Plan:
    """The plan of a run with these values, checked as `params`; `active`: they are those of
    params.yaml. Raises UserError.
    """
    stages = expand(values)
    fresh = fresh_stages(stages) if active else set()
    works = {name: work_of(stage, params, fresh) for name, stage in stages.items()}
    machine, slots, threads = slots_here(params)
    share, room, devices = shares(stages, slots, threads), machines.room_here(), len(slots.devices)
    lanes = [share[name].lanes for name, stage in stages.items() if stage.trains]
    beside = 1 if devices else slots.lanes // min(lanes, default=slots.lanes)

    def bytes_of(work: Work) -> float:
        tokens = machine.micro_batch and machine.micro_batch * round(work.length * work.sequences)
        processes = max(1, devices) if work.kind == "pretrain" else 1
        return estimate.process_bytes(work, params, machine.device, tokens, processes)

    most = max(map(bytes_of, works.values()))
    fits = measure and most * beside <= (room.device_memory if devices else room.memory)
    found = benchmark.measure(list(works.values()), params, share, slots, fits)
    slowness = machines.python_seconds() / knobs.REFERENCE_PYTHON_SECONDS
    named = {one.name: shares(stages, one.slots, one.cores) for one in machines.NAMED}
    planned = {}
    for name, work in works.items():
        key = ("pretrain" if work.kind == "score" else work.kind, work.name)
        pace = found.paces[key] if work.network else None
        if pace and work.network and share[name].devices > 1:
            pace = pace.shared(share[name].devices, work.network)
        seen = work.kind != "score" and key in found.peaks
        planned[name] = Planned(
            work,
            estimate.seconds(work, pace, slowness, cores()),
            bool(pace and pace.measured),
            found.peaks[key] if seen else bytes_of(work),
            seen,
            {
                one.name: estimate.data_sheet_seconds(work, one, named[one.name][name], slowness)
                for one in machines.NAMED
            },
        )
    own = {name: one.seconds for name, one in planned.items()}
    wall = {"": wall_seconds(stages, own, slots, share)}
    for one in machines.NAMED:
        there = {name: stage.elsewhere[one.name] for name, stage in planned.items()}
        wall[one.name] = wall_seconds(stages, there, one.slots, named[one.name])
    left = {name: stage for name, stage in stages.items() if name not in fresh}
    return Plan(
        str(values["profile"]),
        planned,
        wall,
        wall_seconds(left, own, slots, share) if fresh else None,
        found.matmul_flops,
        found.watts,
        beside,
        f"{devices} x GPU" if devices else cpu_name(),
        room,
        max(estimate.process_bytes(work, params, "cuda", None, 1) for work in works.values()),
        speed.compiler() is None
        and pays_to_compile(works["pretrain@transformer"], params, machine),
    )


def pays_to_compile(work: Work, params: Params, machine: launch.Machine) -> bool:
    """Whether a pre-training is long enough here; imported weights are none."""
    if work.network is None:
        return False
    parameters = formulas.parameters(work.network)
    return speed.worth_compiling(params.pretrain, machine, parameters, round(work.tokens)) != "no"


def fresh_stages(stages: Mapping[str, Stage]) -> set[str]:
    """The stages whose outputs are up to date with params.yaml as it is; none where DVC cannot tell
    now.
    """
    try:
        known, chosen = read_graph(())
    except UserError:
        return set()
    return (set(chosen) - concerned(known, chosen)) & stages.keys()


def slots_here(params: Params) -> tuple[launch.Machine, Slots, int | None]:
    """The slots that `gpt1 run` would have with these parameters, and the threads of a process that
    has the machine for itself.
    """
    machine = launch.read_machine()
    if machine.device == "cuda" or machine.processes > 1:
        return machine, *find_slots(None, True)
    one = training_bytes(params, launch.MICRO_BATCH_TOKENS["cpu"])
    bears = int(memory_bytes() // one)  # as lanes_of_cpu, of other parameters
    return machine, *find_slots(max(1, min(cores(), bears)), True)
