"""What params.yaml has other values for than the results were made with, by dvc.lock; read in
a fraction of a second, for no file is hashed.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline.graph import expand, read_lock
from gpt1.pipeline.mark import WATCHED
from gpt1.pipeline.schedule import NO_RESULTS, Stage, choose, group
from gpt1.pipeline.status.reasons import Reason, at, parameter_changes

PARAMS = Path(WATCHED[0])


class Changed(NamedTuple):
    """A parameter by its dotted name, its value when results were made and now, and the stages
    whose results those are.
    """

    reason: Reason
    stages: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reason} ({', '.join(in_short(self.stages))})"


def changed_since(name: str) -> list[str]:
    """In words, what params.yaml has other values for than a stage's results were made with; none
    where it cannot be read.
    """
    try:
        values = read_yaml(PARAMS)
        return list(map(str, changed_parameters(expand(values), values, [name])))
    except (
        UserError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # a run would stop there; results can be looked at all the same
        return []


def changed_parameters(
    stages: Mapping[str, Stage], values: Mapping[str, Any], targets: Collection[str] = ()
) -> list[Changed]:
    """What differs between params.yaml (`values`) and dvc.lock for the targets (none: all) and what
    they need, of those that have results.

    Only stages of the graph count: dvc.lock keeps what is no longer in it. Empty where there is no
    dvc.lock. That a stage ran again and what comes after it has not yet is for `gpt1 status` to
    tell.
    """
    wanted = {
        name
        for name in choose(stages, targets)
        if all(Path(path).exists() for path in stages[name].writes)
    } - {NO_RESULTS}
    found: dict[str, tuple[Reason, list[str]]] = {}
    for stage, entry in read_lock().items():
        before = entry.get("params", {}).get(str(PARAMS), {}) if stage in wanted else {}
        for name, value in before.items():
            for reason in parameter_changes(name, value, at(values, name)):
                found.setdefault(str(reason), (reason, []))[1].append(stage)
    return [Changed(reason, tuple(names)) for reason, names in found.values()]


def in_short(names: Iterable[str]) -> list[str]:
    """Stages in a few words: one by its name, several of a group by their number."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(group(name), []).append(name)
    return [
        ones[0] if len(ones) == 1 else f"{verb}, {len(ones)} stages"
        for verb, ones in groups.items()
    ]
