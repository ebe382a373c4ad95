"""Plain values of a YAML file as strict pydantic models; what is wrong in one line: dotted name,
found, expected, nearest known key.
"""

import difflib
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from gpt1.base.errors import UserError

ModelType = TypeVar("ModelType", bound=BaseModel)


def known_keys(model: type[BaseModel]) -> list[str]:
    """Every dotted name below a model; rows of a mapping stand as `*`."""
    names = []
    for name, field in model.model_fields.items():
        names.append(name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                prefix = name if inner is field.annotation else f"{name}.*"
                names.extend(f"{prefix}.{key}" for key in known_keys(inner))
    return names


def nearest_key(dotted: str, model: type[BaseModel]) -> str:
    """The known key most like `dotted`, or an empty string; a key of the same section comes before
    one of another.
    """
    known = known_keys(model)
    parent, _, last = dotted.rpartition(".")
    mappings = {key.partition(".")[0] for key in known if ".*." in key}
    pattern = ".".join(
        "*" if place == 1 and parent.partition(".")[0] in mappings else part
        for place, part in enumerate(parent.split("."))
    )
    siblings = {key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == pattern}
    if found := difflib.get_close_matches(last, sorted(siblings), n=1):
        return f"{parent}.{found[0]}" if parent else found[0]
    words = {key.rpartition(".")[2]: key for key in known}
    found = difflib.get_close_matches(last, sorted(words), n=1)
    return words[found[0]] if found else ""


def explained(error: ValidationError, model: type[BaseModel], place: str, file: str) -> str:
    """One problem in one line: the dotted name, what was found, what was expected, the nearest
    known key.

    An unknown key comes first: where a name is mistyped it is the cause, and the missing one only
    what follows.
    """
    problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    inner = ".".join(
        str(part) for part in problem["loc"] if part not in ("literal['all','none']", "int")
    )
    dotted = ".".join(part for part in (place, inner) if part)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "value_error":
        return f"{file}: {problem['ctx']['error']}{more}"
    if problem["type"] == "extra_forbidden":
        near = nearest_key(inner, model)
        hint = (
            f"did you mean {'.'.join(part for part in (place, near) if part)}?"
            if near
            else "remove it"
        )
        return f"{file}: unknown key {dotted} (found {problem['input']!r}); {hint}{more}"
    if problem["type"] == "missing":
        return (
            f"{file}: {dotted} is missing; expected every key of conf/paper.yaml{more}; compose it"
            " anew with gpt1 profile"
        )
    expected = (
        problem["msg"]
        .removesuffix("Params")  # of a class's name: people know the section
        .replace("Input should be", "expected")
        .replace("a valid integer", "an integer")
        .replace("a valid ", "a ")
    )
    return (
        f"{file}: {dotted}: found {problem['input']!r}, {expected[0].lower() + expected[1:]}{more}"
    )


def _tuples(value: Any) -> Any:
    """YAML lists as tuples: strict models take no lists for tuples, and frozen ones should hold
    none.
    """
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


def validated(model: type[ModelType], values: Any, place: str, file: str) -> ModelType:
    """A model of plain values as YAML gives them. Raises UserError, one line with the dotted name
    under `place`, for what does not fit.
    """
    try:
        return model.model_validate(_tuples(values))
    except ValidationError as error:
        raise UserError(explained(error, model, place, file)) from None
