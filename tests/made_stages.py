"""Rows of params.yaml's section `stages` for values that a test makes up."""

from collections.abc import Collection
from typing import Any

from gpt1.base.errors import UserError
from gpt1.params.profile import with_stages


def with_rows(
    values: dict[str, Any], ablated: Collection[str] = (), granularity: str = "task"
) -> dict[str, Any]:
    """The values with the rows that they ask for, variants on tasks (VARIANT-TASK) only those
    named; as they are where the settings are refused.
    """
    values = values | {"granularity": granularity}
    try:
        made = with_stages(values)
    except UserError:
        return values
    made["stages"]["ablate"] = {
        name: row
        for name, row in made["stages"]["ablate"].items()
        if f"{row['variant']}-{row['task']}" in ablated
    }
    return made
