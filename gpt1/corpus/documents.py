"""The texts of files with a document a row (.jsonl, .parquet), in bounded memory."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import parse_json
from gpt1.corpus.files import CorpusFile, blocks, form_of, refuse_bomb, unpacked_name

TABLE_ROWS = 100  # of a Parquet file read together: a row may be a whole book
LONGEST_DOCUMENT = 64_000_000  # bytes of a line, or of a text: bounds memory

WORDS_PER_TOKEN = 0.75  # of English, about
FIRST_ROWS, FIRST_CHARACTERS = 10_000, 1_000_000  # of a file: so much says how long documents are
UNREADABLE_SHARE = 0.01  # of a file's rows; with more the corpus is refused


def document_texts(file: CorpusFile, field: str) -> Iterator[str | None]:
    """Yield each row's text; None where `field` has none. Raises UserError."""
    if file.form != "jsonl":
        yield from _rows(file, field)
        return
    for line in _lines(file):
        text = _object(line).get(field) if line.strip() else ""
        yield text if isinstance(text, str) else None


def _lines(file: CorpusFile) -> Iterator[bytes]:
    rest, row = b"", 0
    for block in blocks(file):
        *whole, rest = (rest + block).split(b"\n")
        row += len(whole)
        yield from whole
        if len(rest) > LONGEST_DOCUMENT:
            raise _too_long(file, row)
    if rest:
        yield rest


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _rows(file: CorpusFile, field: str) -> Iterator[str | None]:
    import pyarrow as pa
    from pyarrow import parquet

    unpacked, size = 0, file.path.stat().st_size
    try:
        _checked(file, parquet.read_schema(file.path), field)
        with parquet.ParquetFile(file.path, pre_buffer=False, buffer_size=1 << 20) as table:
            batches = table.iter_batches(TABLE_ROWS, columns=[field], use_threads=False)
            # one by one: a dictionary may hold a long text that many rows name
            for row, value in enumerate(cell for batch in batches for cell in batch.column(0)):
                text = value.as_py()
                unpacked += len(text or "")
                refuse_bomb(file, unpacked, size)
                if text is not None and len(text) > LONGEST_DOCUMENT:
                    raise _too_long(file, row)
                yield text
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{file.path} cannot be read as .{file.form} ({reason}); get it again or take it out of"
            " the corpus"
        ) from None


def _checked(file: CorpusFile, schema: Any, field: str) -> None:
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    names = []
    for column in schema:
        type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if any(is_text(type_) for is_text in texts):
            names.append(column.name)
    if field not in names:
        raise UserError(
            f"{file.path}: expected a column {field!r} of texts, found"
            f" {', '.join(map(ascii, names)) or 'no column of texts'}; name it: gpt1 profile"
            " PROFILE clean.text_field=COLUMN"
        )


def _too_long(file: CorpusFile, row: int) -> UserError:
    return UserError(
        f"{file.path}: row {row} is longer than {LONGEST_DOCUMENT:,} characters, expected a"
        " document; cut it into several"
    )


def refuse_short(folder: Path, field: str, context: int) -> None:
    """Raise UserError where the first documents are mostly shorter than `context` tokens."""
    for path in sorted(folder.rglob("*")):
        if (form := form_of(unpacked_name(path.name))) not in ("", "text"):
            lengths, characters = list[int](), 0
            for text in document_texts(CorpusFile(path.name, path, form), field):
                lengths.append(len((text or "").split()))
                characters += len(text or "")
                if characters >= FIRST_CHARACTERS or len(lengths) >= FIRST_ROWS:
                    break
            words = median(lengths or [0])
            if words < WORDS_PER_TOKEN * context:
                raise UserError(
                    f"{path}: expected documents as long as model.context, {context} tokens, found"
                    f" a median of {words:g} words: a window lies within a book, and of"
                    " neighbouring sentences some would be held out; bring whole books, one a row"
                )
            return


def refuse_unreadable(
    file: CorpusFile, field: str, counts: Mapping[str, int], first: int | None
) -> None:
    """Raise UserError where too many rows have no text; first: the first of them."""
    if counts["unreadable"] > UNREADABLE_SHARE * counts["documents"]:
        raise UserError(
            f"{file.path}: {counts['unreadable']:,} of {counts['documents']:,} rows have no"
            f" text in {field!r} (or no blanks in it), the first is row {first},"
            f" counted from 0; found fields {_text_fields(file)}; name the field of the texts"
            " (gpt1 profile PROFILE clean.text_field=FIELD) or mend the file"
        )


def _text_fields(file: CorpusFile) -> str:
    row = _object(next(_lines(file), b"")) if file.form == "jsonl" else {}
    names = [ascii(name)[1:-1][:40] for name, value in row.items() if isinstance(value, str)]
    return ", ".join(names[:8]) or "none"
