"""Why a stage would run again, and which only wait for others; and, read in a fraction of a second,
for no file is hashed, what params.yaml has other values for than the results were made with.

DVC's index is read in this process and without its lock, so that it can be asked while a run is at
work; every file is hashed once.
"""

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline import code
from gpt1.pipeline.completion import WATCHED
from gpt1.pipeline.graph import between_writes, expand, read_lock, relative, repository, stages_of
from gpt1.pipeline.schedule import NO_RESULTS, Stage, choose, group

Kind = Literal["new", "command", "parameter", "changed", "missing", "not in cache"]
ABSENT = object()


class Reason(NamedTuple):
    """Why a stage is out of date: what kind of change, of which path or parameter, and a
    parameter's values before and after.
    """

    kind: Kind
    what: str = ""
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        words = {
            "new": "has not run yet",
            "command": "its command changed",
            "changed": f"{self.what} changed",
            "missing": f"{self.what} is missing",
            "not in cache": f"{self.what} is not in DVC's cache",
        }
        return (
            words.get(self.kind)
            or f"{self.what}: {shortened(self.before)} → {shortened(self.after)}"
        )


def shortened(value: Any) -> str:
    """A parameter's value in a few characters."""
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def parameter_changes(name: str, before: Any, after: Any) -> Iterator[Reason]:
    """What differs between two values of a parameter, by dotted names of single values; ABSENT for
    what was or is not there.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from parameter_changes(
                f"{name}.{key}" if name else str(key),
                before.get(key, ABSENT),
                after.get(key, ABSENT),
            )
    elif before is ABSENT or after is ABSENT:
        yield Reason(
            "parameter",
            name,
            "was not set" if before is ABSENT else before,
            "not set" if after is ABSENT else after,
        )
    elif before != after and list_of(before) != list_of(after):
        yield Reason("parameter", name, before, after)


def list_of(value: Any) -> Any:
    """A tuple as a list: YAML knows lists alone."""
    return list(value) if isinstance(value, tuple) else value


def at(values: Any, dotted: str) -> Any:
    """The value at a dotted name, or ABSENT."""
    for key in dotted.split("."):
        if not isinstance(values, dict) or key not in values:
            return ABSENT
        values = values[key]
    return values


def overlap(one: str, other: str) -> bool:
    """Whether of two paths one is, or lies under, the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def own_reasons(
    stages: Mapping[str, Stage], reasons: Mapping[str, Sequence[Reason]]
) -> dict[str, list[Reason]]:
    """For each stage that would run its own reasons; one that would run only because another does
    has none.

    That an input differs is no reason of a stage's own where it is the output of another that would
    run: that one has the reason. Nothing runs because NO_RESULTS does on other parameters: it would
    write what it wrote.
    """
    own: dict[str, list[Reason]] = {}
    waiting = list(stages)
    while waiting:  # in an order in which a stage comes after all that it needs
        ready = [name for name in waiting if not stages[name].needs & set(waiting)]
        for name in ready or waiting:
            remade = [
                path
                for need in stages[name].needs
                if need in own and not writes_the_same(need, own[need])
                for path in stages[need].writes
            ]
            mine = [
                reason
                for reason in reasons[name]
                if not (
                    reason.kind in ("changed", "missing")
                    and any(overlap(reason.what, path) for path in remade)
                )
            ]
            if mine or remade:
                own[name] = mine
        waiting = [name for name in waiting if name not in ready] if ready else []
    return own


def writes_the_same(name: str, own: Sequence[Reason]) -> bool:
    """Whether a stage that would run for these reasons of its own is known to write what it wrote
    before.
    """
    return name == NO_RESULTS and all(reason.kind == "parameter" for reason in own)


def read_reasons() -> tuple[dict[str, Stage], dict[str, list[Reason]]]:
    """Every stage of DVC's graph, and for each how it differs from what dvc.lock says of it. Raises
    UserError.
    """
    if not Path(".dvc").is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: {ELSEWHERE}")
    # very many objects are made and all are kept: looking for others takes a seventh of the time
    gc.disable()
    try:
        return between_writes(_read)
    finally:
        gc.freeze()  # nor once they are there
        gc.enable()


def _read() -> tuple[dict[str, Stage], dict[str, list[Reason]]]:
    hashes: dict[str, Any] = {}
    values: dict[str, Any] = {}
    with repository(lock=False) as repo:
        found = list(repo.index.stages)
        reasons = {stage.addressing: list(_reasons(stage, hashes, values)) for stage in found}
        return stages_of(found), reasons


def _reasons(stage: Any, hashes: dict[str, Any], values: dict[str, Any]) -> Iterator[Reason]:
    """How a stage differs from its entry in dvc.lock; `hashes` and `values` are what was read
    already, by path.
    """
    if not any(part.hash_info for part in (*stage.deps, *stage.outs)):
        missing = [
            path
            for dep in stage.deps
            if not _is_parameters(dep) and _hash(dep, hashes) is None
            for path in [relative(dep)]
        ]
        yield Reason("new")
        yield from (Reason("missing", path) for path in missing)
        return
    if stage.changed_stage():
        yield Reason("command")
    for dep in stage.deps:
        if _is_parameters(dep):
            yield from _parameters(dep, values)
        else:
            yield from _difference(dep, hashes)
    for out in stage.outs:
        differs = list(_difference(out, hashes))
        yield from differs
        if not differs and out.use_cache and out.hash_info and out.changed_cache():
            yield Reason("not in cache", relative(out))


def _is_parameters(dep: Any) -> bool:
    return hasattr(dep, "read_params")


def _difference(part: Any, hashes: dict[str, Any]) -> Iterator[Reason]:
    """How a file or folder differs from what was written down of it."""
    path, now = relative(part), _hash(part, hashes)
    if now is None:
        yield Reason("missing", path)
    elif now != part.hash_info:
        yield Reason("changed", path)


def _hash(part: Any, hashes: dict[str, Any]) -> Any:
    """DVC's hash of a file or folder as it is, or None where it is not there."""
    if part.fs_path not in hashes:
        hashes[part.fs_path] = part.get_hash() if part.exists else None
    return hashes[part.fs_path]


def _parameters(dep: Any, values: dict[str, Any]) -> Iterator[Reason]:
    """Which parameters of a stage differ from what was written down of them."""
    from dvc.utils.serialize import load_path

    if not dep.exists:
        yield Reason("missing", relative(dep))
        return
    if dep.fs_path not in values:
        values[dep.fs_path] = load_path(dep.fs_path, dep.repo.fs)
    now, before = values[dep.fs_path], dep.hash_info.value or {}
    if relative(dep) == str(code.LOCK):
        for stage in dep.params:
            changed = code.changed_code(before.get(stage, {}), now.get(stage, {}))
            yield from (Reason("changed", path) for path in changed)
        return
    if dep.params:
        for name in dep.params:
            yield from parameter_changes(name, before.get(name, at({}, name)), at(now, name))
    else:
        yield from parameter_changes(
            "", dict(before), dict(now) if isinstance(now, Mapping) else {}
        )


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
    # a run would stop there, for want of DVC too; results can be looked at all the same
    except (UserError, KeyError, TypeError, AttributeError, ModuleNotFoundError):
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
