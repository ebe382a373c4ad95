"""Readers of the tasks' files: tables, RACE's passages, DPRD's blocks."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.tasks.definitions import Task
from gpt1.tasks.layouts import BlockFormat, Format, Names, TableFormat
from gpt1.tasks.rows import (
    BLANK_LABELS,
    UNLABELLED,
    BadRowError,
    Example,
    Rows,
    Unreadable,
    as_text,
    class_reader,
    examples,
    field,
    filled,
    json_object,
    numbered_lines,
    quoted,
    score_of,
)
from gpt1.tasks.table_files import open_table

QUOTED = re.compile(r'"(?:[^"]|"")*"')
SHOWN_COLUMNS = 300  # characters
BLOCK = ("sentence", "pronoun", "candidates", "answer")


def read_columns(path: Path, format_: TableFormat, task: Task, labelled: bool) -> Rows:
    """Yield the rows of a table; without a label they are UNLABELLED. Raises UserError where the
    whole file is wrong.
    """
    table = open_table(path, format_)
    columns = _Places(path, format_, table.names, labelled)
    label_of = _label_reader(path, task, table.features.get(columns.label))
    quoted_wholly = Counter[bool]()

    def example(row: Any) -> Example:
        record = table.parse(row)
        label = label_of(record.get(columns.label)) if columns.label else UNLABELLED
        read = columns.example(record, task, label)
        if format_.form == "tsv":
            quoted_wholly.update(bool(QUOTED.fullmatch(text)) for text in read.context)
        return read

    yield from examples(table.rows(columns.needed), example)
    if quoted_wholly[True] == quoted_wholly.total() > 9:
        raise UserError(
            f"{path}: all {quoted_wholly.total()} texts are quoted by the rule of CSV writers"
            ' ("What is ""it""?"); expected the official file, or one in which quotes are text'
            " (Python's csv.QUOTE_NONE)"
        )


class _Places:
    """A file's columns, found by their names. Raises UserError where one is missing."""

    def __init__(self, path: Path, format_: TableFormat, names: list[str], labelled: bool) -> None:
        self.joined = format_.joined
        missing: list[str] = []

        def column(named: Names, required: bool = True) -> str:
            match = next((name for name in named if name in names), "")
            if named and required and not match:
                missing.append(" or ".join(named))
            return match

        self.texts = [column(named) for named in format_.texts]
        self.choices = [column(named) for named in format_.choices]
        self.label = column(format_.label, labelled)
        self.needed = [*filter(None, (*self.texts, *self.choices, self.label))]
        if missing:
            raise UserError(
                f"{path}: expected the columns {', '.join(missing)}; found"
                f" {', '.join(map(quoted, names))[:SHOWN_COLUMNS] or 'none'}; put the official"
                " file, or an export of this task, there with its columns as they were"
            )

    def example(self, record: Mapping[str, Any], task: Task, label: float) -> Example:
        """Make an example of a row. Raises BadRowError."""
        texts = [filled(name, field(record, name)) for name in self.texts]
        options = [field(record, name) for name in self.choices]
        if len(options) == 1:
            options = options[0] if isinstance(options[0], list) else []
        if self.choices and len(options) != len(task.labels):
            raise BadRowError(f"not {len(task.labels)} options", self.choices[0])
        choices = [filled("option", option) for option in options]
        if self.joined and any("\n" in text for text in (*texts, *choices)):
            raise BadRowError("line break in a sentence", "look for an unbalanced quote")
        return Example(
            (" ".join(texts),) if self.joined else tuple(texts),
            tuple(choices),
            label,
        )


def _label_reader(path: Path, task: Task, feature: Any) -> Any:
    """Return the function from a row's label to the class's number, the score, or UNLABELLED.
    Raises UserError where the file numbers labels otherwise.
    """
    numbering = dict(enumerate(task.export_labels))
    names = feature.get("names") if isinstance(feature, dict) else None
    if isinstance(names, list) and numbering != dict(enumerate(map(str, names))):
        raise UserError(
            f"{path}: its label integers mean {_numbering(dict(enumerate(names)))}; expected"
            f" {_numbering(numbering) or 'labels as words'}; export it with that order, or with"
            " words"
        )
    classes = class_reader(task)

    def label_of(value: object) -> float:
        if value in BLANK_LABELS:
            return UNLABELLED
        if task.target == "score":
            return score_of(value)
        if isinstance(value, float) and value.is_integer():  # pandas' integers with gaps
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value if value in numbering else classes(str(value))
        if isinstance(value, str) and value in task.export_labels:
            return task.export_labels.index(value)
        return classes(value)

    return label_of


def _numbering(names: Mapping[int, str]) -> str:
    return ", ".join(f"{number} {name}" for number, name in names.items())


def read_rows(path: Path, format_: Format, task: Task, labelled: bool) -> Rows:
    """Yield an example of each row, or why there is none. Raises UserError where the whole file is
    wrong, or has no column of labels and must be `labelled`.
    """
    if isinstance(format_, TableFormat):
        return read_columns(path, format_, task, labelled)
    return read_blocks(path) if isinstance(format_, BlockFormat) else _passages(path, task)


def _passages(path: Path, task: Task) -> Rows:
    """Read RACE as stage acquire combines it. An unreadable question or passage is one row."""
    label_of, choices = class_reader(task), len(task.labels)
    for number, line in numbered_lines(path):
        try:
            row = json_object(line)
            where = str(row.get("file", ""))
            if "unreadable" in row:
                raise BadRowError(str(row["unreadable"]), where)
            article = filled("article", field(row, "article"))
            columns = [field(row, name) for name in ("questions", "options", "answers")]
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


def read_blocks(path: Path) -> Rows:
    """Yield DPRD's examples: the text before the pronoun (often empty) and after it; candidates are
    choices. Raises UserError.
    """
    return examples(_blocks(path), _block_example)


def _blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    for blank, block in groupby(numbered_lines(path), lambda numbered: not numbered[1].strip()):
        if not blank:
            (first, *_), lines = zip(*block, strict=True)
            yield first, list(lines)


def _block_example(lines: list[bytes]) -> Example:
    texts = [as_text(line) for line in lines]
    if len(texts) != len(BLOCK):
        raise BadRowError("not four lines", f"{len(texts)} lines from {quoted(texts[0])}")
    sentence, pronoun, candidates, answer = (
        filled(name, text).strip() for name, text in zip(BLOCK, texts, strict=True)
    )
    names = [name.strip() for name in candidates.split(",")]
    if len(names) != 2 or not all(names):
        raise BadRowError("not two candidates", quoted(candidates))
    folded = [name.casefold() for name in names]
    if folded[0] == folded[1]:
        raise BadRowError("equal candidates", quoted(candidates))
    if answer.casefold() not in folded:
        raise BadRowError("answer is no candidate", f"{quoted(answer)} of {quoted(candidates)}")
    match = pronoun_place(sentence, pronoun)
    if match is None:
        raise BadRowError("pronoun not in the sentence", f"{quoted(pronoun)} in {quoted(sentence)}")
    before, after = sentence[: match.start()].strip(), sentence[match.end() :].strip()
    if not after:
        raise BadRowError("nothing after the pronoun", quoted(sentence))
    return Example((before, after), tuple(names), folded.index(answer.casefold()))


def pronoun_place(sentence: str, pronoun: str) -> re.Match[str] | None:
    """Find the pronoun's first occurrence as a whole word, which the data's authors mean."""
    return re.search(rf"(?<!\w){re.escape(pronoun)}(?!\w)", sentence, re.IGNORECASE)
