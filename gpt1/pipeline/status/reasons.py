"""Why a stage would run again, and which only wait for others: pure functions of what DVC finds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gpt1.pipeline.schedule import NO_RESULTS, Stage

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
        return words.get(self.kind) or f"{self.what}: {shown(self.before)} → {shown(self.after)}"


def shown(value: Any) -> str:
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


def needs_of(
    reads: Mapping[str, Sequence[str]], writes: Mapping[str, Sequence[str]]
) -> dict[str, frozenset[str]]:
    """For each stage those whose outputs it reads: the very paths, what lies under them, what they
    lie under.
    """
    made = {path: name for name, paths in writes.items() for path in paths}
    above: dict[str, set[str]] = {}
    for path, name in made.items():
        for folder in folders(path):
            above.setdefault(folder, set()).add(name)
    return {
        name: frozenset(
            {
                maker
                for path in paths
                for place in (path, *folders(path))
                if (maker := made.get(place))
            }
            | {maker for path in paths for maker in above.get(path, ())}
        )
        - {name}
        for name, paths in reads.items()
    }


def folders(path: str) -> list[str]:
    """The folders that a path lies in: `a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


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
