"""The formats of the tasks' files: columns of every kind (gpt1/tasks/columns.py), RACE's passages,
DPRD's blocks.
"""

from pathlib import Path

from gpt1.tasks.columns import read_columns
from gpt1.tasks.layouts import Blocks, Columns, Format
from gpt1.tasks.pronouns import read_blocks
from gpt1.tasks.rows import (
    BadRowError,
    Example,
    Rows,
    Unreadable,
    class_reader,
    field,
    filled,
    json_object,
    numbered_lines,
)
from gpt1.tasks.table import Task


def read_rows(path: Path, format_: Format, task: Task) -> Rows:
    """Yield every row of a task's file in its order: an example, or why there is none.

    Raises UserError where the file as a whole is wrong: a missing header, a missing column.
    """
    if isinstance(format_, Columns):
        return read_columns(path, format_, task)
    return read_blocks(path) if isinstance(format_, Blocks) else _passages(path, task)


def _passages(path: Path, task: Task) -> Rows:
    """Read RACE as `acquire` combines it, one passage a line. A question that cannot be read counts
    as one row; so does a whole passage.
    """
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
