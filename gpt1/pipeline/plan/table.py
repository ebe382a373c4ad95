"""The plan as text and as JSON: a line for each group of stages, totals, what the machine cannot
hold, the paper's own figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpt1.pipeline.plan import formulas, knobs
from gpt1.pipeline.plan.machines import NAMED, Hardware
from gpt1.pipeline.plan.plan import Plan, Planned
from gpt1.pipeline.schedule import group
from gpt1.train.speed import NO_COMPILER

# Radford's announcement (openai.com, June 2018): a month on eight GPUs; 8 x 30 days x 12 TFLOP/s x
# 0.33 of the peak = 0.96 petaflop-days.
PAPERS_OWN = (
    "the paper's own pre-training: 1 month on 8 GPUs (P6000), 0.96 petaflop-days at 33 % of the"
    " peak (the authors' announcement)"
)
REPORTS = ("table2", "table3", "table4", "table5", "figure2", "curves", "claims", "scores")
ALONE = ("pretrain", "zero_shot")  # groups whose stages have a line each


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for unit, size in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.95 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def number(value: float) -> str:
    """A large number in three digits: 1.05 G."""
    for letter, size in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}" if value else "-"


def amount(value: float) -> str:
    """Kilowatt hours or money: hundredths of small amounts only."""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def line_of(name: str) -> str:
    """The line of the table in which a stage stands."""
    return name if group(name) in ALONE else "report" if name in REPORTS else group(name)


def grouped(stages: Mapping[str, Planned]) -> dict[str, list[Planned]]:
    """The stages by the line that they stand in."""
    lines: dict[str, list[Planned]] = {}
    for name, one in stages.items():
        lines.setdefault(line_of(name), []).append(one)
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, the first column to the left, the others to the right; a row of one cell is a
    line of its own.
    """
    widths = [
        max(len(row[place]) for row in rows if len(row) > 1) for place in range(max(map(len, rows)))
    ]
    return [
        (
            row[0]
            if len(row) == 1
            else "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
        )
        for row in rows
    ]


def guessed(text: str, known: bool) -> str:
    """The text, with ~ before it where it is an estimate."""
    return text if known or text == "-" else f"~{text}"


def stage_row(line: str, ones: Sequence[Planned]) -> list[str]:
    """One line of the table."""
    counted, measured = all(one.work.counted for one in ones), all(one.measured for one in ones)
    memory, disk = max(one.memory_bytes for one in ones), sum(one.work.disk_bytes for one in ones)
    return [
        line,
        str(len(ones)),
        guessed(number(sum(one.work.updates for one in ones)), counted),
        guessed(number(sum(one.work.tokens for one in ones)), counted),
        guessed(number(sum(one.work.flops + one.work.scored_flops for one in ones)), counted),
        guessed(f"{number(memory)}B" if memory else "-", all(one.memory_measured for one in ones)),
        guessed(
            f"{number(disk)}B" if disk else "-", counted and all(one.work.network for one in ones)
        ),
        guessed(duration(sum(one.seconds for one in ones)), measured),
        *(f"~{duration(sum(one.elsewhere[hardware.name] for one in ones))}" for hardware in NAMED),
    ]


def total_rows(plan: Plan, prices: Mapping[str, float]) -> Iterable[list[str]]:
    """End to end, side by side in slots; energy; cost where a price is given. Machines by their
    names, "" is this one.
    """
    names = ["", *(hardware.name for hardware in NAMED)]
    blank = [""] * 6
    yield ["end to end", *blank, *(f"~{duration(plan.wall_seconds[name])}" for name in names)]
    if plan.left_seconds is not None:
        yield ["of it out of date", *blank, f"~{duration(plan.left_seconds)}", *([""] * len(NAMED))]
    powers = {"": plan.watts} | {hardware.name: watts(hardware) for hardware in NAMED}
    yield [
        "energy, kWh",
        *blank,
        *(
            f"~{amount(power * plan.wall_seconds[name] / 3.6e6)}" if power else "unknown"
            for name, power in powers.items()
        ),
    ]
    if prices:
        yield [
            "cost",
            *blank,
            *(
                (
                    f"~{amount(plan.wall_seconds[name] / 3600 * prices[name])}"
                    if name in prices
                    else "-"
                )
                for name in names
            ),
        ]


def watts(hardware: Hardware) -> float:
    """Power of a machine at full load, by its data sheet: its devices and what stands beside
    them.
    """
    return (
        max(1, hardware.devices)
        * hardware.watts
        * (1.0 + knobs.WATTS_BESIDE_GPUS if hardware.devices else 1.0)
    )


def problems(plan: Plan) -> list[str]:
    """What this machine, and those by name, cannot hold, each in a line."""
    found, most = [], max(plan.stages.values(), key=lambda one: one.memory_bytes)
    on_gpu, need = plan.room.device_memory > 0, most.memory_bytes * plan.beside
    disk = sum(one.work.disk_bytes for one in plan.stages.values())
    has = plan.room.device_memory if on_gpu else plan.room.memory
    if need > has:
        side = (
            f" ({plan.beside} stages side by side, {number(most.memory_bytes)}B each)"
            if plan.beside > 1
            else ""
        )
        found.append(
            f"MEMORY: {most.work.stage} needs {number(need)}B{side}, this machine has"
            f" {number(has)}B{' on a GPU' if on_gpu else ''}: have fewer stages side by side (gpt1"
            " run -j 1) or set GPT1_MICRO_BATCH lower"
        )
    if disk > plan.room.disk:
        found.append(
            f"DISK: the run writes {number(disk)}B, {number(plan.room.disk)}B are free here: make"
            " room, or keep fewer snapshots (pretrain.snapshots_per_decade) and seeds"
            " (finetune.seeds)"
        )
    if plan.uncompiled:
        found.append(f"SPEED: {NO_COMPILER}")
    return found + [
        f"MEMORY: {one.name} has {number(one.memory_bytes)}B on a device, a stage needs"
        f" {number(plan.elsewhere_bytes)}B: set GPT1_MICRO_BATCH lower there"
        for one in NAMED
        if one.devices and plan.elsewhere_bytes > one.memory_bytes
    ]


def lines_of(plan: Plan, prices: Mapping[str, float]) -> list[str]:
    """The plan as lines of text."""
    head = [
        "stages",
        "of",
        "updates",
        "tokens",
        "FLOP",
        "memory",
        "disk",
        "this machine",
        *(hardware.name for hardware in NAMED),
    ]
    rows = [
        head,
        *(stage_row(line, ones) for line, ones in grouped(plan.stages).items()),
        *total_rows(plan, prices),
    ]
    days = formulas.petaflop_days(plan.stages["pretrain@transformer"].work.flops)
    paper = ["", f"{PAPERS_OWN};", f"this plan's: {days:.2f} petaflop-days of arithmetic"] * (
        plan.profile == "paper"
    )
    return [
        (
            f"profile {plan.profile} on this machine: {plan.device}, {plan.room.cores} cores,"
            f" {number(plan.room.memory)}B memory, {number(plan.room.disk)}B disk free;"
            f" {plan.beside} side by side; a matrix product makes {number(plan.matmul_flops)}FLOP/s"
        ),
        "",
        *aligned(rows),
        "",
        (
            "Times of a line are added up; end to end counts stages side by side. No mark: measured"
            " here just now, or counted."
        ),
        (
            "~: estimated; for the machines by name from data sheets and an assumed share of the"
            " peak (gpt1/pipeline/plan/knobs.py)."
        ),
        *(
            []
            if plan.watts
            else ["Energy here is unknown: neither RAPL nor nvidia-smi can be read."]
        ),
        *paper,
        *problems(plan),
    ]


def as_json(plan: Plan, prices: Mapping[str, float], made: float) -> dict[str, Any]:
    """The plan as JSON values; `made` is when, in seconds since 1970."""
    return {
        "profile": plan.profile,
        "made": made,
        "device": plan.device,
        "room": plan.room.__dict__,
        "watts": plan.watts,
        "matmul_flops": plan.matmul_flops,
        "side_by_side": plan.beside,
        "wall_seconds": {name or "here": value for name, value in plan.wall_seconds.items()},
        "left_seconds": plan.left_seconds,
        "problems": problems(plan),
        "cost": {
            name or "here": plan.wall_seconds[name] / 3600 * price for name, price in prices.items()
        },
        "stages": {
            name: {
                "seconds": one.seconds,
                "measured": one.measured,
                "memory_bytes": one.memory_bytes,
                "memory_measured": one.memory_measured,
                "counted": one.work.counted,
                "updates": one.work.updates,
                "tokens": one.work.tokens,
                "flops": one.work.flops,
                "scored_flops": one.work.scored_flops,
                "disk_bytes": one.work.disk_bytes,
                "elsewhere": one.elsewhere,
            }
            for name, one in plan.stages.items()
        },
    }
