"""How far a stage is, by what it says in its log."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TAIL_BYTES = 20_000
UPDATE = re.compile(r"^\w+ (?P<part>\S+): update (?P<update>\d+) of (?P<updates>\d+)(?P<more>.*)$")
LEFT = re.compile(r"([\d.]+ \w+) left$")


class Progress(NamedTuple):
    """How far a training is: its part (`lstm`, `cola/seed-0`), updates done, of how many; the time
    left and what else it says, in its words.
    """

    part: str
    update: int
    updates: int
    left: str
    says: str


def progress_in(lines: Sequence[str]) -> Progress | None:
    """What the last of these lines that tells of updates says; None where none does."""
    for line in reversed(lines):
        if told := UPDATE.match(line):
            left = LEFT.search(told["more"])
            says = told["more"].removesuffix(left[0] if left else "").strip(", ")
            update, updates = int(told["update"]), int(told["updates"])
            return Progress(told["part"], update, updates, left[1] if left else "", says)
    return None


def tail(path: Path) -> list[str]:
    """The last lines of a file that are not empty."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return [
            line.rstrip()
            for line in file.read().decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
