"""The stages of dvc.yaml for any parameters, before they are in params.yaml: DVC's own graph knows
only those that are.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpt1.params.yaml import read_yaml
from gpt1.pipeline.graph import has_network
from gpt1.pipeline.schedule import Stage

DVC_FILE = Path("dvc.yaml")


def _filled(text: str, names: Mapping[str, Any]) -> str:
    """`${key}` and `${item.group}` replaced by what they name."""

    def named(found: re.Match[str]) -> str:
        value: Any = names
        for part in found[1].split("."):
            value = value[part]
        return str(value)

    return re.sub(r"\$\{([\w.]+)\}", named, text)


def _overlap(read: str, written: str) -> bool:
    """Whether a path lies in, around or at another."""
    return f"{read}/".startswith(f"{written}/") or f"{written}/".startswith(f"{read}/")


def expand(values: Mapping[str, Any]) -> dict[str, Stage]:
    """Every stage that dvc.yaml makes of these plain values, by DVC's names. Raises UserError where
    dvc.yaml cannot be read.
    """
    rows: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for name, stage in read_yaml(DVC_FILE)["stages"].items():
        over = stage.get("foreach")
        items = values[over[2:-1]] if isinstance(over, str) else over  # "${tasks}" names a section
        for key, item in (items or {}).items() if over is not None else [("", None)]:
            do = stage.get("do", stage)
            reads, writes = (
                [_filled(path, {"key": key, "item": item}) for path in do.get(part, ())]
                for part in ("deps", "outs")
            )
            rows[f"{name}@{key}" if key else name] = tuple(reads), tuple(writes)
    return {
        name: Stage(
            name,
            frozenset(
                other
                for other, (_, written) in rows.items()
                if other != name and any(_overlap(read, out) for read in reads for out in written)
            ),
            reads,
            writes,
            trains=has_network(reads),
        )
        for name, (reads, writes) in rows.items()
    }
