"""Where files lie, and how they are written whole."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any
from uuid import uuid4

from gpt1.base.errors import UserError

DATA = Path("data")  # every stage runs in the root of the checkout, as DVC does
RAW, LOGS, CHECKPOINTS = DATA / "raw", DATA / "logs", DATA / "checkpoints"


def stage_folder(stage: str, *parts: str) -> Path:
    """Return `data/<stage>/<parts>`, where a stage's outputs lie."""
    return DATA.joinpath(stage, *parts)


def refuse_links() -> None:
    """Raise UserError where a folder of outputs is a link out of the checkout."""
    for folder in (DATA, *DATA.glob("*"), *DATA.glob("*/*")):
        if folder.is_symlink() and not folder.is_file():  # a file may lie in DVC's cache
            free = {RAW, LOGS, CHECKPOINTS} & {folder, folder.parent}
            if not free and not folder.resolve().is_relative_to(Path.cwd().resolve()):
                raise UserError(
                    f"{folder} is a link out of this checkout, where DVC takes no outputs: mount"
                    " the disk there, or keep DVC's cache on it (dvc config --local cache.dir"
                    " FOLDER, cache.type symlink)"
                )


def sync_file(path: Path) -> None:
    """Flush a file's bytes, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: str, target: str) -> str:
    """Give a file a second name, or copy it where the file system cannot."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
    return target


@contextmanager
def writing(path: Path, mode: str = "w", apart: bool = False) -> Iterator[Any]:
    """Open a temporary file, which replaces `path` when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # apart: two processes may write at once (Ray may repeat a task); else the next process takes
    # over a killed one's file
    temporary = path.with_name(f".{uuid4().hex if apart else path.name}.partial")
    try:
        text = "b" not in mode
        with temporary.open(
            mode, encoding="utf-8" if text else None, newline="\n" if text else None
        ) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_file(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder, which replaces `folder` when the block ends without error. Raises
    UserError for a link or a mount point.
    """
    if folder.is_symlink() or folder.is_mount():
        raise UserError(
            f"{folder} is a {'link' if folder.is_symlink() else 'mount point'}, expected a folder,"
            " which is replaced as a whole: move it away, or mount the disk a folder above it"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                sync_file(path)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
        sync_file(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys: equal values give equal bytes."""
    with writing(path) as file:
        file.write(
            json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
        )


def read_json(path: Path) -> Any:
    """Read JSON. Raises OSError, or ValueError where it is damaged."""
    return parse_json(path.read_text(encoding="utf-8"))


def read_json_file(path: Path, what_to_do: str, kind: type = dict) -> Any:
    """Read a JSON value of type `kind`. Raises UserError, which ends with `what_to_do`."""
    try:
        value = read_json(path)
        if not isinstance(value, kind):
            raise ValueError(f"its value is no {kind.__name__}")
        return value
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: expected JSON, found none ({error}); {what_to_do}") from None


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError, also for too deep nesting."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read arrays of numpy's savez, running no code. Raises OSError, KeyError for a missing name,
    ValueError for damage.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names}
    except (KeyError, OSError):
        raise
    except Exception:  # zipfile and zlib have many; numpy's words advise to load what may run code
        raise ValueError("no arrays as numpy writes them, or cut short") from None


def sha256_file(path: Path) -> str:
    """Return the hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(value: Any) -> str:
    """Return sixteen hexadecimal digits of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def is_hidden(name: str) -> bool:
    """Return whether a file is a system's or an editor's own, like ._a.txt."""
    return any(
        component.startswith((".", "~$")) or component == "__MACOSX"
        for component in PurePath(name).parts
    )


def stat_fingerprint(paths: Iterable[Path]) -> str:
    """Return a fingerprint of all files' sizes and modification times."""
    facts = []
    for path in paths:
        for file in [path, *sorted(path.rglob("*"))]:
            if file.is_file() and "__pycache__" not in file.parts:
                with suppress(OSError):
                    facts.append([str(file), file.stat().st_size, file.stat().st_mtime_ns])
    return fingerprint(facts)
