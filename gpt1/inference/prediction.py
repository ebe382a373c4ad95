"""A fine-tuned model on a file of its task: an official file, a Hugging Face export, or columns
first, second, choices and label.
"""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.inference.saved import FIELDS, Answer, TaskModel, choices_of, texts_of
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import Columns, Format, Passages
from gpt1.tasks.metrics import majority_score, score, standard_error
from gpt1.tasks.rows import UNKNOWN_LABEL, UNLABELLED, Example, Unreadable
from gpt1.tasks.table import Task

MOST_UNKNOWN = 0.25  # of a file's labels; with more a score of the rest says nothing of the file
WRITERS = (".tsv", ".csv", ".jsonl")


@dataclass(frozen=True)
class TaskFile:
    """The examples of a file in their order, whether they have labels, and how many rows were left
    out for which reason.
    """

    examples: list[Example]
    labelled: bool
    left_out: dict[str, int]


def formats_of(task: Task) -> list[Format]:
    """Every format in which the task's files come, then our own columns; with labels first."""
    texts = FIELDS[: texts_of(task)]
    lists = [tuple((f"choice{number}",) for number in range(1, choices_of(task) + 1))]
    lists += [(("choices",),)] if choices_of(task) else []
    names = tuple((text,) for text in texts)
    own = [Columns("export", names, ("label",), each) for each in lists]
    labelled = [
        *(split.format for layout in task.layouts for split in layout),
        Columns("tsv", names, ("label",)),
        *own,
    ]
    unlabelled = [
        replace(form, hidden=True)
        for form in labelled
        if isinstance(form, Columns) and not form.header
    ]
    return list(dict.fromkeys([*labelled, *unlabelled]))


def fits(form: Format, path: Path) -> bool:
    """Whether a file of this name may be in a format."""
    lines = path.suffix in (".jsonl", ".json")
    if isinstance(form, Columns) and form.form == "export":
        return lines or path.suffix in (".csv", ".parquet", ".arrow")
    of_lines = isinstance(form, Passages) or (isinstance(form, Columns) and form.form == "jsonl")
    return lines == of_lines or path.suffix == ".txt"


def read_file(path: Path, task: Task) -> TaskFile:
    """Read a file by the first format in which a row of it can be read, with its labels if it has
    any.

    Raises UserError where the file is not there, is in none of the formats, or spells its labels
    otherwise.
    """
    if not path.is_file():
        raise UserError(f"{path}: expected a file of {task.name}, found none; see --help")
    misspelt, complaint = None, "no row with a label"
    for form in formats_of(task):
        if not fits(form, path) or (
            misspelt and (getattr(form, "hidden", False) or not form.label)
        ):
            continue
        try:
            items = list(read_rows(path, form, task))
        except UserError as error:
            complaint = str(error)
            continue
        examples = [item for item in items if isinstance(item, Example)]
        left = [item for item in items if isinstance(item, Unreadable)]
        unknown = [item for item in left if item.reason == UNKNOWN_LABEL]
        if len(unknown) > MOST_UNKNOWN * (len(examples) + len(unknown)):
            misspelt = misspelt or UserError(
                f"{path}: {len(unknown)} of {len(items)} rows have another label than"
                f" {task.name}, first row {unknown[0].row}: {unknown[0].detail}; spell them so, or"
                " leave their column out"
            )
        elif examples:
            labelled = [example for example in examples if example.label != UNLABELLED]
            reasons = Counter(item.reason for item in left)
            if labelled:
                reasons["no label"] += len(examples) - len(labelled)
            return TaskFile(labelled or examples, bool(labelled), dict(+reasons))
        elif left:
            complaint = f"row {left[0].row}: {left[0].detail}"
    columns = ", ".join((*FIELDS[: texts_of(task)], *["choices"] * bool(choices_of(task))))
    raise misspelt or UserError(
        f"{path}: expected an official file of {task.name}, an export of it, or the columns"
        f" {columns} (and label), found none of them: {complaint}"
    )


def answer_all(model: TaskModel, examples: list[Example]) -> list[Answer]:
    """The answers to some examples, with a bar on a terminal."""
    quiet = not sys.stderr.isatty()
    return [model.answer(one) for one in tqdm(examples, unit="row", leave=False, disable=quiet)]


def scores(
    task: Task, examples: list[Example], answers: list[Answer]
) -> dict[str, dict[str, float]]:
    """Of each of the task's metrics, x 100: the model's score, one standard error of it, and the
    best score that looks at no input.
    """
    labels = np.array([example.label for example in examples])
    found = [one.score if one.label is None else task.labels.index(one.label) for one in answers]
    if task.target == "class":
        labels = labels.astype(np.int64)
    return {
        metric: {
            "score": 100 * score(metric, labels, np.array(found)),
            "standard_error": 100 * standard_error(metric, labels, np.array(found)),
            "majority": 100 * majority_score(metric, labels),
        }
        for metric in (task.metric, task.second_metric)
        if metric
    }


def write_answers(path: Path, task: Task, answers: list[Answer]) -> None:
    """A row an answer, as the suffix says: the answer as the task's files write it, and the
    probabilities. Raises UserError for another suffix.
    """
    if path.suffix not in WRITERS:
        raise UserError(f"{path}: expected a name that ends with {', '.join(WRITERS)}; name one")
    values = dict(zip(task.labels, task.values or task.labels, strict=True))
    rows: list[dict[str, Any]] = [
        {"prediction": one.score if one.label is None else values[one.label]}
        | {f"p({name})": round(share, 6) for name, share in one.probabilities.items()}
        for one in answers
    ]
    table = pd.DataFrame(rows)
    with writing(path) as file:
        if path.suffix == ".jsonl":
            table.to_json(file, orient="records", lines=True, force_ascii=False)
        else:
            table.to_csv(file, sep="\t" if path.suffix == ".tsv" else ",", index_label="index")
