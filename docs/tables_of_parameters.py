"""The page of parameters: every knob with its kind, its value in each profile and what it means,
from gpt1/params/schema.py and conf/.
"""

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gpt1.params.profile import compose
from gpt1.params.schema import Params

RECIPE = Path("conf/paper.yaml")
PROFILES = ("paper", "small", "demo")
BOUNDS = (
    ("gt", "above"),
    ("ge", "at least"),
    ("lt", "below"),
    ("le", "at most"),
    ("min_length", "length at least"),
)
KINDS = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    dict: "a row of values",
}


def parameters() -> str:
    """A heading and a table for each section of params.yaml, those of rows last."""
    notes, values = (
        comments(RECIPE.read_text(encoding="utf-8")),
        {name: compose(name, ()) for name in PROFILES},
    )
    plain, of_rows = [], []
    for name, field in Params.model_fields.items():
        row = row_model(field)
        if row is not None:
            of_rows.append(f"### {name}\n\n{_said(name, row, notes)}{_row(name, row)}")
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            plain.append(_section(name, field.annotation, notes, values))
    return "\n\n".join([*plain, *of_rows])


def comments(text: str) -> dict[str, str]:
    """What the lines of a profile say behind a key, and what stands in comments of their own above
    a section: {dotted name: words}.
    """
    notes, above, section = dict[str, str](), list[str](), ""
    for line in text.splitlines():
        if line.startswith("# "):
            above.append(line[2:])
        elif match := re.match(r"( *)(\w+):(?: [^#]*)?(?:# (.*))?$", line):
            section = section if match[1] else match[2]
            note = (
                " ".join([*above, match[3] or ""]).strip()
                if not match[1]
                else (match[3] or "").strip()
            )
            if note:
                notes[f"{section}.{match[2]}" if match[1] else section] = note
            above = []
        elif not line.strip():
            above = []
    return notes


def row_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a section that is a mapping of rows, else None."""
    inner = get_args(field.annotation)[1:]
    return (
        inner[0]
        if inner and isinstance(inner[0], type) and issubclass(inner[0], BaseModel)
        else None
    )


def kind(field: FieldInfo) -> str:
    """The values that a key may have, in words."""
    bounds = [
        f"{word} {bound}"
        for part in [*field.metadata, *_metadata(field.annotation)]
        for name, word in BOUNDS
        if (bound := getattr(part, name, None)) is not None
    ]
    return ", ".join([" or ".join(_kinds(field.annotation)), *bounds])


def _metadata(annotation: Any) -> Iterator[Any]:
    """What Annotated says of an annotation's parts."""
    if get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from getattr(part, "__metadata__", ())


def _kinds(annotation: Any) -> Iterator[str]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _kinds(inner[0])
    elif origin is Literal:
        yield from (f"`{choice}`" for choice in inner)
    elif origin in (Union, types.UnionType):
        for part in inner:
            yield from _kinds(part)
    elif origin is tuple:
        yield f"a list, each a {' or '.join(_kinds(inner[0]))}"
    else:
        yield "`null`" if annotation is types.NoneType else KINDS[origin or annotation]


def _section(
    name: str, model: type[BaseModel], notes: dict[str, str], values: dict[str, dict[str, Any]]
) -> str:
    head = ["parameter", *PROFILES, "may be", "what it is"]
    rows, tables_of_rows = [], []
    for key, field in model.model_fields.items():
        if row := row_model(field):
            tables_of_rows.append(_row(f"{name}.{key}", row))
        else:
            first, *others = (_shown(values[profile][name][key]) for profile in PROFILES)
            shown = [first, *("same" if len(x) > 9 and x == first else x for x in others)]
            rows.append([f"`{name}.{key}`", *shown, kind(field), notes.get(f"{name}.{key}", "")])
    tables = [*([_table(head, rows)] if rows else []), *tables_of_rows]
    return f"### {name}\n\n{_said(name, model, notes)}" + "\n\n".join(tables)


def _row(name: str, model: type[BaseModel]) -> str:
    parts = [f"`{name}.*.{key}` ({kind(field)})" for key, field in model.model_fields.items()]
    return f"A row has {', '.join(parts)}." if parts else "A row has nothing in it."


def _said(name: str, model: type[BaseModel], notes: dict[str, str]) -> str:
    """What the paper's profile says of a section, else what the code says."""
    text = notes.get(name) or " ".join((model.__doc__ or "").split())
    return f"{text.rstrip('.,')}.\n\n" if text and not text.startswith("A part of") else ""


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:g}"
    return "`null`" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["-"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
