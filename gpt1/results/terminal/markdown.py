"""The pages that the report writes, read back: heads, facts, grids of cells, notes. Only what those
pages hold, not all of markdown.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """A line of text: a head of some level (1, 2), a fact or note of a list ("-"), or a paragraph
    ("").
    """

    mark: str
    text: str


class Grid(NamedTuple):
    """A table: names of its columns, and rows of as many cells."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def blocks(text: str) -> Iterator[Line | Grid]:
    """The parts of a page in order; pictures are left out."""
    waiting: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            waiting.append(line)
            continue
        if waiting:
            yield grid(waiting)
            waiting = []
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            yield Line("#" * level, line[level:].strip())
        elif line.startswith("- "):
            yield Line("-", line[2:])
        elif line.strip() and not line.startswith("!["):
            yield Line("", line.strip())


def grid(lines: Sequence[str]) -> Grid:
    """The cells of a table; the rule under its header is left out."""
    header, *rows = [cells(line) for number, line in enumerate(lines) if number != 1]
    return Grid(header, tuple(row + ("",) * (len(header) - len(row)) for row in rows))


def cells(line: str) -> tuple[str, ...]:
    """The cells of one line `| a | b |`."""
    inner = line.strip().removeprefix("|").removesuffix("|").replace(r"\|", "\0")
    return tuple(cell.replace("\0", "|").strip() for cell in inner.split("|"))
