"""Whether a profile fits into so many hours of one GPU, and what to cut where it does not: updates
of pre-training first, then rows of the big tasks, as the command that composes it so.
"""

import shlex
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from gpt1.params.schema import validate
from gpt1.pipeline.forecast import wall_seconds
from gpt1.pipeline.graph import expand
from gpt1.pipeline.plan import estimate
from gpt1.pipeline.plan.facts import task_size
from gpt1.pipeline.plan.machines import NAMED, Hardware
from gpt1.pipeline.plan.work import work_of
from gpt1.tasks.table import TASKS

UPDATES_STEP = 100  # updates are cut to multiples of it
LEAST_UPDATES = 0.25  # of a profile's updates: rows are cut before more of them are
# Rows of a task to train on, of one sequence each; of tasks of passages as many less as an example
# has sequences.
ROWS = 40_000, 30_000, 20_000, 10_000, 5_000


class Fit(NamedTuple):
    """A profile on one GPU: hours as it is, and by the cuts (none: it fits, or no cut helps
    enough); rows that go through the network at once where memory needs fewer than by default.
    """

    uncut: float
    hours: float
    cuts: tuple[str, ...]
    micro_batch: int | None


class Planned:
    """The hours of a composed profile on one GPU, with other updates or fewer rows."""

    def __init__(self, values: Mapping[str, Any], hardware: Hardware) -> None:
        self.values, self.hardware, self.stages = values, hardware, expand(values)
        self.share = hardware.shares(self.stages)
        params = validate(values)
        works = [work_of(stage, params, ()) for stage in self.stages.values()]
        self.micro_batch = estimate.fitting_micro_batch(works, params, hardware)
        trained = [work for work in works if work.kind == "pretrain"]
        self.updates = max((work.updates // work.networks for work in trained), default=0)
        self.rows = {name: task_size(name, params, ()).train for name in params.tasks}
        self.least = round(LEAST_UPDATES * self.updates / UPDATES_STEP)
        self.least = max(self.least, -(-2 * params.pretrain.warmup_updates // UPDATES_STEP))

    def fewer_rows(self, most: int) -> dict[str, int]:
        """The tasks that have more rows, and how many they keep."""
        kept = {name: most // TASKS[name].sequences for name in self.rows if name in TASKS}
        return {name: rows for name, rows in kept.items() if rows < self.rows[name]}

    def hours(self, updates: int, rows: Mapping[str, int]) -> float:
        """End to end, with so many updates of pre-training and rows of the tasks that are named."""
        values = deepcopy(dict(self.values))
        if updates != self.updates:
            values["pretrain"] |= {"updates": updates, "epochs": None}
        for name, kept in rows.items():
            values["tasks"][name]["train_rows"] = kept
        params = validate(values)
        seconds = {
            name: estimate.data_sheet_seconds(
                work_of(stage, params, ()), self.hardware, self.share[name], 1.0, self.micro_batch
            )
            for name, stage in self.stages.items()
        }
        return wall_seconds(self.stages, seconds, self.hardware.slots, self.share) / 3600

    def most_updates(self, hours: float, rows: Mapping[str, int]) -> int | None:
        """The most updates, a multiple of UPDATES_STEP, with which it fits; None where the least
        are too many.
        """
        low, high = self.least, self.updates // UPDATES_STEP
        if low > high or self.hours(low * UPDATES_STEP, rows) > hours:
            return None
        while low < high:
            middle = (low + high + 1) // 2
            if self.hours(middle * UPDATES_STEP, rows) <= hours:
                low = middle
            else:
                high = middle - 1
        return low * UPDATES_STEP

    def overrides(self, updates: int, rows: Mapping[str, int]) -> tuple[str, ...]:
        """These cuts as `gpt1 profile` takes them."""
        found = [f"tasks.{name}.train_rows={kept}" for name, kept in rows.items()]
        if updates == self.updates:
            return tuple(found)
        no_epochs = [] if self.values["pretrain"]["epochs"] is None else ["pretrain.epochs=null"]
        return (*no_epochs, f"pretrain.updates={updates}", *found)


def fitted(values: Mapping[str, Any], hardware: Hardware, hours: float) -> Fit:
    """The profile of these values on one GPU for so many hours, cut as little as fits; where all
    cuts do not do, their hours are above.
    """
    plan = Planned(values, hardware)
    uncut = plan.hours(plan.updates, {})
    if uncut <= hours:
        return Fit(uncut, uncut, (), plan.micro_batch)
    updates, rows = plan.updates, dict[str, int]()
    for most in (None, *ROWS):
        rows = {} if most is None else plan.fewer_rows(most)
        if not plan.updates:  # imported weights: there are but rows to cut
            if plan.hours(0, rows) <= hours:
                break
        elif (found := plan.most_updates(hours, rows)) is not None:
            updates = found
            break
    else:
        updates = min(updates, plan.least * UPDATES_STEP)
    return Fit(uncut, plan.hours(updates, rows), plan.overrides(updates, rows), plan.micro_batch)


def fit_lines(
    profile: str,
    overrides: Sequence[str],
    values: Mapping[str, Any],
    hours: float,
    prices: Mapping[str, float],
) -> list[str]:
    """For each GPU that is planned alone: whether the profile fits into the hours, and else the
    command whose profile does.
    """
    lines = ["", f"In {hours:g} hours of one GPU, as planned from data sheets, not measured:"]
    for hardware in (one for one in NAMED if one.devices == one.machines == 1):
        fit = fitted(values, hardware, hours)
        price = prices.get(hardware.name)
        money = f", {fit.hours * price:.2f} at {price:g} an hour" if price else ""
        told = f"  {hardware.name}: {fit.uncut:.1f} h"
        if not fit.cuts:
            told += f"{money}: {'fits' if fit.uncut <= hours else 'does not fit'}"
        else:
            short = "" if fit.hours <= hours else ", still too long,"
            told += f" as it is; {fit.hours:.1f} h{money}{short} by"
        lines.append(told)
        if fit.cuts:
            command = ["gpt1", "profile", profile, *overrides, *fit.cuts]
            lines.append(f"    {shlex.join(command)}")
        if fit.micro_batch:
            lines.append(
                f"    with GPT1_MICRO_BATCH={fit.micro_batch} in the environment or in .env"
            )
    return lines
