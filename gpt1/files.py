"""Where files lie and how they are written: beside, synced, renamed; so nothing half-written is ever taken for whole."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DATA = Path("data")  # every stage runs in the root of the checkout, as DVC does
RAW, LOGS, CHECKPOINTS = DATA / "raw", DATA / "logs", DATA / "checkpoints"


def stage_folder(stage: str, *parts: str) -> Path:
    """`data/<stage>/<parts>`: where a stage's outputs lie."""
    return DATA.joinpath(stage, *parts)


def sync_folder(folder: Path) -> None:
    """Flush a folder's own entries to disk, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: Path, mode: str = "w") -> Iterator[Any]:
    """Open a temporary sibling of `path` for writing; it takes the name `path` only when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.partial")
    try:
        text = "b" not in mode
        with temporary.open(mode, encoding="utf-8" if text else None, newline="\n" if text else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling folder to fill; it replaces `folder` as a whole when the block ends without error."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON with sorted keys, so that equal values give equal bytes."""
    with writing(path) as file:
        file.write(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file that a stage wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def sha256_file(path: Path) -> str:
    """Hexadecimal sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(value: Any) -> str:
    """Sixteen hexadecimal digits that stand for any JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
