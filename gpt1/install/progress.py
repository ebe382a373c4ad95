"""How far an installation is, by what pip or uv wrote into the log: on a terminal one line,
redrawn; elsewhere a line now and then.
"""

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

from gpt1.install.words import say, without_secrets

QUIET_SECONDS = 20.0  # between two lines where there is no terminal
BAR = 20
UNITS = {
    "bytes": 1e-6,
    "kb": 1e-3,
    "mb": 1.0,
    "gb": 1e3,
    "kib": 1.024e-3,
    "mib": 1.048576,
    "gib": 1073.741824,
}
FOUND = re.compile(
    r"^(?:Collecting|Processing|Requirement already satisfied:) ", re.MULTILINE
)  # pip's, a line a package
FILE = re.compile(
    r"^ *(?:Downloading|Using cached) (\S+\.(?:whl|tar\.gz|zip)) \(([\d.]+) (\w+)\)", re.MULTILINE
)  # pip's, not of metadata
LARGE = re.compile(
    r"^ *Downloading (\S+) \(([\d.]+)(\w+)\)", re.MULTILINE
)  # uv's, of large files alone
RESOLVED = re.compile(r"^Resolved (\d+) packages? in", re.MULTILINE)
BUILDING = re.compile(r"^ *Building (?:wheel|editable) for (\S+)", re.MULTILINE)
INSTALLING = re.compile(
    r"^Installing collected packages: (.+)$|^Prepared (\d+) packages?", re.MULTILINE
)


class Seen(NamedTuple):
    """What a log tells: packages found, files of them there, megabytes downloaded, what it is at
    now, packages to install (0: not yet).
    """

    found: int
    files: int
    megabytes: float
    now: str
    to_install: int


def look(log: str) -> Seen:
    """What the log of pip or uv tells of an installation so far."""
    files, resolved, installing = FILE.findall(log), RESOLVED.search(log), INSTALLING.search(log)
    large = [] if files else LARGE.findall(log) if resolved else []
    megabytes = sum(float(size) * UNITS.get(unit.lower(), 0.0) for _, size, unit in files or large)
    building, now = BUILDING.findall(log), ""
    if building:
        now = "building " + building[-1]
    elif files or large:
        path, size, unit = (files or large)[-1]
        now = "{} ({} {})".format(path.split("/")[-1].split("-")[0], size, unit)
    to_install = 0
    if installing:
        to_install = (
            len(installing.group(1).split(",")) if installing.group(1) else int(installing.group(2))
        )
    found = int(resolved.group(1)) if resolved else len(FOUND.findall(log))
    return Seen(found, len(files), megabytes, without_secrets(now), to_install)


def in_words(seen: Seen, installed: int, most: int, seconds: float) -> str:
    """How far it is, in words; `installed` packages are, and `most` can be needed."""
    if seen.to_install:
        done = min(installed, seen.to_install)
        left = (
            f", about {seconds / done * (seen.to_install - done):.0f} s left"
            if 10 <= done < seen.to_install and seconds > 3
            else ""
        )
        return f"{done} of {seen.to_install} packages installed, {seconds:.0f} s{left}"
    words = [
        f"{seen.files} of at most {most} packages" if seen.files else f"{seen.found} packages found"
    ]
    words += [f"{seen.megabytes:.0f} MB"] if seen.megabytes else []
    return ", ".join([*words, f"{seconds:.0f} s"]) + (f"; now {seen.now}" if seen.now else "")


def share(seen: Seen, installed: int, most: int) -> float:
    """How far its step is, from 0 to 1."""
    done, of = (installed, seen.to_install) if seen.to_install else (seen.files, most)
    return min(1.0, done / of) if of else 0.0


class Progress:
    """Tells a person of the steps of one set-up, and within a step how far it is."""

    def __init__(self, venv: Path, log: Path, most: int) -> None:
        self.venv, self.log, self.most = venv, log, most
        self.steps, self.step, self.doing, self.installing, self.drawn = (
            0,
            0,
            "asking the package index",
            False,
            False,
        )
        self.offset, self.before = 0, 0
        self.began = self.told = time.monotonic()

    def begin(self, what: str, doing: str = "") -> None:
        """The next step, with its line; `doing`: in a word or two, what passes meanwhile ('': an
        installation, of which the log tells).
        """
        self.clear()
        self.step, self.doing, self.installing = self.step + 1, doing, False
        say(f"set-up: {self.step} of {self.steps}: {what}")
        self.offset = self.log.stat().st_size if self.log.exists() else 0
        self.began = self.told = time.monotonic()
        self.before = self.installed()

    def installed(self) -> int:
        """How many packages the environment has."""
        return sum(1 for _ in (self.venv / "lib").glob("python*/site-packages/*-*.*-info"))

    def tick(self) -> None:
        """Called every second or so: show how far it is."""
        seen = Seen(0, 0, 0.0, "", 0)
        if not self.doing:
            seen = self.look()
        passed, installed = (
            time.monotonic() - self.began,
            self.installed() - self.before if seen.to_install else 0,
        )
        text = (
            f"{self.doing}, {passed:.0f} s"
            if self.doing
            else in_words(seen, installed, self.most, passed)
        )
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            full = round(BAR * share(seen, installed, self.most))
            bar = "" if self.doing else "[" + "#" * full + "." * (BAR - full) + "] "
            print(
                "\r" + f"  {bar}{text}"[: shutil.get_terminal_size().columns - 1] + "\x1b[K",
                end="",
                file=sys.stderr,
                flush=True,
            )
            self.drawn = True
        elif time.monotonic() - self.told >= QUIET_SECONDS:
            self.told = time.monotonic()
            say(f"set-up: {text}")

    def look(self) -> Seen:
        """What the log tells of this step; that the installation proper has begun is a step of its
        own, and told once.
        """
        with self.log.open("rb") as log:
            log.seek(self.offset)
            seen = look(log.read().decode("utf-8", "replace"))
        if seen.to_install and not self.installing:
            self.clear()
            self.step, self.installing = self.step + 1, True
            say(f"set-up: {self.step} of {self.steps}: unpacking {seen.to_install} packages")
            self.began = self.told = time.monotonic()
        return seen

    def clear(self) -> None:
        """Wipe the line that is redrawn, before another is written."""
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = False
