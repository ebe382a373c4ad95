"""The official file formats of the tasks: GLUE and other tab-separated files, SNLI's JSON lines,
RACE, Story Cloze, DPRD; and Hugging Face exports of them (gpt1/tasks/exports.py).
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gpt1.base.errors import UserError, not_utf8
from gpt1.tasks.exports import read_export
from gpt1.tasks.layouts import Blocks, Export, Format, Jsonl, Passages, Stories, Tsv
from gpt1.tasks.pronouns import read_blocks
from gpt1.tasks.rows import (
    UNLABELLED,
    BadRowError,
    Example,
    Rows,
    Unreadable,
    as_text,
    examples,
    field,
    filled,
    json_object,
    label_reader,
    numbered_lines,
    quoted,
)
from gpt1.tasks.table import Task

QUOTED = re.compile(r'"(?:[^"]|"")*"')
SHOWN_HEADER = 300  # characters
STORY = ("InputSentence1", "InputSentence2", "InputSentence3", "InputSentence4")
ENDINGS = ("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2")


def read_rows(path: Path, format_: Format, task: Task) -> Rows:
    """Every row of an official file, in its order: an example, or why there is none.

    Raises UserError where the file as a whole is not what it should be: a missing or unexpected
    header, a missing column.
    """
    label_of = label_reader(task)
    if isinstance(format_, Export):
        return read_export(path, format_, task)
    if isinstance(format_, Blocks):
        return read_blocks(path)
    if isinstance(format_, Passages):
        return _passages(path, format_, label_of, len(task.labels))
    if not format_.label:
        label_of = _unlabelled
    if isinstance(format_, Tsv):
        return _tsv(path, format_, label_of)
    if isinstance(format_, Jsonl):
        return _jsonl(path, format_, label_of)
    return _stories(path, format_, label_of)


def _unlabelled(_: object) -> float:
    return UNLABELLED


def _tsv(path: Path, format_: Tsv, label_of: Callable[[object], float]) -> Rows:
    lines = numbered_lines(path)
    needed = [*format_.texts, *([format_.label] if format_.label else [])]
    names = list(format_.columns)
    if not names:
        row, first = next(lines, (0, b""))
        try:
            names = as_text(first).split("\t") if row else []
        except BadRowError as bad:
            raise UserError(
                f"{path}: expected a header in UTF-8, found {bad.detail}; save the file as UTF-8"
            ) from None
        if row:
            _check_header(path, names, needed)
    place = {name: names.index(name) for name in needed if name in names}
    quoting = Counter[str]()
    for index, (number, line) in enumerate(lines):
        try:
            cells = as_text(line).split("\t")
            if format_.columns and index == 0:
                _check_no_header(path, cells, format_, label_of)
            if not len(names) <= len(cells) <= len(names) + format_.surplus:
                raise _wrong_width(len(cells), len(names))
            quoting.update(_quoting(cells[place[name]]) for name in format_.texts)
            yield Example(
                tuple(filled(name, cells[place[name]]) for name in format_.texts),
                label=label_of(cells[place[format_.label]] if format_.label else None),
            )
        except BadRowError as bad:
            yield bad.at(number)
    quoted_texts = quoting["doubled"] + quoting["whole"]
    if quoted_texts == quoting.total() > 9:
        raise UserError(
            f"{path}: all {quoted_texts} texts are quoted by the rule of CSV writers"
            ' ("What is ""it""?"); expected the official file, or one in which quotes are text'
            " (Python's csv.QUOTE_NONE)"
        )
    if quoting["doubled"] and not quoting["bare"]:
        print(
            f"note: {path}: {quoted_texts:,} texts are quoted by the rule of CSV writers, as in the"
            " official QQP; quotes are taken as text, as GLUE's readers do",
            file=sys.stderr,
        )


def _quoting(text: str) -> str:
    """How a cell has quotes: as a CSV writer alone writes them (doubled), as it may (whole), as it
    never does (bare), or not at all.
    """
    if '"' not in text:
        return ""
    if not QUOTED.fullmatch(text):
        return "bare"
    return "doubled" if '""' in text[1:-1] else "whole"


def _wrong_width(found: int, expected: int) -> BadRowError:
    return BadRowError(
        "too few columns" if found < expected else "too many columns",
        f"{found} instead of {expected}",
    )


def _check_header(path: Path, names: list[str], needed: list[str]) -> None:
    """Raises UserError where the first row is no header, or one that lacks a column."""
    missing = [name for name in needed if name not in names]
    if len(missing) == len(needed):
        raise UserError(
            f"{path}: expected a header with the columns {', '.join(needed)}; found the row"
            f" {quoted(' | '.join(names))}; put the official file with its header there"
        )
    if missing:
        raise UserError(
            f"{path}: the header lacks {', '.join(missing)}; found the columns"
            f" {', '.join(names)[:SHOWN_HEADER]}; put the official file there"
        )


def _check_no_header(
    path: Path, cells: list[str], format_: Tsv, label_of: Callable[[object], float]
) -> None:
    """Raises UserError where the first row is a header (single words, no label) in a file that has
    none.
    """
    label = cells[format_.columns.index(str(format_.label)) :][:1]
    try:
        label_of(label[0] if label else "")
    except BadRowError:
        if len(cells) > 1 and not any(" " in cell for cell in cells):
            raise UserError(
                f"{path}: expected no header, rows of {', '.join(format_.columns)}; found the"
                f" header {quoted(' | '.join(cells))}; take that row away, or put the official file"
                " there"
            ) from None


def _jsonl(path: Path, format_: Jsonl, label_of: Callable[[object], float]) -> Rows:
    def example(line: bytes) -> Example:
        row = json_object(line)
        label = field(row, format_.label) if format_.label else None
        texts = tuple(filled(name, field(row, name)) for name in format_.texts)
        return Example(texts, label=label_of(label))

    return examples(numbered_lines(path), example)


def _passages(
    path: Path, format_: Passages, label_of: Callable[[object], float], choices: int
) -> Rows:
    """RACE as `acquire` combines it, one passage a line. A question that cannot be read is one row;
    so is a whole passage.
    """
    for number, line in numbered_lines(path):
        try:
            row = json_object(line)
            where = str(row.get("file", ""))
            if "unreadable" in row:
                raise BadRowError(str(row["unreadable"]), where)
            article = filled("article", field(row, "article"))
            columns = [field(row, name) for name in ("questions", "options", format_.label)]
            if not all(
                isinstance(column, list) and len(column) == len(columns[0]) for column in columns
            ):
                raise BadRowError("unequal numbers of questions, options and answers", where)
        except BadRowError as bad:
            yield bad.at(number)
            continue
        for question, options, answer in zip(*columns, strict=True):
            try:
                if not isinstance(options, list) or len(options) != choices:
                    raise BadRowError(f"not {choices} options", where)
                texts = [filled("option", option) for option in options]
                yield Example(
                    (article, filled("question", question)), tuple(texts), label_of(answer)
                )
            except BadRowError as bad:
                yield Unreadable(number, bad.reason, f"{bad.detail} in {where}")


def _stories(path: Path, format_: Stories, label_of: Callable[[object], float]) -> Rows:
    needed = [*STORY, *ENDINGS, *([format_.label] if format_.label else [])]
    place: dict[str, int] = {}
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(csv.reader(file, strict=True), start=1):
                if number == 1:
                    _check_header(path, cells, needed)
                    width, place = len(cells), {name: cells.index(name) for name in needed}
                    continue
                try:
                    if len(cells) != width:
                        raise _wrong_width(len(cells), width)
                    texts = [filled(name, cells[place[name]]) for name in (*STORY, *ENDINGS)]
                    if any("\n" in text for text in texts):
                        raise BadRowError(
                            "line break in a sentence", "look for an unbalanced quote"
                        )
                    label = label_of(cells[place[format_.label]] if format_.label else None)
                    yield Example((" ".join(texts[:4]),), tuple(texts[4:]), label)
                except BadRowError as bad:
                    yield bad.at(number)
    except csv.Error as error:
        raise UserError(
            f"{path}: no CSV after row {number} ({error}); look there for an unbalanced quote, or"
            " get the file again"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 after row {number} ({not_utf8(error)}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}; run the acquire stage again"
        ) from None
