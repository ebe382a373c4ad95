"""`gpt1 plan` for a person: which parameters, which prices, to the screen and to files."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpt1.base.errors import UserError, perhaps
from gpt1.base.files import write_json
from gpt1.params.profile import present_sources, requested, without_absent
from gpt1.params.schema import validate
from gpt1.pipeline.forecast import PLAN
from gpt1.pipeline.plan.after import facts, lines_after, read_plan
from gpt1.pipeline.plan.facts import unknown
from gpt1.pipeline.plan.machines import NAMED
from gpt1.pipeline.plan.plan import make_plan
from gpt1.pipeline.plan.table import as_json, lines_of


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
) -> None:
    """Plan a profile, or (None) params.yaml, with overrides; that of params.yaml as it is is kept
    for `--after`. Raises UserError.
    """
    values, by_machine, absent = (
        requested(profile, overrides, None),
        read_prices(prices),
        list[str](),
    )
    present = present_sources()
    if profile is not None and "books" in present:
        whole, values = values, without_absent(values, present)
        absent = [name for name in whole["tasks"] if name not in values["tasks"]]
    if measure:
        print(
            "measuring a few updates of each network; for figures that hold, let nothing else run"
            " (--no-measure: estimate)",
            file=sys.stderr,
            flush=True,
        )
    active = profile is None and not overrides
    params = validate(values)
    plan = make_plan(values, params, active, measure)
    told = as_json(plan, by_machine, time.time())
    print("\n".join(lines_of(plan, by_machine)))
    if values["sources"]["books"]["folder"] == "raw" and "books" not in present:
        print(
            "nothing lies in data/raw yet: planned for BooksCorpus and all official files (gpt1"
            " profile --data FOLDER links yours)"
        )
    if assumed := unknown(
        {name: params.sources[name].folder for name in params.tasks}, params.zero_shot
    ):
        print(
            f"nothing is known of {', '.join(assumed)} until encoded; a middling task is assumed"
            " (gpt1/pipeline/plan/facts.py takes a row)"
        )
    if absent:
        print(f"left out, for data/raw lacks them: {', '.join(absent)}")
    for path in ([PLAN] if active else []) + ([file] if file else []):
        write_json(path, told)


def show_after(file: Path | None) -> None:
    """The last plan of params.yaml beside what its stages took since. Raises UserError where there
    is no plan, or nothing has run.
    """
    plan = read_plan()
    took = facts(plan)
    print("\n".join(lines_after(plan, took)))
    if file is not None:
        write_json(file, plan | {"took": {name: one._asdict() for name, one in took.items()}})
