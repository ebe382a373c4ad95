"""Which Python makes the environment: the one that PYTHON names, else the first on PATH that
can.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gpt1.install.words import SetupError, say

OLDEST = (3, 11)
NAMES = ("python3", "python3.13", "python3.12", "python3.11", "python3.14")
LOOK = """import sys, importlib.util as u
absent = [name for name in ("venv", "ensurepip") if not u.find_spec(name)]
print(".".join(map(str, sys.version_info[:3])), *absent)
print(getattr(sys, "_base_executable", "") or sys.executable)"""


class Python(NamedTuple):
    """An interpreter that starts; `path` is never one inside a virtual environment."""

    path: str
    version: str
    missing: "list[str]"

    @property
    def minor(self) -> "tuple[int, ...]":
        """As (3, 11): what an environment depends on."""
        return tuple(int(part) for part in self.version.split(".")[:2])


def look_at(path: str) -> "Python | None":
    """What an interpreter says of itself, or None if it does not start (a dangling link, a shim of
    a version that is not there).
    """
    try:
        process = subprocess.run(
            [path, "-I", "-S", "-c", LOOK],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=True,
        )
        first, second = os.fsdecode(process.stdout).splitlines()[:2]
        version, *missing = first.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Python(second, version, missing)


def named_python() -> str:
    """The path that PYTHON stands for; empty where nobody set it."""
    name = os.environ.get("PYTHON", "")
    return shutil.which(name) or name


def on_path(left_out: Path) -> "Iterator[str]":
    """Every Python on PATH, python3 first, but for those in one folder: the environment's own,
    which PATH may hold.
    """
    for name in NAMES:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            path = Path(folder) / name
            if os.access(str(path), os.X_OK) and path.parent.resolve() != left_out.resolve():
                yield str(path)


def choose_python(left_out: Path, with_uv: bool) -> Python:
    """The Python to make the environment with; says so where it is not the first one on PATH."""
    refused: dict[str, tuple[Python, str]] = {}
    for path in [named_python()] if named_python() else on_path(left_out):
        python = look_at(path)
        if python is None or python.version in refused:
            continue
        missing = [
            module for module in python.missing if module == "venv" or not with_uv
        ]  # uv needs no ensurepip
        if python.minor >= OLDEST and not missing:
            if refused:
                say(
                    "set-up: not {}; taking {} ({})".format(
                        ", ".join(text for _, text in refused.values()), path, python.version
                    )
                )
            return python
        why = "too old" if python.minor < OLDEST else "without " + " and ".join(missing)
        refused[python.version] = (python, f"{path} ({python.version}, {why})")
    raise SetupError(none_suits(refused))


def none_suits(refused: "dict[str, tuple[Python, str]]") -> str:
    """What was found, and what to do."""
    other = "name another: make setup PYTHON=/path/to/python3.12"
    found = ", ".join(text for _, text in refused.values())
    for python, _ in refused.values():
        if python.minor >= OLDEST:
            package = "python{}.{}-venv".format(*python.minor)
            return (
                f"found {found}: install what it lacks (Debian, Ubuntu: apt install {package}), or"
                f" {other}"
            )
    if named_python() and not found:
        return f"PYTHON={os.environ['PYTHON']} does not start; {other}"
    return f"Python 3.11 or later is needed, found {found or 'none'}: install one, or {other}"
