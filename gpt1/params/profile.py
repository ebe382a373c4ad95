"""params.yaml composed of `conf/<name>.yaml` and overrides."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.params.schema import needed_sources, validate
from gpt1.params.yaml import parse_yaml, read_yaml

CONF = Path("conf")


def compose(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of a profile with overrides. Raises UserError for an unknown profile or a
    wrong override.
    """
    try:
        values = overridden(sections_of(name) | {"profile": name}, overrides)
        if values["pretrain"]["source"] == "official":  # less what only a pre-training gives
            values |= {"networks": {"pretrain": ["transformer"], "zero_shot": []}, "zero_shot": {}}
            for row in values["ablations"].values():
                row["tasks"] = row["tasks"] if row["network"] == "transformer" else {}
        return values
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{CONF}: expected the sections of paper.yaml, found {error}") from None


def sections_of(name: str) -> dict[str, Any]:
    """Return a profile's sections, merged over those of its `defaults`."""
    path = CONF / f"{name}.yaml"
    if not path.is_file():
        profiles = ", ".join(sorted(path.stem for path in CONF.glob("*.yaml")))
        raise UserError(
            f"no profile {name!r}; expected one of {profiles or f'conf/*.yaml: {ELSEWHERE}'}"
        )
    sections = read_yaml(path)
    values: dict[str, Any] = {}
    for below in sections.pop("defaults", ["_self_"]):
        values = laid_over(values, sections if below == "_self_" else sections_of(below))
    return values


def laid_over(base: Any, over: Any) -> Any:
    """Merge sections; a list, a number or an empty section replaces the other value."""
    if not isinstance(base, dict) or not isinstance(over, dict) or not over:
        return over
    return base | {key: laid_over(base.get(key), value) for key, value in over.items()}


def overridden(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Apply overrides, KEY=VALUE with dots in the key. Raises UserError for another grammar."""
    values = json.loads(json.dumps(values))  # no part is another's too, as an alias of YAML is
    for override in overrides:
        key, given, value = override.partition("=")
        *above, last = key.lstrip("+").split(".")
        section: Any = values
        try:
            for name in above:
                section = section.setdefault(name, {})
            section[last] = parse_yaml(value, override)
        except (AttributeError, TypeError):
            given = ""
        if not given:
            raise UserError(f"{override}: expected KEY=VALUE with a key of {CONF / 'paper.yaml'}")
    return values


def requested(
    profile: str, overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the checked values of a profile with overrides, with these `tasks` only (None: all).
    Raises UserError.
    """
    values = compose(profile, overrides)
    validate(values)
    if tasks is None:
        return values
    task_names = [name for name, row in values["sources"].items() if row["group"] == "tasks"]
    for name in tasks or [""]:
        if name not in task_names:
            raise UserError(f"no task {name!r}; expected some of {', '.join(task_names)}")
    return with_sources(values, {*tasks, *(set(values["sources"]) - set(task_names))})


def with_sources(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Keep only these sources, and the rows of their tasks."""

    def named(rows: dict[str, Any]) -> dict[str, Any]:
        return {name: row for name, row in rows.items() if name in names}

    ablations = {
        name: row | {"tasks": named(row["tasks"])} for name, row in values["ablations"].items()
    }
    of_sources = ("sources", "tasks", "transfer", "zero_shot")
    return values | {
        "ablations": ablations,
        **{section: named(values[section]) for section in of_sources},
    }


def needed_by(values: dict[str, Any]) -> list[str]:
    """Return the sources that a run of these values needs."""
    return needed_sources(values["bpe"]["source"], values["pretrain"]["source"])
