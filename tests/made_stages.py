"""The ablations of values of params.yaml that a test makes up."""

from collections.abc import Collection
from typing import Any


def with_rows(values: dict[str, Any], ablated: Collection[str] = ()) -> dict[str, Any]:
    """The values with the ablations on those tasks alone that are named, as ABLATION-TASK."""
    ablations = {
        name: row
        | {
            "tasks": {
                task: about["group"]
                for task, about in values["tasks"].items()
                if f"{name}-{task}" in ablated
            }
        }
        for name, row in values["ablations"].items()
    }
    return values | {"ablations": ablations}
