"""Plan beside fact: what stages took since the plan was made, from the logs of `gpt1 run` and of
the stages.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, read_json
from gpt1.pipeline.forecast import PLAN, last_seconds
from gpt1.pipeline.job import log_of
from gpt1.pipeline.plan.table import aligned, duration, grouped, in_bytes


class Took(NamedTuple):
    """Seconds of a stage, when it ended (seconds since 1970), its peak memory in bytes (0: not
    written down).
    """

    seconds: float
    ended: float
    memory_bytes: float


def read_plan() -> dict[str, Any]:
    """The last plan of params.yaml as it was. Raises UserError where there is none."""
    try:
        plan: dict[str, Any] = read_json(PLAN)
    except (OSError, json.JSONDecodeError):
        raise UserError(f"{PLAN} is not there; make a plan before the run: gpt1 plan") from None
    return plan


def memory_of(stage: str) -> float:
    """Peak memory in bytes that a stage wrote down beside its speed; 0 for none."""
    verb, _, item = stage.partition("@")
    try:
        return float(read_json(LOGS / verb / f"{item}-speed.json")["peak_memory_bytes"])
    except (OSError, ValueError, KeyError):
        return 0.0


def facts(plan: Mapping[str, Any]) -> dict[str, Took]:
    """What each stage of a plan took that `gpt1 run` has run since it was made."""
    seconds, found = last_seconds(), {}
    for name in plan["stages"]:
        log = log_of(name)
        if name not in seconds or not log.is_file() or log.stat().st_mtime <= plan["made"]:
            continue
        if "Running stage '" in log.read_text(encoding="utf-8", errors="replace"):
            found[name] = Took(seconds[name], log.stat().st_mtime, memory_of(name))
    return found


def lines_after(plan: Mapping[str, Any], took: Mapping[str, Took]) -> list[str]:
    """Plan beside fact as lines of text. Raises UserError where no stage has run since."""
    if not took:
        raise UserError(
            f"no stage has run since the plan in {PLAN} was made; run gpt1 run, then gpt1 plan"
            " --after"
        )
    rows = [["stages", "of", "planned", "took", "took / planned", "memory planned", "memory taken"]]
    for line, names in grouped({name: name for name in took}).items():
        planned = sum(plan["stages"][name]["seconds"] for name in names)
        real = sum(took[name].seconds for name in names)
        memory = (
            max(plan["stages"][name]["memory_bytes"] for name in names),
            max(took[name].memory_bytes for name in names),
        )
        times = [duration(planned), duration(real), f"{real / planned:.2f}"]
        rows.append([line, str(len(names)), *times, *map(in_bytes, memory)])
    began = min(one.ended - one.seconds for one in took.values())
    wall, planned = max(one.ended for one in took.values()) - began, plan["wall_seconds"]["here"]
    missing = len(plan["stages"]) - len(took)
    times = [duration(planned), duration(wall), "-" if missing else f"{wall / planned:.2f}"]
    rows.append(["end to end", str(len(took)), *times, "", ""])
    head = f"profile {plan['profile']}, planned beforehand and as it was:"
    tail = f"{missing} of {len(plan['stages'])} stages have not run since the plan was made"
    return [head, "", *aligned(rows), *([tail] if missing else [])]
