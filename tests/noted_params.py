"""Added to a copy of gpt1/params/schema.py: a stage leaves in reads/<its name>.json which keys of
params.yaml it read, but for what went to its log.
"""

import atexit
import json
import os
import sys
from pathlib import Path
from typing import Any


def noted(method: str) -> Any:
    """A method of dict that goes through all rows."""

    def through(self: "Rows") -> Any:
        self.read.add(self.name)
        return getattr(dict, method)(self)

    return through


class Rows(dict[str, Any]):
    """Rows of a table; to look for one is to read it, to go through them is to read them all."""

    __iter__, __len__, keys, values, items = map(
        noted, ("__iter__", "__len__", "keys", "values", "items")
    )

    def __init__(self, rows: dict[str, Any], name: str, read: set[str]) -> None:
        super().__init__(rows)
        self.name, self.read = name, read

    def __contains__(self, key: object) -> bool:
        self.read.add(f"{self.name}.{key}.")
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(f"{self.name}.{key}.")
        return super().get(key, default)


def noting(section_type: Any, read_params: Any) -> Any:
    """`read_params`, whose params note what is read of them."""
    read: set[str] = set()
    names: dict[int, str] = {}
    kept = []  # so that no other object gets the id of one of them

    def watch(section: Any, name: str) -> None:
        names[id(section)] = name
        kept.append(section)
        for field in type(section).model_fields:
            value, dotted = section.__dict__[field], f"{name}.{field}".lstrip(".")
            rows = value if isinstance(value, dict) else {"": value}
            if not any(isinstance(row, section_type) for row in rows.values()):
                continue
            if rows is value:
                section.__dict__[field] = Rows(rows, dotted, read)
            for key, row in rows.items():
                watch(row, f"{dotted}.{key}".rstrip("."))

    def note(self: Any, field: str) -> Any:
        value = object.__getattribute__(self, field)
        here = sys._getframe(1).f_code.co_filename
        if id(self) not in names or "/gpt1/tracking/" in here:
            return value
        name = names[id(self)]

        def dumped(exclude: Any = (), **options: Any) -> Any:
            read.update(f"{name}.{one}" for one in {*type(self).model_fields} - {*exclude})
            return value(exclude=set(exclude), **options)

        def copied(**options: Any) -> Any:  # what is read of the copy counts, not the copying
            made = value(**options)
            names[id(made)] = name
            kept.append(made)
            return made

        if field in ("model_dump", "model_copy"):
            return dumped if field == "model_dump" else copied
        if not field.startswith(("_", "model_")) and not isinstance(value, (section_type, Rows)):
            read.add(f"{name}.{field}".lstrip("."))
        return value

    def read_and_watch(*arguments: Any) -> Any:
        params = read_params(*arguments)
        watch(params, "")
        return params

    def leave() -> None:
        if names:
            Path("reads").mkdir(exist_ok=True)
            Path("reads", f"{os.environ['DVC_STAGE']}.json").write_text(json.dumps(sorted(read)))

    section_type.__getattribute__ = note
    atexit.register(leave)
    return read_and_watch
