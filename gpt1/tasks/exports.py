"""Hugging Face exports to examples: parquet, arrow, JSON lines and CSV, some rows at a time, their
label integers checked by what they say.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.sources.exports import DESCRIPTION
from gpt1.tasks.layouts import Export, Names
from gpt1.tasks.rows import (
    BLANK_LABELS,
    NO_GOLD_LABEL,
    UNKNOWN_LABEL,
    UNLABELLED,
    BadRowError,
    Example,
    Rows,
    class_reader,
    examples,
    field,
    filled,
    json_object,
    numbered_lines,
    quoted,
    score_of,
)
from gpt1.tasks.table import Task

BATCH_ROWS = 1000
MAX_BATCH_BYTES = (
    1 << 29
)  # so many of a batch even where one value, which a dictionary holds once, stands in every row
MAX_GROUP_BYTES = 1 << 30  # of one row group, unpacked: writers make groups of some 100 MB
MAX_DESCRIPTION_BYTES = 1 << 24
UNPACKED_FREELY = (
    100_000_000  # characters, before it is asked how many times the file's size they are
)
MOST_RATIO = 250
MAX_SCORE = 100.0  # beyond it no score is meant

Records = Iterator[tuple[int, Mapping[str, Any] | bytes]]
Opened = tuple[
    list[str], dict[str, Any], Callable[[list[str]], Records]
]  # column names, features, and the rows of some columns


def read_export(path: Path, format_: Export, task: Task) -> Rows:
    """Every row of one file of an export, in its order; an example with label UNLABELLED where the
    file has -1 or nothing for a label.

    Raises UserError for a file that cannot be read, lacks a column, or numbers its labels otherwise
    than Task.integers says.
    """
    opened = {".jsonl": _lines, ".json": _lines, ".csv": _csv}.get(path.suffix, _table)
    names, features, read = opened(path)
    columns = _Columns(path, format_, names)
    label_of = _label_reader(path, task, features | _described(path), columns.label)

    def example(record: Mapping[str, Any] | bytes) -> Example:
        fields = json_object(record) if isinstance(record, bytes) else record
        label = label_of(field(fields, columns.label)) if columns.label else UNLABELLED
        return columns.example(fields, task, label)

    return examples(read(columns.needed), example)


class _Columns:
    """Which column of a file is what, by the names that exports give them."""

    def __init__(self, path: Path, format_: Export, names: list[str]) -> None:
        self.joined, lacking = format_.joined, []

        def one(named: Names) -> str:
            found = next((name for name in named if name in names), "")
            if not found:
                lacking.append(" or ".join(named))
            return found

        self.texts = list(map(one, format_.texts))
        self.choices = list(map(one, format_.choices))
        self.subset = one(format_.subset) if format_.subset else ""
        self.label = next((name for name in format_.label if name in names), "")
        if not self.label and not format_.hidden:
            lacking.append(" or ".join(format_.label))
        needed = (*self.texts, *self.choices, self.subset, self.label)
        self.needed = list(filter(None, needed))
        if lacking:
            raise UserError(
                f"{path}: expected the columns {', '.join(lacking)}; found"
                f" {', '.join(map(quoted, names)) or 'none'}; put an export of this task there,"
                " with its columns as they were"
            )

    def example(self, record: Mapping[str, Any], task: Task, label: float) -> Example:
        """A row as an example. Raises BadRowError."""
        texts = [filled(name, field(record, name)) for name in self.texts]
        options = [field(record, name) for name in self.choices]
        if len(options) == 1:
            options = options[0] if isinstance(options[0], list) else []
        if self.choices and len(options) != len(task.labels):
            raise BadRowError(f"not {len(task.labels)} options", self.choices[0])
        return Example(
            (" ".join(texts),) if self.joined else tuple(texts),
            tuple(filled("option", option) for option in options),
            label,
            _subset(task, field(record, self.subset)) if self.subset else 0,
        )


def _subset(task: Task, value: object) -> int:
    """The number of the subset whose name a row's id begins with."""
    for number, name in enumerate(task.subsets):
        if str(value).startswith(name):
            return number
    raise BadRowError(
        "unknown subset", f"{quoted(str(value))} begins with none of {', '.join(task.subsets)}"
    )


def _label_reader(path: Path, task: Task, features: Mapping[str, Any], column: str) -> Any:
    """The function from a row's label to the class's number, the score, or UNLABELLED. Raises
    UserError for another numbering.
    """
    numbering = dict(enumerate(task.integers, start=task.first_integer))
    names = _class_names(features.get(column))
    if names is not None and list(numbering.items()) != list(enumerate(names)):
        raise UserError(
            f"{path}: its label integers mean {_numbering(dict(enumerate(names)))}; expected"
            f" {_numbering(numbering) if numbering else 'labels as words'}; export it with that"
            " order, or with words"
        )
    classes = class_reader(task)

    def label_of(value: object) -> float:
        if value in (*BLANK_LABELS, NO_GOLD_LABEL):
            return UNLABELLED
        if task.target == "score":
            return score_of(_shortest(value))
        if (
            isinstance(value, float) and value.is_integer()
        ):  # what pandas makes of integers with gaps
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if value not in numbering:
                raise BadRowError(
                    UNKNOWN_LABEL,
                    f"{quoted(str(value))} instead of"
                    f" {_numbering(numbering) or ', '.join(task.labels)}",
                )
            return value - task.first_integer
        if isinstance(value, str) and value in task.integers:
            return task.integers.index(value)
        return classes(value)

    return label_of


def _shortest(value: object) -> object:
    """A 32-bit number as the decimal that was meant: exports have 3.8 as the 32-bit number next to
    it. Anything else as it is.
    """
    if isinstance(value, float) and abs(value) < MAX_SCORE and float(np.float32(value)) == value:
        return str(np.float32(value))
    return value


def _numbering(names: Mapping[int, str]) -> str:
    return ", ".join(f"{number} {name}" for number, name in names.items())


def _class_names(feature: object) -> list[str] | None:
    """The names of a ClassLabel feature; None for any other."""
    names = feature.get("names") if isinstance(feature, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else None


def _features(text: bytes, *path: str) -> dict[str, Any]:
    """The features in a JSON text at a path of keys; none where it is something else."""
    try:
        value = json.loads(text)
        for key in path:
            value = value[key]
    except (ValueError, RecursionError, LookupError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}


def _described(path: Path) -> dict[str, Any]:
    """The features in the description beside a file; none where there is none."""
    beside = path.parent / DESCRIPTION
    try:
        with beside.open("rb") as file:
            return _features(file.read(MAX_DESCRIPTION_BYTES), "features")
    except OSError:
        return {}


def _lines(path: Path) -> Opened:
    """JSON lines; the columns are those of the first object."""

    for _, line in numbered_lines(path):
        with suppress(BadRowError):
            return list(json_object(line)), {}, lambda _: numbered_lines(path)
    raise UserError(
        f"{path}: expected JSON objects, one a line, found none; put the export there as it was"
    )


def _csv(path: Path) -> Opened:
    """A CSV file with a header. Raises UserError where it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(
            f"{path} cannot be read ({error}); expected CSV in UTF-8 with a header"
        ) from None
    return list(rows[0]) if rows else [], {}, lambda _: iter(enumerate(rows, start=2))


def _table(path: Path) -> Opened:
    """A parquet or arrow file. Raises UserError where it cannot be read."""
    import pyarrow as pa

    damage = (pa.ArrowException, OSError, MemoryError, ValueError, LookupError)

    def refused(error: BaseException) -> UserError:
        return UserError(
            f"{path} cannot be read ({str(error) or type(error).__name__}); put the export there as"
            " it was"
        )

    try:
        schema, batches = _parquet(path) if path.suffix == ".parquet" else _arrow(path)
        names = list(schema.names)
    except damage as error:
        raise refused(error) from None

    def rows(needed: list[str]) -> Records:
        number = characters = 0
        most = UNPACKED_FREELY + MOST_RATIO * path.stat().st_size
        try:
            for batch in batches(needed):
                for record in batch.to_pylist():
                    number += 1
                    characters += sum(
                        len(value) for value in record.values() if isinstance(value, str)
                    )
                    if characters > most:
                        raise UserError(
                            f"{path} unpacks to more than {MOST_RATIO} times its size, as no task"
                            " does; put the official export there"
                        )
                    yield number, record
        except damage as error:
            raise refused(error) from None

    return (
        names,
        _features((schema.metadata or {}).get(b"huggingface", b""), "info", "features"),
        rows,
    )


def _parquet(path: Path) -> tuple[Any, Callable[[list[str]], Iterator[Any]]]:
    """Schema, and the batches of some columns. Raises ArrowException or OSError."""
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(path, memory_map=True)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    for number, group in enumerate(groups):
        if group.total_byte_size > MAX_GROUP_BYTES:
            raise pa.ArrowInvalid(
                f"row group {number} unpacks to more than {MAX_GROUP_BYTES} bytes"
            )
    size = max(
        (group.total_byte_size for group in groups), default=0
    )  # not a column's: pyarrow dies over a damaged description of one
    return file.schema_arrow, lambda needed: (
        part
        for batch in file.iter_batches(batch_size=_rows(size), columns=needed, use_threads=False)
        for part in _pieces(batch)
    )


def _arrow(path: Path) -> tuple[Any, Callable[[list[str]], Iterator[Any]]]:
    """Schema, and the batches of some columns, of a stream, as `datasets` writes it, or of a file
    with its index at the end.

    Raises ArrowException or OSError.
    """
    import pyarrow as pa

    source = pa.memory_map(str(path))
    try:
        stream = pa.ipc.open_stream(source)
        return stream.schema, lambda needed: (
            part for batch in stream for part in _pieces(batch.select(needed))
        )
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(source)
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return file.schema, lambda needed: (
            part for batch in batches for part in _pieces(batch.select(needed))
        )


def _pieces(batch: Any) -> Iterator[Any]:
    """A batch as smaller ones. Raises ArrowInvalid where it is broken; before that nothing else may
    look into it, not even `nbytes`.
    """
    batch.validate(full=True)
    rows = _rows(batch.nbytes)
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _rows(bytes_: int) -> int:
    """How many rows to take at a time where no value has more than so many bytes."""
    return min(BATCH_ROWS, max(1, MAX_BATCH_BYTES // max(1, bytes_)))
