"""The fields of a task as a person or a program gives them: one text, a pair, or what stands before
the choices, and the choices.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpt1.base.errors import UserError
from gpt1.tasks.layouts import Jsonl, Passages, Tsv
from gpt1.tasks.rows import BYTE_ORDER_MARK, BadRowError, Example, as_text, filled
from gpt1.tasks.table import Task

FIELDS = ("first", "second", "choices")


def texts_of(task: Task) -> int:
    """How many texts an example has beside its choices: 1 or 2."""
    form = task.layouts[0][0].format
    if isinstance(form, Tsv | Jsonl):
        return len(form.texts)
    return 2 if isinstance(form, Passages) else 1


def choices_of(task: Task) -> int:
    """How many choices an example has; 0 where the task is not one of choosing."""
    return len(task.labels) if task.kind == "multiple_choice" else 0


def fields_of(task: Task) -> str:
    """What an example of the task consists of, in words."""
    choices = choices_of(task)
    return ", ".join((*FIELDS[: texts_of(task)], *((f"{choices} choices",) if choices else ())))


def make_example(
    task: Task,
    first: object,
    second: object = None,
    choices: Sequence[object] = (),
    where: str = "the example",
) -> Example:
    """An example of a task from its fields. Raises UserError, naming `where`, for other fields than
    the task has, or empty ones.
    """
    texts = [text for text in (first, second) if text is not None]
    if first is None or len(texts) != texts_of(task) or len(choices) != choices_of(task):
        given = {"first": first, "second": second, f"{len(choices)} choices": choices or None}
        found = ", ".join(name for name, value in given.items() if value is not None) or "nothing"
        raise UserError(
            f"{where}: expected {fields_of(task)} for {task.name}, found {found}; give these fields"
            " and no others"
        )
    try:
        named = [filled(name, text) for name, text in zip(FIELDS, texts, strict=False)]
        return Example(
            tuple(named),
            tuple(filled(f"choice {number}", text) for number, text in enumerate(choices, start=1)),
        )
    except BadRowError as bad:
        raise UserError(
            f"{where}: expected text in every field, found {bad.detail}; give a text there"
        ) from None


def example_from_record(task: Task, record: Any, where: str) -> Example:
    """An example from {"first": …, "second": …, "choices": […]}, absent or null fields left out.
    Raises UserError as above.
    """
    if not isinstance(record, dict):
        raise UserError(
            f"{where}: expected an object with {fields_of(task)}, found {type(record).__name__}"
        )
    if strange := sorted(set(record) - set(FIELDS)):
        raise UserError(
            f"{where}: expected the fields {', '.join(FIELDS)}, found"
            f" {', '.join(map(repr, strange))}"
        )
    choices = record.get("choices")
    if choices is not None and (isinstance(choices, str) or not isinstance(choices, Sequence)):
        raise UserError(
            f"{where}: expected a list of texts as choices, found {type(choices).__name__}"
        )
    return make_example(task, record.get("first"), record.get("second"), choices or (), where)


def examples_from_lines(task: Task, lines: Iterable[bytes]) -> Iterator[Example]:
    """The examples in the lines of a file, but for those without a word. Raises UserError as
    above, and for what is no UTF-8.
    """
    for number, line in enumerate(lines, start=1):
        try:
            text = as_text(line.removeprefix(BYTE_ORDER_MARK if number == 1 else b""))
        except BadRowError as bad:
            if not line.strip():
                continue
            raise UserError(
                f"line {number}: expected text in UTF-8, found {bad.detail}; save the lines so"
            ) from None
        yield example_from_line(task, text.rstrip("\r\n"), f"line {number}")


def example_from_line(task: Task, line: str, where: str) -> Example:
    """An example from a line: its fields with tabs between, in order, or a JSON object. Raises
    UserError as above.
    """
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(
                f"{where}: expected a JSON object, for the line begins with a brace; found none"
            ) from None
        return example_from_record(task, record, where)
    cells, texts, choices = line.split("\t"), texts_of(task), choices_of(task)
    if len(cells) != texts + choices:
        raise UserError(
            f"{where}: expected {fields_of(task)} with tabs between, {texts + choices} in all,"
            f" found {len(cells)}"
        )
    return make_example(task, cells[0], cells[1] if texts == 2 else None, cells[texts:], where)
