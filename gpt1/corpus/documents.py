"""Files with a document a row (.jsonl, .parquet, .arrow): their texts, some at a time, in memory
that does not grow with the file.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.corpus.files import CorpusFile, blocks, refuse_bomb

BATCH_CHARACTERS = 1_000_000  # of text handed on together: some seconds of cleaning
BATCH_ROWS = 10_000
LONGEST_DOCUMENT = 64_000_000  # bytes of a line, or of a text: bounds memory
COLUMN_BYTES = 16_000_000  # of a column read together


class DocumentBatch(NamedTuple):
    """Texts of consecutive rows, None where a row has none; bytes of the file that they stand
    for.
    """

    texts: list[str | None]
    bytes_: int


class _Row(NamedTuple):
    text: str | None
    bytes_: int


def batches(file: CorpusFile, field: str) -> Iterator[DocumentBatch]:
    """The documents of a file in order, from the field (or column) of that name. Raises UserError
    for a damaged file.
    """
    rows = _json_rows(file, field) if file.form == "jsonl" else _column_rows(file, field)
    texts: list[str | None] = []
    characters = bytes_ = 0
    for text, read in rows:
        texts.append(text)
        characters, bytes_ = characters + len(text or ""), bytes_ + read
        if characters >= BATCH_CHARACTERS or len(texts) >= BATCH_ROWS:
            yield DocumentBatch(texts, bytes_)
            texts, characters, bytes_ = [], 0, 0
    if texts:
        yield DocumentBatch(texts, bytes_)


def _lines(file: CorpusFile) -> Iterator[tuple[bytes, int]]:
    """The lines of a file without their ends, each with the bytes of the file read since the
    last.
    """
    parts: list[bytes] = []
    length = read = row = 0
    for block, more in blocks(file, 0, None):
        *whole, rest = block.split(b"\n")
        read += more
        for line in whole:
            yield b"".join([*parts, line]), read
            parts, length, read, row = [], 0, 0, row + 1
        parts.append(rest)
        length += len(rest)
        if length > LONGEST_DOCUMENT:
            raise _too_long(file, row)
    if length:
        yield b"".join(parts), read


def _json_rows(file: CorpusFile, field: str) -> Iterator[_Row]:
    for line, read in _lines(file):
        try:
            row: Any = json.loads(line) if line.strip() else {field: ""}
        except (ValueError, RecursionError):
            row = None
        text = row.get(field) if isinstance(row, dict) else None
        yield _Row(text if isinstance(text, str) else None, read)


def _column_rows(file: CorpusFile, field: str) -> Iterator[_Row]:
    """The texts of a column of a table, the file's size dealt out over them. pyarrow's errors
    become UserError.
    """
    import pyarrow as pa

    total = file.path.stat().st_size
    try:
        columns = (
            _parquet_columns(file, field) if file.form == "parquet" else _arrow_columns(file, field)
        )
        row = told = unpacked = 0
        for column, done in columns:
            share, told = max(0, int(total * done) - told), int(total * done)
            for (
                value
            ) in column:  # one by one: a dictionary may hold a long text that many rows name
                text = value.as_py()
                unpacked += len(text or "")
                refuse_bomb(file, unpacked, total)
                if text is not None and len(text) > LONGEST_DOCUMENT:
                    raise _too_long(file, row)
                yield _Row(text, share)
                row, share = row + 1, 0
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(
            f"{file.path} cannot be read as .{file.form} ({said}); get it again or take it out of"
            " the corpus"
        ) from None


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


def _parquet_columns(file: CorpusFile, field: str) -> Iterator[tuple[Any, float]]:
    """Some rows of a Parquet file's column after the other, and which part of the file is read
    after each.
    """
    from pyarrow import parquet

    _checked(file, parquet.read_schema(file.path), field)
    with parquet.ParquetFile(
        file.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=[field]
    ) as table:
        about, done = table.metadata, 0
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            bytes_ = max(
                1, about.row_group(group).total_byte_size
            )  # not the column's: pyarrow dies over a damaged description of one
            at_once = min(BATCH_ROWS, max(1, rows * COLUMN_BYTES // bytes_))
            for found in table.iter_batches(
                at_once, row_groups=[group], columns=[field], use_threads=False
            ):
                done += found.num_rows
                yield found.column(0), done / about.num_rows


def _arrow_columns(file: CorpusFile, field: str) -> Iterator[tuple[Any, float]]:
    """The same of an Arrow file: a stream, as Hugging Face's datasets write it, or one with a table
    of its batches.
    """
    import pyarrow as pa

    with pa.memory_map(str(file.path)) as source:
        listed = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if listed else pa.ipc.open_stream(source)
        _checked(file, reader.schema, field)
        size = max(1, source.size())
        found: Iterable[Any] = (
            (reader.get_batch(number) for number in range(reader.num_record_batches))
            if listed
            else reader
        )
        for number, batch in enumerate(found):
            column = batch.column(batch.schema.get_field_index(field))
            column.validate(full=True)
            part = (
                (number + 1) / max(1, reader.num_record_batches)
                if listed
                else min(1.0, source.tell() / size)
            )
            at_once = max(1, len(column) * COLUMN_BYTES // max(1, column.nbytes))
            for start in range(0, len(column), at_once):
                yield column.slice(start, at_once), part


def _too_long(file: CorpusFile, row: int) -> UserError:
    return UserError(
        f"{file.path}: row {row} is longer than {LONGEST_DOCUMENT:,} characters, expected a"
        " document; cut it into several"
    )


def text_fields(file: CorpusFile) -> str:
    """The fields of the first row of a .jsonl file that hold texts, in words."""
    row: Any = None
    for line, _ in _lines(file) if file.form == "jsonl" else ():
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
