"""The files of a corpus, and their bytes, unpacked in bounded memory."""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO, cast

from gpt1.base.errors import UserError

TEXT = dict.fromkeys((".txt", ".utf8", ".utf-8"), "text")  # book.txt.utf8: Project Gutenberg's
FORMS = TEXT | {".jsonl": "jsonl", ".parquet": "parquet"}
PACKED = (".gz", ".zst")
PACKABLE = ("text", "jsonl")
BLOCK_BYTES = 250_000
TIGHTEST = 250  # text never unpacks to so many times its size: a bomb
UNPACKED_FREELY = 100_000_000  # bytes, before that is looked at
WHAT_TO_DO = (
    "put .txt files there, or run gpt1 profile PROFILE --data FOLDER, where FOLDER/books holds them"
)


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus. name: relative path with forward slashes, without `.gz` or `.zst`; form:
    text (one book), jsonl or parquet (a document a row).
    """

    name: str
    path: Path
    form: str

    @property
    def packed(self) -> bool:
        """Return whether its bytes are compressed."""
        return self.path.suffix.lower() in PACKED


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
            f"no book in {folder}: expected .txt files, found {sum(1 for _ in folder.rglob('*'))}"
            f" other entries; {WHAT_TO_DO}"
        )
    return sorted(files.values(), key=lambda file: file.name)


def bytes_of(files: Iterable[Any]) -> int:
    """Return the size of files together; each has a `path`."""
    return sum(file.path.stat().st_size for file in files)


def blocks(file: CorpusFile, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield bytes [start, stop) of a file, unpacked. Raises UserError."""
    try:
        with file.path.open("rb") as raw:
            stream, position = _unpacked(file, raw), 0
            if not file.packed:
                position = raw.seek(start)
            while block := stream.read(
                BLOCK_BYTES if stop is None else min(BLOCK_BYTES, stop - position)
            ):
                if file.packed:
                    refuse_bomb(file, position + len(block), raw.tell())
                if rest := block[max(0, start - position) :]:
                    yield rest
                position += len(block)
    except (EOFError, zlib.error, OSError) as error:  # pyarrow's of a broken .zst is the last one
        raise UserError(
            f"{file.path} cannot be read ({error}); make it readable, get it again, or take it out"
            " of the corpus"
        ) from None


def refuse_bomb(file: CorpusFile, unpacked: int, bytes_: int) -> None:
    """Raise UserError where bytes become more than text ever does."""
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
