"""Python and the packages of this environment, against constraints.txt and what the project asks
for.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from gpt1.pipeline.doctor.finding import Finding

CONSTRAINTS = Path("constraints.txt")
SET_UP = Path(sys.prefix, "setup.done")  # what gpt1/setup.sh installed from, where it did
OLDEST = (3, 11)
SHOWN = 4
INFORMATION = (
    ".dist-info",
    ".egg-info",
)  # the latter where an old pip had setup.py install what comes as source


def python() -> list[Finding]:
    """Whether this Python serves."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST:
        return [
            Finding(
                "Python",
                "do",
                version,
                "install Python 3.11 or later, then make setup PYTHON=/path/to/python3.12",
            )
        ]
    return [Finding("Python", "ok", f"{version}, {sys.prefix}")]


def packages() -> list[Finding]:
    """Whether what is installed is what constraints.txt names, and nothing that the project asks
    for is absent.
    """
    installed = read_installed(sys.path)
    if not CONSTRAINTS.is_file():
        return [
            Finding(
                "packages",
                "do",
                f"no {CONSTRAINTS} in {Path.cwd()}",
                "run gpt1 in the root of the checkout",
            )
        ]
    pins = read_pins(CONSTRAINTS.read_text(encoding="utf-8").splitlines())
    absent, other = differences(pins, installed, metadata.requires("gpt1") or [])
    if absent or other:
        words = [f"{name} {found}, not {pinned}" for name, found, pinned in other] + [
            f"{name} is absent" for name in absent
        ]
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        return [
            Finding(
                "packages",
                "do",
                "; ".join(words[:SHOWN]) + more,
                "make setup installs exactly what constraints.txt names",
            )
        ]
    asked = (Path("pyproject.toml"), CONSTRAINTS)
    if SET_UP.is_file() and SET_UP.read_bytes() != b"".join(path.read_bytes() for path in asked):
        return [
            Finding(
                "packages",
                "do",
                "pyproject.toml or constraints.txt changed since the last set-up",
                "make setup",
            )
        ]
    return [
        Finding(
            "packages",
            "ok",
            f"{sum(name in installed for name in pins)} as constraints.txt names them",
        )
    ]


def read_installed(folders: Iterable[str]) -> dict[str, str]:
    """{package: version} by the names of the folders that installers leave; the first of a name is
    the one that Python takes.
    """
    found: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder or ".").glob("*-*.*-info"):
            if path.suffix in INFORMATION:
                name, version = path.stem.split("-")[
                    :2
                ]  # an egg's has the Python's version behind it
                found.setdefault(normal(name), version)
    return found


def normal(name: str) -> str:
    """A package's name as all its spellings have it in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(lines: Iterable[str]) -> dict[str, str]:
    """{package: version} of lines `name==version`."""
    pairs = (line.partition("#")[0].partition(";")[0].strip().split("==") for line in lines)
    return {normal(pair[0]): pair[1].strip() for pair in pairs if len(pair) == 2}


def differences(
    pins: Mapping[str, str], installed: Mapping[str, str], asked: Iterable[str]
) -> tuple[list[str], list[tuple[str, str, str]]]:
    """(packages that are asked for and absent; those of another version, with it and the pinned
    one). `2.13.0+cpu` counts as 2.13.0.
    """
    needed = [
        normal(found[0])
        for one in asked
        if "extra ==" not in one and (found := re.match(r"[\w.-]+", one))
    ]
    other = [
        (name, installed[name], pin)
        for name, pin in pins.items()
        if name in installed and installed[name].partition("+")[0] != pin.partition("+")[0]
    ]
    return [name for name in needed if name not in installed], other
