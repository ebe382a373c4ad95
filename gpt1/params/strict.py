"""Plain values as strict models, and errors in one line."""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpt1.base.errors import UserError, did_you_mean

ModelType = TypeVar("ModelType", bound=BaseModel)


def explained(error: ValidationError, model: type[BaseModel], path: str) -> str:
    """Describe one problem in one line; an unknown key first, for it is the cause of a missing
    one.
    """
    problem = min(error.errors(), key=lambda key: key["type"] != "extra_forbidden")
    keys = [*map(str, problem["loc"])]
    inner = ".".join(key for key in keys if not re.search(r"literal|^int$", key))
    dotted, found = f"{path}.{inner}".strip("."), problem["input"]
    if problem["type"] == "value_error":
        return f"{dotted}: {problem['ctx']['error']}"
    if problem["type"] == "extra_forbidden":
        *above, last = keys
        node = schema = model.model_json_schema()
        for key in above:
            node = node.get("properties", {}).get(key, node.get("additionalProperties"))
            node = node.get("anyOf", [node])[0]  # of a section that may be null
            node = schema["$defs"].get(node.get("$ref", "").rpartition("/")[2], node)
        hint = (
            did_you_mean(last, node["properties"], dotted.removesuffix(last))
            or "; remove it, or compose the file anew with gpt1 profile"
        )
        return f"unknown key {dotted} (found {found!r}){hint}"
    if problem["type"] == "missing":
        return f"{dotted} is missing, expected every key; compose it anew with gpt1 profile"
    expected = problem["msg"].replace("Input should be", "expected")
    return f"{dotted}: found {found!r}, {expected}"


def validated(model: type[ModelType], values: Any, path: str, file: str) -> ModelType:
    """Make a model of plain values. Raises UserError with the dotted name under `path`."""
    try:  # as JSON, of which strict models take a list for a tuple
        return model.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise UserError(f"{file}: {explained(error, model, path).lstrip(': ')}") from None
