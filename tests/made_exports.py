"""Made-up rows, and tables {split: {column: values}} of them as Hugging Face exports; `classes`:
{column: what its integers mean}.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

ROWS = {"train": 10, "dev": 6, "test": 4}
HUB = {"train": "train", "dev": "validation", "test": "test"}
Columns = dict[str, list[Any]]
Tables = Mapping[str, Columns]
Classes = Mapping[str, Sequence[str]]
Write = Callable[[Path], None]


def texts(split: str, part: str) -> list[str]:
    """Texts with all that the formats could trip over: quotes, commas, letters beyond ASCII, a
    no-break space.
    """
    return [
        f'{split} {part} {number}: “naïve” and "plain", it\'s\u00a0—\u6f22 {number % 3}.'
        for number in range(ROWS[split])
    ]


def labels(split: str, classes: int) -> list[int]:
    """All classes in turn."""
    return [(number + len(split)) % classes for number in range(ROWS[split])]


def write_lines(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """JSON lines, every other one in ASCII."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text(
        "".join(
            json.dumps(row, ensure_ascii=number % 2 == 0) + "\n" for number, row in enumerate(rows)
        ),
        encoding="utf-8",
    )


def table_of(columns: Columns, classes: Classes) -> pa.Table:
    """A table with the metadata that `datasets` writes; scores are 32-bit, classes 64-bit, as
    there.
    """
    features = {
        name: {"names": list(classes[name]), "_type": "ClassLabel"}
        if name in classes
        else {"dtype": "string", "_type": "Value"}
        for name in columns
    }
    arrays = [
        pa.array(values, pa.float32() if isinstance(values[0], float) else None)
        for values in columns.values()
    ]
    return pa.table(arrays, names=list(columns)).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )


def as_parquet(folder: Path, tables: Tables, classes: Classes, parts: int = 1) -> None:
    """As in a clone from the hub: <split>-00000-of-0000n.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, columns in tables.items():
        table = table_of(columns, classes)
        size = -(-len(table) // parts)
        for number in range(parts):
            parquet.write_table(
                table.slice(number * size, size),
                folder / f"{split}-{number:05d}-of-{parts:05d}.parquet",
            )


def as_parts(folder: Path, tables: Tables, classes: Classes) -> None:
    """Parts in the folder data."""
    as_parquet(folder / "data", tables, classes, parts=3)


def as_converted(folder: Path, tables: Tables, classes: Classes) -> None:
    """The hub's own conversion: default/<split>/0000.parquet."""
    for split, columns in tables.items():
        (folder / "default" / split).mkdir(parents=True)
        parquet.write_table(
            table_of(columns, classes),
            folder / "default" / split / "0000.parquet",
            compression="zstd",
            row_group_size=3,
        )


def as_arrow(folder: Path, tables: Tables, classes: Classes) -> None:
    """As save_to_disk writes: what the columns hold stands in dataset_info.json, and not in the
    table, as older versions did.
    """
    for split, columns in tables.items():
        place = folder / split
        place.mkdir(parents=True)
        table = table_of(columns, classes).replace_schema_metadata(None)
        half = len(table) // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            with (
                pa.OSFile(str(place / f"data-{number:05d}-of-00002.arrow"), "wb") as file,
                pa.ipc.new_stream(file, part.schema) as stream,
            ):
                stream.write_table(part, max_chunksize=4)
        names = {
            name: {"names": list(words), "_type": "ClassLabel"} for name, words in classes.items()
        }
        (place / "dataset_info.json").write_text(json.dumps({"features": names}))
        (place / "state.json").write_text("{}")
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(tables)}))


def as_lines(folder: Path, tables: Tables, classes: Classes) -> None:
    """JSON lines, which say nothing of what their integers mean."""
    for split, columns in tables.items():
        write_lines(folder / f"{split}.jsonl", columns)


EXPORTS = {
    "parquet": as_parquet,
    "parquet in parts": as_parts,
    "converted parquet": as_converted,
    "arrow": as_arrow,
    "jsonl": as_lines,
}


@dataclass(frozen=True)
class Made:
    """One task's forms by name, the original first; classes: names of the label integers of its
    export, by column.
    """

    forms: dict[str, Write]
    tables: Tables
    classes: Classes


def exports(tables: Tables, classes: Classes, beside: str = "") -> dict[str, Write]:
    """Every form of an export, in a folder `beside` or as it is."""

    def writer(write: Callable[..., None]) -> Write:
        return lambda folder: write(folder / beside, tables, classes)

    return {name: writer(write) for name, write in EXPORTS.items()}
