"""`gpt1 plan`: every stage's work, measured and estimated paces, and what comes of them for this
machine and for others by name.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gpt1.base.cores import cores, cpu_name
from gpt1.base.errors import UserError
from gpt1.params.schema import Params
from gpt1.pipeline.graph import expand, read_graph
from gpt1.pipeline.plan import estimate, formulas, here, knobs, machines
from gpt1.pipeline.plan.estimate import Pace
from gpt1.pipeline.plan.work import Work, work_of
from gpt1.pipeline.schedule import Share, Slots, Stage, concerned, shares
from gpt1.pipeline.slots import find_slots, memory_bytes, training_bytes
from gpt1.pipeline.walltime import wall_seconds
from gpt1.train import launch, speed

TRAININGS = ("pretrain", "finetune")


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
    bears = int(
        memory_bytes() // training_bytes(params, launch.MICRO_BATCH_TOKENS["cpu"])
    )  # as lanes_of_cpu, of other parameters
    return machine, *find_slots(max(1, min(cores(), bears)), True)


class Paces(NamedTuple):
    """What was measured, by (kind, network): paces, memory in bytes where whole updates were seen;
    the limit of a matrix product in operations a second, and power in watts, None where nothing
    tells.
    """

    paces: dict[tuple[str, str], Pace]
    peaks: dict[tuple[str, str], float]
    matmul_flops: float
    watts: float | None


def measured_paces(
    works: Sequence[Work], params: Params, share: Mapping[str, Share], slots: Slots, fits: bool
) -> Paces:
    """The pace of each kind of training of each network: measured where it fits into memory, else
    from the limit. Raises UserError.
    """
    [limit] = here.in_processes(
        [{"limit": params.pretrain.precision}], share["pretrain@transformer"], slots, lambda: None
    )
    found = Paces({}, {}, limit["matmul_flops"], None)
    most = here.LONGEST_UPDATE_SECONDS * knobs.CPU_SHARE * found.matmul_flops
    for kind in TRAININGS:
        own = [work for work in works if work.kind == kind and work.updates]
        found.paces.update({(kind, work.name): here.limit_pace(found.matmul_flops) for work in own})
        for jobs in rounds(
            here.jobs_of(kind, own, params, most) if fits else [],
            slots,
            share[own[0].stage] if own else None,
        ):
            answers, watts = here.watched(
                partial(here.in_processes, jobs, share[own[0].stage], slots)
            )
            found = found._replace(watts=max(found.watts or 0.0, watts or 0.0) or None)
            for name in {job["network"]: None for job in jobs}:
                of_network = [place for place, job in enumerate(jobs) if job["network"] == name]
                work = max(
                    (one for one in own if one.name == name),
                    key=lambda one: one.flops / one.updates,
                )
                one = here.measured(
                    jobs[of_network[0]], [answers[place] for place in of_network], work, params
                )
                found.paces[kind, name] = here.pace_of(one)
                if one.whole:
                    found.peaks[kind, name] = one.peak_bytes
    return found


def rounds(
    jobs: list[dict[str, Any]], slots: Slots, share: Share | None
) -> list[list[dict[str, Any]]]:
    """The jobs as they run side by side: on a CPU as many as a run would have; where there are
    fewer lanes than jobs, one by one.
    """
    lanes = slots.lanes // share.lanes if share and share.lanes and not slots.devices else 1
    return (
        [[jobs[place % len(jobs)] for place in range(lanes)]]
        if lanes >= len(jobs) > 0
        else [[job] for job in jobs]
    )


def on_devices(pace: Pace, work: Work, count: int) -> Pace:
    """The pace of one device made that of several that share each update."""
    if count < 2 or work.network is None:
        return pace
    exchanged = formulas.all_reduce_seconds(
        formulas.WEIGHT_BYTES * formulas.parameters(work.network),
        count,
        machines.NAMED[1].link_bytes_per_second,
    )
    return Pace(
        pace.update + exchanged, pace.flop / count, pace.scored_flop / count, pace.first, False
    )


def make_plan(values: Mapping[str, Any], params: Params, active: bool, measure: bool) -> Plan:
    """The plan of a run with these values, checked as `params`; `active`: they are those of
    params.yaml. Raises UserError.
    """
    stages = expand(values)
    fresh: Collection[str] = fresh_stages(stages) if active else ()
    works = {name: work_of(stage, params, fresh) for name, stage in stages.items()}
    machine, slots, threads = slots_here(params)
    share, room, slowness = (
        shares(stages, slots, threads),
        machines.room_here(),
        machines.python_seconds() / knobs.REFERENCE_PYTHON_SECONDS,
    )
    beside = (
        1
        if slots.devices
        else max(
            (slots.lanes // one.lanes for name, one in share.items() if stages[name].trains),
            default=1,
        )
    )
    devices = max(1, len(slots.devices))

    def bytes_of(work: Work) -> float:
        tokens = machine.micro_batch and machine.micro_batch * round(work.length * work.sequences)
        return estimate.process_bytes(
            work, params, machine.device, tokens, devices if work.kind == "pretrain" else 1
        )

    most = max(map(bytes_of, works.values()))
    fits = measure and most * beside <= (room.device_memory if slots.devices else room.memory)
    found = measured_paces(list(works.values()), params, share, slots, fits)
    named = {
        hardware.name: shares(stages, hardware.slots, hardware.cores) for hardware in machines.NAMED
    }
    planned = {}
    for name, work in works.items():
        key = ("pretrain" if work.kind == "score" else work.kind, work.name)
        pace = on_devices(found.paces[key], work, share[name].devices) if work.network else None
        seen = work.kind != "score" and key in found.peaks
        planned[name] = Planned(
            work,
            estimate.seconds(work, pace, slowness, cores()),
            bool(pace and pace.measured),
            found.peaks[key] if seen else bytes_of(work),
            seen,
            {
                hardware.name: estimate.data_sheet_seconds(
                    work, hardware, named[hardware.name][name], slowness
                )
                for hardware in machines.NAMED
            },
        )
    own = {name: one.seconds for name, one in planned.items()}
    wall = {"": wall_seconds(stages, own, slots, share)} | {
        hardware.name: wall_seconds(
            stages,
            {name: one.elsewhere[hardware.name] for name, one in planned.items()},
            hardware.slots,
            named[hardware.name],
        )
        for hardware in machines.NAMED
    }
    left = {name: stage for name, stage in stages.items() if name not in fresh}
    return Plan(
        str(values["profile"]),
        planned,
        wall,
        wall_seconds(left, own, slots, share) if fresh else None,
        found.matmul_flops,
        found.watts,
        beside,
        f"{devices} x GPU" if slots.devices else cpu_name(),
        room,
        max(estimate.process_bytes(work, params, "cuda", None, 1) for work in works.values()),
        speed.compiler() is None
        and pays_to_compile(works["pretrain@transformer"], params, machine),
    )


def pays_to_compile(work: Work, params: Params, machine: launch.Machine) -> bool:
    """Whether a pre-training is long enough here."""
    assert work.network is not None
    parameters = formulas.parameters(work.network)
    return speed.worth_compiling(params.pretrain, machine, parameters, round(work.tokens)) != "no"
