"""Files with a document a row (.jsonl, .parquet, .arrow): their texts, some at a time, in memory
that does not grow with the file, and stretches of them that are read each for itself.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gpt1.base.errors import UserError
from gpt1.corpus.files import CorpusFile, blocks, refuse_bomb

STRETCH_BYTES = 4_000_000  # of a file, or of what it holds unpacked: some seconds of cleaning
# of a packed file, or of a group of a table's rows: each stretch is reached by reading from the
# beginning, a hundred times as quick as cleaning is
MOST_STRETCHES = 16
UNPACKED_TIMES = 3  # text packed by gzip, Zstandard or Parquet is about so many times its file
BATCH_CHARACTERS = 1_000_000  # of text handed on together
BATCH_ROWS = 10_000
LONGEST_DOCUMENT = 64_000_000  # bytes of a line, or of a text: bounds memory
COLUMN_BYTES = 16_000_000  # of a column read together

Texts = list[str | None]  # of consecutive rows, None where a row has none


@dataclass(frozen=True)
class Stretch:
    """Documents of a file that are read together. [start, stop): rows of a table; of a .jsonl file
    the bytes, unpacked, in which the rows' lines begin. bytes_: about how much text that is.
    """

    file: CorpusFile
    start: int
    stop: int
    bytes_: int


def stretches(file: CorpusFile) -> list[Stretch]:
    """A file of documents in stretches of about STRETCH_BYTES, in order. Raises UserError for a
    damaged one.
    """
    size = file.path.stat().st_size
    if file.form == "jsonl":
        total = sum(len(block) for block, _ in blocks(file, 0, None)) if file.packed else size
        size = total
        step = max(STRETCH_BYTES, -(-total // MOST_STRETCHES)) if file.packed else STRETCH_BYTES
        edges = [*range(0, total, step), total]
    else:
        groups = _groups(file)
        total = sum(groups)
        size *= UNPACKED_TIMES if file.form == "parquet" else 1
        by_size = -(-total * STRETCH_BYTES // max(1, size))
        edges = [*range(0, total, max(1, by_size, max(groups, default=0) // MOST_STRETCHES)), total]
    return [
        Stretch(file, start, stop, size * (stop - start) // total)
        for start, stop in pairwise(edges)
    ]


def batches(stretch: Stretch, field: str) -> Iterator[Texts]:
    """The documents of a stretch in order, from the field (or column) of that name. Raises
    UserError for a damaged file.
    """
    rows = _json_rows(stretch, field) if stretch.file.form == "jsonl" else _rows(stretch, field)
    texts: Texts = []
    characters = 0
    for text in rows:
        texts.append(text)
        characters += len(text or "")
        if characters >= BATCH_CHARACTERS or len(texts) >= BATCH_ROWS:
            yield texts
            texts, characters = [], 0
    if texts:
        yield texts


def _lines(file: CorpusFile, start: int, stop: int) -> Iterator[bytes]:
    """The lines, without their ends, that begin at bytes [start, stop) of a file unpacked."""
    begin = max(0, start - 1)  # of the line that is being read: the one before is passed over
    parts: list[bytes] = []
    length = 0
    for block, _ in blocks(file, begin, None):
        *whole, rest = block.split(b"\n")
        for line in whole:
            if begin >= start:
                yield b"".join([*parts, line])
            begin += length + len(line) + 1
            parts, length = [], 0
            if begin >= stop:
                return
        parts += [rest] if begin >= start else []
        length += len(rest)
        if begin < start and begin + length >= stop:
            return
        if length > LONGEST_DOCUMENT:
            lines = sum(before.count(b"\n") for before, _ in blocks(file, 0, begin))
            raise _too_long(file, lines)
    if length and begin >= start:
        yield b"".join(parts)


def _json_rows(stretch: Stretch, field: str) -> Iterator[str | None]:
    for line in _lines(stretch.file, stretch.start, stretch.stop):
        try:
            row: Any = json.loads(line) if line.strip() else {field: ""}
        except (ValueError, RecursionError):
            row = None
        text = row.get(field) if isinstance(row, dict) else None
        yield text if isinstance(text, str) else None


def _groups(file: CorpusFile) -> list[int]:
    """How many rows of a table are stored together, group after group."""
    import pyarrow as pa
    from pyarrow import parquet

    with _one_line(file):
        if file.form == "parquet":
            about = parquet.read_metadata(file.path)
            return [about.row_group(number).num_rows for number in range(about.num_row_groups)]
        with pa.memory_map(str(file.path)) as source:
            return [batch.num_rows for batch in _record_batches(source)]


@contextmanager
def _one_line(file: CorpusFile) -> Iterator[None]:
    """Within the block pyarrow's errors become UserError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(
            f"{file.path} cannot be read as .{file.form} ({said}); get it again or take it out of"
            " the corpus"
        ) from None


def _rows(stretch: Stretch, field: str) -> Iterator[str | None]:
    """The texts of the rows [start, stop) of a table's column."""
    file, unpacked = stretch.file, 0
    size = file.path.stat().st_size
    find = _parquet_columns if file.form == "parquet" else _arrow_columns
    with _one_line(file):
        for first, column in find(stretch, field):
            # one by one: a dictionary may hold a long text that many rows name
            for row, value in enumerate(column, first):
                text = value.as_py()
                unpacked += len(text or "")
                refuse_bomb(file, unpacked, size)
                if text is not None and len(text) > LONGEST_DOCUMENT:
                    raise _too_long(file, row)
                yield text


def _checked(file: CorpusFile, schema: Any, field: str) -> None:
    """Raise UserError unless a table has the column, and it is of texts."""
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    types = {
        one.name: one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        for one in schema
    }
    if field not in types or not any(is_text(types[field]) for is_text in texts):
        found = ", ".join(
            ascii(name)[1:-1]
            for name, type_ in types.items()
            if any(is_text(type_) for is_text in texts)
        )
        raise UserError(
            f"{file.path}: expected a column {field!r} of texts, found"
            f" {found or 'no column of texts'}; name it: gpt1 profile PROFILE"
            " clean.text_field=COLUMN"
        )


def _parquet_columns(stretch: Stretch, field: str) -> Iterator[tuple[int, Any]]:
    """Some rows of a Parquet file's column after the other, each time with the number of the
    first.
    """
    from pyarrow import parquet

    file = stretch.file
    _checked(file, parquet.read_schema(file.path), field)
    with parquet.ParquetFile(
        file.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=[field]
    ) as table:
        about, row = table.metadata, 0
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            if row + rows <= stretch.start or row >= stretch.stop:
                row += rows
                continue
            bytes_ = max(
                1, about.row_group(group).total_byte_size
            )  # not the column's: pyarrow dies over a damaged description of one
            at_once = min(BATCH_ROWS, max(1, rows * COLUMN_BYTES // bytes_))
            for found in table.iter_batches(
                at_once, row_groups=[group], columns=[field], use_threads=False
            ):
                yield from _within(stretch, row, found.column(0))
                row += found.num_rows
                if row >= stretch.stop:
                    return


def _within(stretch: Stretch, row: int, column: Any) -> Iterator[tuple[int, Any]]:
    """Of a column whose first row has that number the rows of a stretch, if any, and the number of
    the first of them.
    """
    start, stop = max(row, stretch.start), min(row + len(column), stretch.stop)
    if start < stop:
        yield start, column.slice(start - row, stop - start)


def _record_batches(source: Any) -> Iterator[Any]:
    """The batches of an Arrow file: a stream, as Hugging Face's datasets write it, or one with a
    table of its batches.
    """
    import pyarrow as pa

    listed = source.read(6) == b"ARROW1"
    source.seek(0)
    if listed:
        reader = pa.ipc.open_file(source)
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(source)


def _arrow_columns(stretch: Stretch, field: str) -> Iterator[tuple[int, Any]]:
    """The same of an Arrow file."""
    import pyarrow as pa

    row = 0
    with pa.memory_map(str(stretch.file.path)) as source:
        for batch in _record_batches(source):
            if row == 0:
                _checked(stretch.file, batch.schema, field)
            for first, column in _within(
                stretch, row, batch.column(batch.schema.get_field_index(field))
            ):
                column.validate(full=True)
                at_once = max(1, len(column) * COLUMN_BYTES // max(1, column.nbytes))
                for start in range(0, len(column), at_once):
                    yield first + start, column.slice(start, at_once)
            row += batch.num_rows
            if row >= stretch.stop:
                return


def _too_long(file: CorpusFile, row: int) -> UserError:
    return UserError(
        f"{file.path}: row {row} is longer than {LONGEST_DOCUMENT:,} characters, expected a"
        " document; cut it into several"
    )


def text_fields(file: CorpusFile) -> str:
    """The fields of the first row of a .jsonl file that hold texts, in words."""
    row: Any = None
    for line in _lines(file, 0, 1) if file.form == "jsonl" else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        break
    names = (
        [ascii(name)[1:-1][:40] for name, value in row.items() if isinstance(value, str)]
        if isinstance(row, dict)
        else []
    )
    return ", ".join(names[:8]) or "none"
