"""The plan as text and as JSON: a line for each group of stages, totals, what the machine cannot
hold, the paper's own figure; and beside it what the stages took since.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, write_json
from gpt1.pipeline.forecast import PLAN, StageFacts, stage_facts
from gpt1.pipeline.plan import formulas
from gpt1.pipeline.plan.machines import NAMED, Room
from gpt1.pipeline.plan.work import StageWork
from gpt1.pipeline.schedule import group

# Radford's announcement (openai.com, June 2018): a month on eight GPUs; 8 x 30 days x 12 TFLOP/s x
# 0.33 of the peak = 0.96 petaflop-days.
PAPERS_OWN = (
    "the paper's own pre-training: 1 month on 8 GPUs (P6000), 0.96 petaflop-days at 33 % of the"
    " peak (the authors' announcement)"
)
REPORTS = (
    "dev_scores",
    "table2",
    "table3",
    "table4",
    "table5",
    "figure2",
    "curves",
    "claims",
    "scores",
)
ALONE = ("pretrain", "zero_shot")  # groups whose stages have a line each
HEAD = ("stages", "of", "updates", "tokens", "FLOP", "memory", "disk", "this machine")
UNITS = (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60))
PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
OF_STAGE = ("seconds", "measured", "memory_bytes", "memory_measured", "elsewhere")
OF_WORK = ("counted", "updates", "tokens", "flops", "scored_flops", "disk_bytes")


@dataclass(frozen=True)
class StageEstimate:
    """What one stage will take here (`measured`: whether at a measured pace), and seconds on other
    machines by their names.
    """

    work: StageWork
    seconds: float
    measured: bool
    memory_bytes: float
    memory_measured: bool
    elsewhere: dict[str, float]


@dataclass(frozen=True)
class CostEstimate:
    """A whole plan. wall_seconds: end to end by machine, "" this one; left_seconds: of what is out
    of date; watts: None if unknown; beside: trainings side by side here; micro_batches: rows by
    machine where its memory needs fewer than by default; uncompiled: pre-training would be
    compiled, were there a compiler.
    """

    profile: str
    stages: dict[str, StageEstimate]
    wall_seconds: dict[str, float]
    left_seconds: float | None
    matmul_flops: float
    watts: float | None
    beside: int
    device: str
    room: Room
    micro_batches: dict[str, int]
    uncompiled: bool


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for unit, size in UNITS:
        if seconds >= 1.95 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def number(value: float) -> str:
    """A large number in three digits: 1.05 G."""
    for letter, size in PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}" if value else "-"


def in_bytes(value: float) -> str:
    """Bytes in three digits; - for none."""
    return f"{number(value)}B" if value else "-"


def amount(value: float) -> str:
    """Kilowatt hours or money: hundredths of small amounts only."""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def line_of(name: str) -> str:
    """The line of the table in which a stage stands."""
    return name if group(name) in ALONE else "report" if name in REPORTS else group(name)


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Stages by the line that they stand in."""
    lines: dict[str, list[str]] = {}
    for name in names:
        lines.setdefault(line_of(name), []).append(name)
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines, the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]


def guessed(text: str, known: bool) -> str:
    """The text, with ~ before it where it is an estimate."""
    return text if known or text == "-" else f"~{text}"


def stage_row(line: str, ones: Sequence[StageEstimate]) -> list[str]:
    """One line of the table."""
    works = [one.work for one in ones]
    counted = all(work.counted for work in works)
    return [
        line,
        str(len(ones)),
        guessed(number(sum(work.updates for work in works)), counted),
        guessed(number(sum(work.tokens for work in works)), counted),
        guessed(number(sum(work.flops + work.scored_flops for work in works)), counted),
        guessed(
            in_bytes(max(one.memory_bytes for one in ones)),
            all(one.memory_measured for one in ones),
        ),
        guessed(
            in_bytes(sum(work.disk_bytes for work in works)),
            counted and all(work.network for work in works),
        ),
        guessed(duration(sum(one.seconds for one in ones)), all(one.measured for one in ones)),
        *(f"~{duration(sum(one.elsewhere[there.name] for one in ones))}" for there in NAMED),
    ]


def total_rows(plan: CostEstimate, prices: Mapping[str, float]) -> Iterable[list[str]]:
    """End to end, side by side in slots; energy; cost where a price is given. Machines by their
    names, "" is this one.
    """
    wall = plan.wall_seconds
    powers = {"": plan.watts, **{there.name: there.full_watts for there in NAMED}}
    energy = {name: power and power * wall[name] / 3.6e6 for name, power in powers.items()}
    cost = {name: wall[name] / 3600 * price for name, price in prices.items()}
    blank = [""] * (len(HEAD) - 2)
    yield ["end to end", *blank, *(f"~{duration(seconds)}" for seconds in wall.values())]
    if plan.left_seconds is not None:
        yield ["of it out of date", *blank, f"~{duration(plan.left_seconds)}", *([""] * len(NAMED))]
    yield [
        "energy, kWh",
        *blank,
        *(f"~{amount(one)}" if one else "unknown" for one in energy.values()),
    ]
    if cost:
        yield [
            "cost",
            *blank,
            *(f"~{amount(cost[name])}" if name in cost else "-" for name in wall),
        ]


def problems(plan: CostEstimate) -> list[str]:
    """What this machine, and those by name, cannot hold, each in a line."""
    found, most = [], max(plan.stages.values(), key=lambda one: one.memory_bytes)
    on_gpu, need = plan.room.device_memory > 0, most.memory_bytes * plan.beside
    disk = sum(one.work.disk_bytes for one in plan.stages.values())
    has = plan.room.device_memory if on_gpu else plan.room.memory
    if need > has:
        each = f" ({plan.beside} stages side by side, {in_bytes(most.memory_bytes)} each)"
        found.append(
            f"MEMORY: {most.work.stage} needs {in_bytes(need)}{each if plan.beside > 1 else ''},"
            f" this machine has {in_bytes(has)}{' on a GPU' if on_gpu else ''}: have fewer stages"
            " side by side (gpt1 run -j 1) or set GPT1_MICRO_BATCH lower"
        )
    if disk > plan.room.disk:
        found.append(
            f"DISK: the run writes {in_bytes(disk)}, {in_bytes(plan.room.disk)} are free here: make"
            " room, or keep fewer snapshots (pretrain.snapshots_per_decade) and seeds"
            " (finetune.seeds)"
        )
    if plan.uncompiled:
        from gpt1.train.speed import NO_COMPILER  # with torch, which reading a plan is not worth

        found.append(f"SPEED: {NO_COMPILER}")
    return found + [
        f"MEMORY: {one.name} has {in_bytes(one.memory_bytes)} on a device: planned with"
        f" GPT1_MICRO_BATCH={plan.micro_batches[one.name]} set there"
        for one in NAMED
        if one.name in plan.micro_batches
    ]


def lines_of(plan: CostEstimate, prices: Mapping[str, float]) -> list[str]:
    """The plan as lines of text."""
    head = [*HEAD, *(hardware.name for hardware in NAMED)]
    rows = [
        stage_row(line, [plan.stages[name] for name in names])
        for line, names in grouped(plan.stages).items()
    ]
    lines = [
        f"profile {plan.profile} on this machine: {plan.device}, {plan.room.cores} cores,"
        f" {in_bytes(plan.room.memory)} memory, {in_bytes(plan.room.disk)} disk free;"
        f" {plan.beside} side by side; a matrix product makes {number(plan.matmul_flops)}FLOP/s",
        "",
        *aligned([head, *rows, *total_rows(plan, prices)]),
        "",
        "Times of a line are added up; end to end counts stages side by side. No mark: measured"
        " here just now, or counted.",
        "~: estimated; for GPUs from data sheets, counted kernels and assumed shares of the peak"
        " (gpt1/pipeline/plan/kernels.py).",
    ]
    several = [one.work for one in plan.stages.values() if one.work.networks > 1]
    if several:
        one = several[0]
        each = f"{one.networks} networks x {number(one.updates / one.networks)}"
        lines.append(
            f"Updates, tokens and FLOP of a line are those of all its networks, seeds among them:"
            f" {number(one.updates)} updates of {one.stage} are {each}."
        )
    if not plan.watts:
        lines.append("Energy here is unknown: only nvidia-smi tells it.")
    if plan.profile == "paper":
        works = [one.work for one in plan.stages.values()]
        own = [work for work in works if (work.kind, work.name) == ("pretrain", "transformer")]
        days = formulas.petaflop_days(sum(work.flops for work in own))
        lines += ["", f"{PAPERS_OWN};", f"this plan's: {days:.2f} petaflop-days of arithmetic"]
    return lines + problems(plan)


def brief_line(plan: CostEstimate) -> str:
    """How long the run takes here, in one line."""
    return (
        f"the run will take about {duration(plan.wall_seconds[''])} on this machine, by a quick"
        " estimate (gpt1 plan)"
    )


def as_json(plan: CostEstimate, prices: Mapping[str, float], made: float) -> dict[str, Any]:
    """The plan as JSON values; `made` is when, in seconds since 1970."""
    cost = {name: plan.wall_seconds[name] / 3600 * price for name, price in prices.items()}
    return {
        "profile": plan.profile,
        "made": made,
        "device": plan.device,
        "room": vars(plan.room),
        "watts": plan.watts,
        "matmul_flops": plan.matmul_flops,
        "side_by_side": plan.beside,
        "wall_seconds": {name or "here": value for name, value in plan.wall_seconds.items()},
        "left_seconds": plan.left_seconds,
        "problems": problems(plan),
        "cost": {name or "here": value for name, value in cost.items()},
        "stages": {
            name: {key: getattr(one, key) for key in OF_STAGE}
            | {key: getattr(one.work, key) for key in OF_WORK}
            for name, one in plan.stages.items()
        },
    }


def lines_after(plan: Mapping[str, Any], took: Mapping[str, StageFacts]) -> list[str]:
    """Plan beside fact as lines of text. Raises UserError where no stage has run since."""
    if not took:
        raise UserError(
            f"no stage has run since the plan in {PLAN} was made; run gpt1 run, then gpt1 plan"
            " --after"
        )
    stages, missing = plan["stages"], len(plan["stages"]) - len(took)
    rows = [["stages", "of", "planned", "took", "took / planned", "memory planned", "memory taken"]]
    for line, names in grouped(took).items():
        planned = sum(stages[name]["seconds"] for name in names)
        real = sum(took[name].seconds for name in names)
        times = [duration(planned), duration(real), f"{real / planned:.2f}"]
        memory = max(stages[name]["memory_bytes"] for name in names)
        taken = max(took[name].memory_bytes for name in names)
        rows.append([line, str(len(names)), *times, in_bytes(memory), in_bytes(taken)])
    began = min(one.ended - one.seconds for one in took.values())
    wall, planned = max(one.ended for one in took.values()) - began, plan["wall_seconds"]["here"]
    times = [duration(planned), duration(wall), "-" if missing else f"{wall / planned:.2f}"]
    rows.append(["end to end", str(len(took)), *times, "", ""])
    head = f"profile {plan['profile']}, planned beforehand and as it was:"
    tail = f"{missing} of {len(stages)} stages have not run since the plan was made"
    return [head, "", *aligned(rows), *([tail] if missing else [])]


def show_after(file: Path | None) -> None:
    """The last plan of params.yaml beside what its stages took since. Raises UserError where there
    is no plan, or nothing has run.
    """
    try:
        plan = read_json(PLAN)
    except (OSError, ValueError):
        raise UserError(f"{PLAN} is not there; make a plan before the run: gpt1 plan") from None
    took = stage_facts(plan)
    print("\n".join(lines_after(plan, took)))
    if file is not None:
        write_json(file, plan | {"took": {name: one._asdict() for name, one in took.items()}})
