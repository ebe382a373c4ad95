"""Tables opened: names of columns, what the file says of them, rows."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError, not_utf8
from gpt1.base.files import parse_json
from gpt1.tasks.layouts import TableFormat
from gpt1.tasks.rows import BadRowError, as_text, json_object, numbered_lines

BATCH_ROWS = 1000
MAX_TABLE_BYTES = 8 << 30  # of a parquet file unpacked: no task's has a tenth


class Table(NamedTuple):
    """An open table."""

    names: list[str]  # of columns
    features: Mapping[str, Any]  # what the file says of columns
    rows: Callable[[list[str]], Iterable[tuple[int, Any]]]  # of some columns, numbered
    parse: Callable[[Any], Mapping[str, Any]]  # a row as {column: value}, or BadRowError


def open_table(path: Path, format_: TableFormat) -> Table:
    """Open a table. Raises UserError where it cannot be read or two columns have one name."""
    if format_.form == "tsv":
        table = _tsv(path, format_)
    elif format_.form == "csv":
        table = _csv(path)
    elif format_.form == "jsonl" or path.suffix in (".jsonl", ".json"):
        table = _lines(path)
    else:
        table = _parquet(path)
    names = table.names
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise UserError(f"{path}: two columns are called {twice[0]}: rename one, or take it out")
    return table


def _record(names: list[str], cells: list[str], surplus: int = 0) -> dict[str, str]:
    """Return cells by column. Raises BadRowError for another number."""
    if len(names) <= len(cells) <= len(names) + surplus:
        return dict(zip(names, cells, strict=False))
    reason = "too few columns" if len(cells) < len(names) else "too many columns"
    raise BadRowError(reason, f"{len(cells)} instead of {len(names)}")


def _tsv(path: Path, format_: TableFormat) -> Table:
    lines = numbered_lines(path)
    names = list(format_.header)
    if not names:
        try:
            _, head = next(lines, (0, b""))
            names = _cells(head)
        except BadRowError as bad:
            raise UserError(
                f"{path}: expected a header in UTF-8, found {bad.detail}; save the file as UTF-8"
            ) from None
    return Table(
        names, {}, lambda _: lines, lambda line: _record(names, _cells(line), format_.surplus)
    )


def _cells(line: bytes) -> list[str]:
    return as_text(line).split("\t")


def _csv(path: Path) -> Table:
    def rows() -> Iterator[tuple[int, list[str]]]:
        number = 0
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                for number, cells in enumerate(csv.reader(file, strict=True), start=1):
                    if cells:
                        yield number, cells
        except (csv.Error, UnicodeDecodeError, OSError) as error:
            why = not_utf8(error) if isinstance(error, UnicodeDecodeError) else error
            raise UserError(
                f"{path}: no CSV after row {number} ({why}); look there for an unbalanced quote,"
                " save it as UTF-8, or get it again"
            ) from None

    lines = rows()
    _, names = next(lines, (0, list[str]()))
    return Table(names, {}, lambda _: lines, lambda cells: _record(names, cells))


def _lines(path: Path) -> Table:
    names = dict[str, None]()
    for _, line in numbered_lines(path):
        with suppress(BadRowError):
            names |= dict.fromkeys(json_object(line))
    if not names:
        raise UserError(f"{path}: expected JSON objects, one a line, found none; get it again")
    return Table([*names], {}, lambda _: numbered_lines(path), json_object)


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    @contextmanager
    def one_line() -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, MemoryError, ValueError, LookupError) as error:
            raise UserError(
                f"{path} cannot be read ({str(error) or type(error).__name__}); put the export"
                " there as it was"
            ) from None

    with one_line():
        file: Any = parquet.ParquetFile(path, memory_map=True)
        schema, about = file.schema_arrow, file.metadata
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        if (unpacked := sum(group.total_byte_size for group in groups)) > MAX_TABLE_BYTES:
            raise pa.ArrowInvalid(f"it unpacks to {unpacked:,} bytes")

    def rows(needed: list[str]) -> Iterator[tuple[int, Any]]:
        number = 0
        with one_line():
            table = file.read(needed, use_threads=False)
            table.validate(full=True)  # before anything else looks into it
            for batch in table.to_batches(BATCH_ROWS):
                yield from enumerate(batch.to_pylist(), start=number + 1)
                number += batch.num_rows

    features = _features((schema.metadata or {}).get(b"huggingface", b""))
    return Table(list(schema.names), features, rows, lambda record: record)


def _features(text: bytes) -> dict[str, Any]:
    """Return the features in `datasets`' metadata, if they are there."""
    try:
        value = parse_json(text)["info"]["features"]
    except (ValueError, LookupError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}
