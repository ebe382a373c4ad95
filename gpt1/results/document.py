"""A report as what it is made of, from which markdown, the terminal and the page of all results are
rendered. Texts may hold **bold** and other marks within a line, as markdown has them.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

from gpt1.base.errors import UserError
from gpt1.base.files import parse_json
from gpt1.results.runs import make_anew

DOCUMENT = "page.json"
NONE = "-"
MINUS = "−"
BEFORE_DIGITS = re.compile(r"(?<!\w)-(?=\d)")
LEFT_OUT = "Left out: "  # begins the line of a list that says what a report lacks


class Heading(NamedTuple):
    """A heading of level 1, the title, or 2."""

    level: int
    text: str


class Paragraph(NamedTuple):
    """A line of text."""

    text: str


class Bullets(NamedTuple):
    """A list: facts, signs, notes."""

    lines: tuple[str, ...]


class Grid(NamedTuple):
    """A table: a header and rows of the same width, their first cells to the left."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture(NamedTuple):
    """A picture by its file beside the report, and what it shows."""

    file: str
    shows: str


Block = Heading | Paragraph | Bullets | Grid | Picture
Document = Sequence[Block]
Facts = Sequence[tuple[str, str]]  # name and text
KINDS = {kind.__name__.lower(): kind for kind in (Heading, Paragraph, Bullets, Grid, Picture)}


def facts_list(pairs: Facts) -> Bullets:
    """What a reader must know first, a line a fact."""
    return Bullets(tuple(f"**{name}**: {text}" for name, text in pairs))


def write_document(folder: Path, name: str, document: Document) -> str:
    """Write a report as markdown and as data, less what is empty; returns the markdown."""
    blocks = [block for block in document if block not in (Bullets(()), Grid((), ()))]
    data = [[type(block).__name__.lower(), *block] for block in blocks]
    (folder / DOCUMENT).write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
    text = markdown(blocks)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return text


def read_document(folder: Path, cleaned: Callable[[str], str] = str) -> list[Block]:
    """A report as data, each text as `cleaned` gives it. Raises UserError, and FileNotFoundError
    where there is none.
    """

    def field(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(field, value))
        return cleaned(value) if isinstance(value, str) else value

    try:
        found = parse_json((folder / DOCUMENT).read_text(encoding="utf-8"))
        return [KINDS[kind](*map(field, fields)) for kind, *fields in found]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{folder / DOCUMENT} cannot be read ({error}); {make_anew(folder.name)}"
        ) from None


def left_out(document: Document) -> Iterator[str]:
    """What a report says that it lacks."""
    for block in document:
        for line in block.lines if isinstance(block, Bullets) else ():
            if line.startswith(LEFT_OUT):
                yield line.removeprefix(LEFT_OUT)


def markdown(document: Document) -> str:
    """The report as GitHub's markdown, columns padded so that the text reads well as it is."""
    return "\n\n".join(filter(None, map(_markdown, document))) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Bullets(lines):
            return "\n".join(f"- {line}" for line in lines)
        case Picture(file, shows):
            return f"![{shows}]({file})"
        case Grid(header, rows):
            return grid(header, rows) if header else ""


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table, its first column to the left and the others to the right."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(values: Sequence[str]) -> str:
        padded = [value.rjust(width) for value, width in zip(values, widths, strict=True)]
        return f"| {' | '.join([values[0].ljust(widths[0]), *padded[1:]])} |"

    rule = [
        f"{'-' * (width - 1)}:" if column else "-" * width for column, width in enumerate(widths)
    ]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def number(value: float, form: str = ".1f") -> str:
    """A number for a reader: with the sign for less instead of a hyphen, and no zero below zero."""
    text = f"{value:{form}}"
    if not text.strip("+-0.,"):  # rounds to nothing
        text = f"{0.0:{form}}"
    return text.replace("-", MINUS)


def minus(text: str) -> str:
    """A text of the CSV files with the sign for less in its numbers; hyphens between words stay."""
    return BEFORE_DIGITS.sub(MINUS, text)


def signed(value: float) -> str:
    """A difference in points."""
    return number(value, "+.1f")


def bounds(low: float, high: float, form: str = ".1f") -> str:
    """An interval: 4.0 to 5.5."""
    return f"{number(low, form)} to {number(high, form)}"


def spread(mean: float, deviation: SupportsFloat | None, form: str = ".1f") -> str:
    """A mean and its deviation."""
    told = number(mean, form)
    return told if deviation is None else f"{told} ± {number(float(deviation))}"


def counted(count: int, word: str) -> str:
    """1 seed, 2 seeds."""
    return f"{count:,} {word}{'s' if count != 1 else ''}"


def large(count: int) -> str:
    """A count that a reader can take in: 12.3 M, or all its digits below a million."""
    return (
        f"{count / 1e9:.2f} G"
        if count >= 1e9
        else f"{count / 1e6:.1f} M"
        if count >= 1e6
        else f"{count:,}"
    )
