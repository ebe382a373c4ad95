"""Added to a copy of gpt1/params/schema.py: a stage leaves in reads/<its name>.json which keys of
params.yaml it read, but for what went to its log.
"""

import atexit
import json
import os
import sys
from pathlib import Path
from typing import Any


class Rows(dict[str, Any]):
    """Rows of a table; to look for one is to read it, to go through them is to read them all."""

    def __init__(self, rows: dict[str, Any], name: str, read: set[str]) -> None:
        super().__init__(rows)
        self.name, self.read = name, read

    def __contains__(self, key: object) -> bool:
        self.read.add(f"{self.name}.{key}.")
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(f"{self.name}.{key}.")
        return super().get(key, default)

    def whole(self) -> "Rows":
        """All of them, noted as read."""
        self.read.add(self.name)
        return self

    def __iter__(self) -> Any:
        return super(Rows, self.whole()).__iter__()

    def __len__(self) -> int:
        return super(Rows, self.whole()).__len__()

    def keys(self) -> Any:
        return super(Rows, self.whole()).keys()

    def values(self) -> Any:
        return super(Rows, self.whole()).values()

    def items(self) -> Any:
        return super(Rows, self.whole()).items()


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
            if isinstance(value, section_type):
                watch(value, dotted)
            elif isinstance(value, dict) and any(
                isinstance(row, section_type) for row in value.values()
            ):
                section.__dict__[field] = Rows(value, dotted, read)
                for key, row in value.items():
                    watch(row, f"{dotted}.{key}")

    def note(self: Any, field: str) -> Any:
        value = object.__getattribute__(self, field)
        here = sys._getframe(1).f_code.co_filename
        if id(self) in names and "/gpt1/tracking/" not in here:
            name = names[id(self)]
            if field == "model_dump":

                def dumped(exclude: Any = (), **options: Any) -> Any:
                    fields = set(type(self).model_fields)
                    read.update({f"{name}.{one}" for one in fields - set(exclude)})
                    return value(exclude=set(exclude), **options)

                return dumped
            if field == "model_copy":  # what is read of the copy counts, not the copying

                def copied(**options: Any) -> Any:
                    made = value(**options)
                    names[id(made)] = name
                    kept.append(made)
                    return made

                return copied
            if field.startswith("model_dump"):
                read.add(name)
            elif not field.startswith(("_", "model_")) and not isinstance(
                value, (section_type, Rows)
            ):
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
