"""The files of a corpus: their bytes, unpacked in bounded memory, and the texts of those with a
document a row.
"""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from statistics import median
from typing import Any, BinaryIO, cast

from gpt1.base.errors import UserError
from gpt1.base.files import is_hidden, parse_json

TEXT = dict.fromkeys((".txt", ".utf8", ".utf-8"), "text")  # book.txt.utf8: Project Gutenberg's
FORMS = TEXT | {".jsonl": "jsonl", ".parquet": "parquet"}
PACKED = (".gz", ".zst")
PACKABLE = ("text", "jsonl")
BLOCK_BYTES = 250_000
TIGHTEST = 250  # text never unpacks to so many times its size: a bomb
UNPACKED_FREELY = 100_000_000  # bytes, before that is looked at
TABLE_ROWS = 100  # of a Parquet file read together: a row may be a whole book
LONGEST_DOCUMENT = 64_000_000  # bytes of a line, text or book: bounds memory
WORDS_PER_TOKEN = 0.75  # of English, about
FIRST_ROWS, FIRST_CHARACTERS = 10_000, 1_000_000  # of a file: so much says how long documents are
UNREADABLE_SHARE = 0.01  # of a file's rows; with more the corpus is refused
WHAT_TO_DO = (
    "put them there, or run gpt1 profile PROFILE --data FOLDER, where FOLDER/books holds them"
)


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus."""

    name: str  # relative path with forward slashes, without `.gz` or `.zst`
    path: Path
    form: str  # text (one book), jsonl or parquet (a document a row)


def form_of(name: str) -> str:
    """Return the form that an unpacked name stands for; "" for no file of a corpus."""
    return FORMS.get(PurePath(name.lower()).suffix, "")


def unpacked_name(name: str) -> str:
    """Return a name without the `.gz` or `.zst` of a packed file."""
    inner = name[: -len(PurePath(name).suffix)]
    packed = PurePath(name).suffix.lower() in PACKED
    return inner if packed and form_of(inner) in PACKABLE else name


def list_corpus(folder: Path) -> list[CorpusFile]:
    """Return a corpus' files, sorted by name. Raises UserError for none, or two of one name."""
    if not folder.is_dir():
        raise UserError(
            f"expected a folder of books at {folder}, found"
            f" {'a file' if folder.exists() else 'none'}; {WHAT_TO_DO}"
        )
    files: dict[str, CorpusFile] = {}
    for path in sorted(folder.rglob("*")):  # as acquire has copied them
        name = unpacked_name(path.relative_to(folder).as_posix())
        if path.is_dir() or not form_of(name):
            continue
        if name in files:
            raise UserError(
                f"{folder} holds {files[name].path.name} and {path.name}, one file packed and not;"
                " take one of them away"
            )
        files[name] = CorpusFile(name, path, form_of(name))
    if not files:
        raise UserError(
            f"{folder}: expected books as .txt, .jsonl or .parquet, found none; {WHAT_TO_DO}"
        )
    return sorted(files.values(), key=lambda file: file.name)


def bytes_of(files: Iterable[Any]) -> int:
    """Return the size of files together; each has a `path`."""
    return sum(file.path.stat().st_size for file in files)


def blocks(file: CorpusFile) -> Iterator[bytes]:
    """Yield a file's bytes, unpacked. Raises UserError."""
    unpacked = 0
    try:
        with file.path.open("rb") as raw:
            stream = _unpacked(file, raw)
            while block := stream.read(BLOCK_BYTES):
                unpacked += len(block)
                refuse_bomb(file, unpacked, raw.tell())
                yield block
    except (EOFError, zlib.error, OSError) as error:  # pyarrow's of a broken .zst is the last one
        raise UserError(
            f"{file.path} cannot be read ({error}); make it readable, get it again, or take it out"
            " of the corpus"
        ) from None


def read_whole(file: CorpusFile) -> bytes:
    """Return a file's bytes, unpacked. Raises UserError, also for more than LONGEST_DOCUMENT."""
    data = bytearray()
    for block in blocks(file):
        data += block
        if len(data) > LONGEST_DOCUMENT:
            raise _too_long(f"{file.path}")
    return bytes(data)


def refuse_bomb(file: CorpusFile, unpacked: int, bytes_: int) -> None:
    """Raise UserError where `bytes_` of a file unpack to more than text ever does."""
    if unpacked > UNPACKED_FREELY + TIGHTEST * bytes_:
        raise UserError(
            f"{file.path} unpacks to more than {TIGHTEST} times its size, expected text; take it"
            " out of the corpus"
        )


def _unpacked(file: CorpusFile, raw: BinaryIO) -> BinaryIO:
    if file.path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if file.path.suffix.lower() == ".zst":
        import pyarrow as pa

        return cast(
            BinaryIO, io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))
        )
    return raw


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
            raise _too_long(f"{file.path}: row {row}")
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
                    raise _too_long(f"{file.path}: row {row}")
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


def _too_long(place: str) -> UserError:
    return UserError(
        f"{place} is longer than {LONGEST_DOCUMENT:,} bytes, expected a book or document; cut it"
        " into several (a book: split -C 50m)"
    )


def refuse_short(folder: Path, field: str, context: int) -> None:
    """Raise UserError where the first documents are mostly shorter than `context` tokens."""
    for path in sorted(folder.rglob("*")):
        hidden = is_hidden(path.relative_to(folder).as_posix())
        if not hidden and (form := form_of(unpacked_name(path.name))) not in ("", "text"):
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
