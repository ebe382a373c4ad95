"""`gpt1 plan`: which parameters, every stage's work at measured and estimated paces, and what comes
of them for this machine and for others by name.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpt1.base.cores import cores, cpu_name, nvidia_smi
from gpt1.base.errors import UserError, perhaps
from gpt1.base.files import write_json
from gpt1.params.profile import present_sources, requested, without_absent
from gpt1.params.schema import Params, validate
from gpt1.pipeline.forecast import PLAN, wall_seconds
from gpt1.pipeline.graph import expand, read_graph
from gpt1.pipeline.plan import estimate, formulas
from gpt1.pipeline.plan.benchmark import benchmark
from gpt1.pipeline.plan.facts import unknown
from gpt1.pipeline.plan.fit import fit_lines
from gpt1.pipeline.plan.machines import NAMED, room_here
from gpt1.pipeline.plan.table import CostEstimate, StageEstimate, as_json, brief_line, lines_of
from gpt1.pipeline.plan.work import StageWork, work_of
from gpt1.pipeline.schedule import Stage, concerned, shares
from gpt1.pipeline.slots import find_slots
from gpt1.train import launch, speed


def read_prices(given: Sequence[str]) -> dict[str, float]:
    """{machine: price of an hour}, "" for this one, from `3` (every machine) or `MACHINE=3`. Raises
    UserError.
    """
    names = [hardware.name for hardware in NAMED]
    prices: dict[str, float] = {}
    for one in given:
        name, _, price = one.rpartition("=")
        try:
            prices |= dict.fromkeys([name] if name else ["", *names], float(price))
        except ValueError:
            raise UserError(
                f"--price {one}: expected a price an hour as 2.5, or of one machine as '8 x"
                " H100=24'"
            ) from None
        if name and name not in names:
            raise UserError(
                f"--price {one}: expected one of {', '.join(names)} before the =, found"
                f" {name}{perhaps(name, names)}"
            )
    return prices


def plan_and_show(
    profile: str | None,
    overrides: Sequence[str],
    prices: Sequence[str],
    file: Path | None,
    measure: bool,
    brief: bool,
    hours: float | None = None,
) -> tuple[Params, set[str]]:
    """Plan a profile, or (None) params.yaml, with overrides; that of params.yaml as it is is kept
    for `--after`. `brief`: say in one line how long it takes here; `hours`: whether it fits into so
    many of one GPU, or what to cut. Gives what was planned, and the stages whose outputs are up to
    date with it. Raises UserError.
    """
    if hours is not None and (profile is None or hours <= 0):
        raise UserError(
            "--hours: expected a profile and a number above 0: gpt1 plan evening --hours 8"
        )
    values, by_machine = requested(profile, overrides, None), read_prices(prices)
    present, absent = present_sources(), list[str]()
    if profile is not None and "books" in present:
        whole, values = values, without_absent(values, present)
        absent = [name for name in whole["tasks"] if name not in values["tasks"]]
    if measure and not brief:
        print(
            "measuring a few updates of each network, for some 20 s; for figures that hold, let"
            " nothing else run (--no-measure: estimate)",
            file=sys.stderr,
            flush=True,
        )

    def tell(what: str) -> None:
        if not brief:
            print(f"  {what}", file=sys.stderr, flush=True)

    active, params = profile is None and not overrides, validate(values)
    fresh = fresh_stages(expand(values)) if active else set()
    plan, missing = estimate_costs(values, params, fresh, measure, tell), list[str]()
    folders = {name: params.sources[name].folder for name in params.tasks}
    if params.sources["books"].folder == "raw" and "books" not in present:
        missing.append(
            "nothing lies in data/raw yet: planned for BooksCorpus and all official files (gpt1"
            " profile --data FOLDER links yours)"
        )
    if assumed := unknown(folders, params.zero_shot):
        missing.append(
            f"nothing is known of {', '.join(assumed)} until encoded; a middling task is assumed"
            " (gpt1/pipeline/plan/facts.py takes a row)"
        )
    if absent:
        missing.append(f"left out, for data/raw lacks them: {', '.join(absent)}")
    for line in [brief_line(plan)] if brief else [*lines_of(plan, by_machine), *missing]:
        print(line)
    if hours is not None and profile is not None:
        print("\n".join(fit_lines(profile, overrides, values, hours, by_machine)))
    for path in ([PLAN] if active else []) + ([file] if file else []):
        write_json(path, as_json(plan, by_machine, time.time()))
    return params, fresh


def estimate_costs(
    values: Mapping[str, Any],
    params: Params,
    fresh: set[str],
    measure: bool,
    tell: Callable[[str], None] = lambda line: None,
) -> CostEstimate:
    """What a run with these values, checked as `params`, costs; `fresh` are the stages whose
    outputs are up to date with them. Raises UserError.
    """
    stages = expand(values)
    works = {name: work_of(stage, params, fresh) for name, stage in stages.items()}
    machine, (slots, threads) = launch.read_machine(), find_slots(None, True, params)
    share, room, devices = shares(stages, slots, threads), room_here(), len(slots.devices)
    lanes = [share[name].lanes for name, stage in stages.items() if stage.trains]
    beside = 1 if devices else slots.lanes // min(lanes, default=slots.lanes)

    def bytes_of(work: StageWork) -> float:
        processes = max(1, devices) if work.kind == "pretrain" else 1
        return estimate.process_bytes(work, params, machine.device, machine.micro_batch, processes)

    most = max(map(bytes_of, works.values()))
    fits = measure and most * beside <= (room.device_memory if devices else room.memory)
    seen = benchmark(list(works.values()), params, share, slots, fits, tell)
    slowness = estimate.python_seconds() / estimate.REFERENCE_PYTHON_SECONDS
    shares_there = {one.name: one.shares(stages) for one in NAMED}
    micro_batches = {
        one.name: estimate.fitting_micro_batch(works.values(), params, one) for one in NAMED
    }

    def estimated(name: str, work: StageWork) -> StageEstimate:
        kind = "pretrain" if work.kind == "score" else work.kind
        pace = seen.paces[kind, work.name] if work.network else None
        if pace and share[name].devices > 1:  # several share each update
            pace = pace._replace(flop=pace.flop / share[name].devices, measured=False)
        peak = seen.peaks.get((work.kind, work.name))
        there = {
            one.name: estimate.data_sheet_seconds(
                work, one, shares_there[one.name][name], 1.0, micro_batches[one.name]
            )
            for one in NAMED
        }
        return StageEstimate(
            work,
            estimate.seconds(work, pace, slowness, cores()),
            bool(pace and pace.measured),
            peak or bytes_of(work),
            peak is not None,
            there,
        )

    planned = {name: estimated(name, work) for name, work in works.items()}
    here = {name: one.seconds for name, one in planned.items()}
    wall = {"": wall_seconds(stages, here, slots, share)}
    for one in NAMED:
        there = {name: stage.elsewhere[one.name] for name, stage in planned.items()}
        wall[one.name] = wall_seconds(stages, there, one.slots, shares_there[one.name])
    left = {name: stage for name, stage in stages.items() if name not in fresh}
    return CostEstimate(
        str(values["profile"]),
        planned,
        wall,
        wall_seconds(left, here, slots, share) if fresh else None,
        seen.matmul_flops,
        (sum(nvidia_smi("power.limit")) or None) if devices else None,
        beside,
        f"{devices} x GPU" if devices else cpu_name(),
        room,
        {name: rows for name, rows in micro_batches.items() if rows},
        speed.compiler() is None
        and any(
            pays_to_compile(work, params, machine)
            for work in works.values()
            if work.kind == "pretrain" and work.name == "transformer"
        ),
    )


def pays_to_compile(work: StageWork, params: Params, machine: launch.Machine) -> bool:
    """Whether a pre-training is long enough here; imported weights are none."""
    if work.network is None:
        return False
    parameters, tokens = formulas.parameters(work.network), round(work.tokens / work.networks)
    return speed.worth_compiling(params.pretrain, machine, parameters, tokens) != "no"


def fresh_stages(stages: Mapping[str, Stage]) -> set[str]:
    """The stages whose outputs are up to date with params.yaml as it is; none where DVC cannot tell
    now.
    """
    try:
        known, chosen = read_graph(())
    except UserError:
        return set()
    return (set(chosen) - concerned(known, chosen)) & stages.keys()
