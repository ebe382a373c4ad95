"""Examples and unreadable rows, lines of files, and clusters of rows."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError, not_utf8
from gpt1.base.files import parse_json
from gpt1.tasks.definitions import SCORE_CLASSES, Task

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN_CHARACTERS = 40
UNLABELLED = -1
# "-": annotators did not agree, and the field leaves the row out
BLANK_LABELS = (None, "", "-1", UNLABELLED, "-")
UNKNOWN_LABEL = "unknown label"


@dataclass(frozen=True, slots=True)
class Example:
    """One example. context: one text, a pair, or what stands before the choices (RACE: passage,
    question).
    """

    context: tuple[str, ...]
    choices: tuple[str, ...] = ()
    label: float = UNLABELLED
    subset: int = 0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that cannot be read, and why."""

    row: int
    reason: str
    detail: str


class BadRowError(Exception):
    """Why a row cannot be read: a reason to count by, and details."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, f"{reason} ({detail})" if detail else reason

    def at(self, row: int) -> Unreadable:
        """Return the unreadable row."""
        return Unreadable(row, self.reason, self.detail)


Item = TypeVar("Item")
Rows = Iterator[Example | Unreadable]


def examples(items: Iterable[tuple[int, Item]], make: Callable[[Item], Example]) -> Rows:
    """Yield what `make` gives for each numbered item, or why it gives none."""
    for number, source in items:
        try:
            yield make(source)
        except BadRowError as bad:
            yield bad.at(number)


def field(record: Mapping[str, Any], name: str) -> Any:
    """Return a field. Raises BadRowError where it is missing."""
    if name not in record:
        raise BadRowError("missing field", name)
    return record[name]


def quoted(text: str) -> str:
    """Quote a text, cut to fit an error line."""
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line's number, from 1, and bytes, without line end, byte-order mark, and empty
    lines at the end. Raises UserError.
    """
    empty: list[tuple[int, bytes]] = []
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).rstrip(b"\r\n")
                if line:
                    yield from empty
                    empty.clear()
                    yield number, line
                else:
                    empty.append((number, line))
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}; run the acquire stage again"
        ) from None


def as_text(line: bytes) -> str:
    """Decode a line. Raises BadRowError."""
    if not line.strip():
        raise BadRowError("empty line")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRowError("not UTF-8", not_utf8(error)) from None
    if "\0" in text:
        raise BadRowError("NUL character")
    return text


def filled(name: str, text: object) -> str:
    """Return a text. Raises BadRowError where it is empty or damaged."""
    if not isinstance(text, str):
        raise BadRowError("no text", f"{name} is {type(text).__name__}")
    if "\0" in text:
        raise BadRowError("NUL character", name)
    if not text.strip():
        raise BadRowError("empty text", name)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadRowError("half a character", name)
    return text


def json_object(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object. Raises BadRowError."""
    try:
        row = parse_json(as_text(line))
    except ValueError:
        raise BadRowError("not JSON", quoted(line.decode("utf-8", errors="replace"))) from None
    if not isinstance(row, dict):
        raise BadRowError("no JSON object", type(row).__name__)
    return row


def class_reader(task: Task) -> Callable[[object], float]:
    """Return the function from a label's word to the class's number; it raises BadRowError."""
    values = task.file_labels or task.labels
    numbers = {value: number for number, value in enumerate(values)}
    numbers |= {word: numbers[label] for word, label in task.synonyms.items()}

    def class_number(value: object) -> float:
        if not isinstance(value, str) or value not in numbers:
            raise BadRowError(UNKNOWN_LABEL, f"{quoted(str(value))} instead of {', '.join(values)}")
        return numbers[value]

    return class_number


def score_of(value: object) -> float:
    """Parse a score. Raises BadRowError."""
    try:
        number = float(str(value))
    except ValueError:
        number = float("nan")
    if not 0 <= number <= SCORE_CLASSES - 1:
        raise BadRowError(
            UNKNOWN_LABEL, f"{quoted(str(value))} instead of a score from 0 to {SCORE_CLASSES - 1}"
        )
    return number


CLUSTERS = "clusters.npz"  # beside task.json or set.json: an array a split


def cluster_ids(
    task: Task, examples: Sequence[Example], meaning_of: Callable[[str], str] | None = None
) -> npt.NDArray[np.int64]:
    """Number the clusters of rows [n], which a resample draws together, in order of occurrence.

    meaning_of: reduces a made-up text to its meaning; rows with equal meanings, in either order,
    are one cluster.
    """
    numbers: dict[Hashable, int] = {}
    return np.array(
        [
            numbers.setdefault(_key(task, row, example, meaning_of), len(numbers))
            for row, example in enumerate(examples)
        ],
        dtype=np.int64,
    )


def _key(
    task: Task, row: int, example: Example, meaning_of: Callable[[str], str] | None
) -> Hashable:
    if meaning_of:
        return tuple(sorted(map(meaning_of, example.context)))
    if task.cluster == "first text":
        return example.context[0]
    if task.cluster == "twins":  # alike up to the pronoun, with the same two candidates
        return (example.context[0], *sorted(choice.casefold() for choice in example.choices))
    return row
