"""The environment's folder: ours or not, whole or not, locked, with room on its disk."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpt1.install.pythons import look_at, named_python
from gpt1.install.words import CPU_HINT, SetupError, say

ROOT = Path(__file__).resolve().parents[2]
LOCK, LOG, STAMP = "setup.lock", "setup.log", "setup.json"
GB = 10**9
SIZES = {
    "CPU": (2.3, 0.5),
    "CUDA": (6.0, 2.9),
}  # build of torch -> GB installed, GB of wheels: measured for CPU, estimated for CUDA


def shown(path: Path) -> str:
    """A path as short as it can be: relative where it lies in the checkout."""
    return str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)


def inputs() -> str:
    """The digest of what decides on the packages: by content, for a clone has new time stamps."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        content = (ROOT / name).read_bytes()
        digest.update(b"%d " % len(content) + content)
    return digest.hexdigest()


def read_stamp(venv: Path) -> "dict[str, str]":
    """What the last whole installation was made of; empty where none ended."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
        return {name: str(stamp[name]) for name in ("inputs", "folder", "python", "torch_index")}
    return {}


def drop_stamp(venv: Path) -> None:
    """From here on until the end the environment counts as half made."""
    with suppress(FileNotFoundError):
        (venv / STAMP).unlink()


def write_stamp(venv: Path, stamp: "dict[str, str]") -> None:
    """Last of all and in one step, so that an interrupted set-up is never taken for whole."""
    os.sync()  # the packages reach the disk before the word that they are there
    partial = venv / (STAMP + ".partial")
    partial.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    partial.replace(venv / STAMP)


def fault(venv: Path, stamp: "dict[str, str]") -> str:
    """Why this environment can neither be used nor brought up to date; empty if it can."""
    if not stamp:
        return "is half made" if (venv / "pyvenv.cfg").exists() else "is not there"
    if stamp["folder"] != str(venv):
        return f"was made as {stamp['folder']}"
    own = look_at(str(venv / "bin" / "python"))
    if own is None:
        return "has a Python that no longer starts"
    if own.version.split(".")[:2] != stamp["python"].split(".")[:2]:
        return f"was made with Python {stamp['python']}, which is {own.version} now"
    asked = look_at(named_python()) if named_python() else own
    if asked is None or asked.minor != own.minor:
        return f"has Python {own.version}, not {os.environ['PYTHON']}"
    index = os.environ.get("TORCH_INDEX") or stamp["torch_index"]
    return "" if index == stamp["torch_index"] else "has torch from another index"


def clear(venv: Path) -> None:
    """Empty the folder; it stays itself (it may be a link to a larger disk), as do the lock that
    others wait for and the log.
    """
    for path in venv.iterdir():
        if path.name in (LOCK, LOG):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(str(path))
        else:
            path.unlink()


def prepare(venv: Path) -> None:
    """See that the folder is there, ours, and can be written."""
    if os.pathsep in str(venv):
        raise SetupError(
            f"no virtual environment works below a folder with '{os.pathsep}' in its name; move"
            f" {venv.parent}"
        )
    if os.path.lexists(str(venv)) and not venv.is_dir():
        raise SetupError(
            f"{shown(venv)} is no folder, or a link to one that is not there: remove it"
        )
    try:
        venv.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in venv.iterdir()}
        if names and not names & {"pyvenv.cfg", LOCK}:
            raise SetupError(
                f"{shown(venv)} holds other things than a virtual environment: move it away, or"
                " name another folder by VENV"
            )
        (venv / LOCK).open("a").close()
    except OSError as error:
        raise SetupError(
            f"{venv} cannot be written ({error.strerror}): clone into a folder where you may write,"
            " or name one for the packages: make setup VENV=/path/to/a/new/folder"
        ) from None


@contextmanager
def locked(venv: Path) -> "Iterator[int]":
    """One set-up at a time. Children inherit the lock, so one that outlives a killed set-up still
    keeps others out.
    """
    with (venv / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"set-up: waiting for another set-up of {shown(venv)} to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: better no lock than no set-up
        yield file.fileno()


def existing(path: Path) -> Path:
    """The folder itself or the nearest one above it that is there."""
    return path if path.exists() else existing(path.parent)


def check_disk(venv: Path, build: str, with_uv: bool) -> None:
    """Room for the packages, for pip's wheels among the temporary files, and for its cache where it
    shares a disk with either.
    """
    installed, wheels = (
        SIZES[build][0],
        0.0 if with_uv else SIZES[build][1],
    )  # uv keeps one copy, which it links to
    cache = Path(
        os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "/") + "/.cache"
    ).absolute()
    needs: dict[int, tuple[Path, float]] = {}
    cached = 0.0 if os.environ.get("PIP_NO_CACHE_DIR") else wheels
    for path, size, must in (
        (venv, installed, True),
        (Path(os.environ.get("TMPDIR") or "/tmp"), wheels, True),
        (cache, cached, False),
    ):
        disk = existing(path).stat().st_dev
        first, before = needs.get(disk, (existing(path), 0.0))
        if must or before:  # pip does without its cache
            needs[disk] = (first, before + size)
    for path, size in needs.values():
        free = shutil.disk_usage(str(path)).free / GB
        if free < size:
            hint = (
                f", or take the CPU build of {SIZES['CPU'][0]:.1f} GB: {CPU_HINT}"
                if build == "CUDA"
                else ""
            )
            cure = (
                "make room"
                if path == existing(venv)
                else "make room, or name another folder by TMPDIR"
            )
            raise SetupError(
                f"{free:.1f} GB are free at {path}, {size:.1f} GB are needed with torch's {build}"
                f" build: {cure}{hint}"
            )
