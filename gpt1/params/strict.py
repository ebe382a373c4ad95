"""Plain values as strict pydantic models; what is wrong in one line: dotted name, found, expected,
nearest known key.
"""

import difflib
import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpt1.base.errors import UserError

ModelType = TypeVar("ModelType", bound=BaseModel)


def nearest_key(dotted: str, model: type[BaseModel]) -> str:
    """`dotted` with its last part as the key of the model that is most like it, or an empty
    string.
    """
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    known = {key for part in parts for key in part.get("properties", ())}
    section, dot, last = dotted.rpartition(".")
    near = difflib.get_close_matches(last, sorted(known - {last}), 1)
    return f"{section}{dot}{near[0]}" if near else ""


def explained(error: ValidationError, model: type[BaseModel], place: str) -> str:
    """One problem in one line: the dotted name, what was found, what was expected, the nearest
    known key.

    An unknown key comes first: where a name is mistyped it is the cause, and the missing one only
    what follows.
    """
    problem = min(error.errors(), key=lambda part: part["type"] != "extra_forbidden")
    inner = ".".join(
        str(part) for part in problem["loc"] if not re.search(r"literal|^int$", str(part))
    )
    dotted, found = f"{place}.{inner}".strip("."), problem["input"]
    if problem["type"] == "value_error":
        return f"{dotted}: {problem['ctx']['error']}"
    if problem["type"] == "extra_forbidden":
        near = nearest_key(dotted, model)
        hint = f"did you mean {near}?" if near else "remove it"
        return f"unknown key {dotted} (found {found!r}); {hint}"
    if problem["type"] == "missing":
        return f"{dotted} is missing, expected every key; compose it anew with gpt1 profile"
    expected = problem["msg"].replace("Input should be", "expected")
    return f"{dotted}: found {found!r}, {expected}"


def validated(model: type[ModelType], values: Any, place: str, file: str) -> ModelType:
    """A model of plain values as YAML gives them. Raises UserError, one line with the dotted name
    under `place`, for what does not fit.
    """
    try:  # as JSON, of which strict models take a list for a tuple
        return model.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise UserError(f"{file}: {explained(error, model, place).lstrip(': ')}") from None
