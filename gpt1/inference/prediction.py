"""A fine-tuned model on a file of its task: an official file, a Hugging Face export, or columns
first, second, choices and label.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.inference.saved import fields_of
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import Columns, Format, Passages
from gpt1.tasks.metrics import majority_score, score, standard_error
from gpt1.tasks.rows import UNKNOWN_LABEL, UNLABELLED, Example, Unreadable
from gpt1.tasks.table import Task

WRITERS = (".tsv", ".csv", ".jsonl")


class TaskFile(NamedTuple):
    """The examples of a file in their order, whether they have labels, and how many rows were left
    out for which reason.
    """

    examples: list[Example]
    labelled: bool
    left_out: dict[str, int]


def formats_of(task: Task) -> list[Format]:
    """Every format in which the task's files come, then our own columns; with labels first."""
    texts = tuple((name,) for name in fields_of(task) if name != "choices")
    labelled: list[Format] = [split.format for layout in task.layouts for split in layout]
    labelled.append(Columns("tsv", texts, ("label",)))
    own = Columns("export", texts, ("label",))
    labelled.append(own)
    if task.kind == "multiple_choice":
        numbers = range(1, len(task.labels) + 1)
        apart = tuple((f"choice{number}",) for number in numbers)
        labelled[-1:] = [replace(own, choices=apart), replace(own, choices=(("choices",),))]
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

    Raises UserError where the file is not there, is in none of the formats, or spells all its
    labels otherwise.
    """
    if not path.is_file():
        raise UserError(f"{path}: expected a file of {task.name}, found none; see --help")
    complaint = "no row"
    for form in formats_of(task):
        try:
            items = list(read_rows(path, form, task)) if fits(form, path) else []
        except UserError as error:
            complaint = str(error)
            continue
        examples = [item for item in items if isinstance(item, Example)]
        left_out = Counter(item.reason for item in items if isinstance(item, Unreadable))
        for item in items:
            if isinstance(item, Unreadable):
                complaint = f"row {item.row}: {item.detail}"
                break
        labelled = [example for example in examples if example.label != UNLABELLED]
        if labelled:
            left_out["no label"] = len(examples) - len(labelled)
        if examples:
            return TaskFile(labelled or examples, bool(labelled), dict(+left_out))
        if UNKNOWN_LABEL in left_out:
            break
    raise UserError(
        f"{path}: expected an official file of {task.name}, an export of it, or the columns"
        f" {', '.join(fields_of(task))} (and label), found none of them: {complaint}"
    )


def scores(
    task: Task, examples: list[Example], answers: list[dict[str, Any]]
) -> dict[str, dict[str, float]]:
    """Of each of the task's metrics, x 100: the model's score, one standard error of it, and the
    best score that looks at no input.
    """
    labels = np.array([example.label for example in examples])
    predicted = [
        task.labels.index(answer["label"]) if "label" in answer else answer["score"]
        for answer in answers
    ]
    if task.target == "class":
        labels = labels.astype(np.int64)
    return {
        metric: {
            "score": 100 * score(metric, labels, np.array(predicted)),
            "standard_error": 100 * standard_error(metric, labels, np.array(predicted)),
            "majority": 100 * majority_score(metric, labels),
        }
        for metric in (task.metric, task.second_metric)
        if metric
    }


def write_answers(path: Path, task: Task, answers: list[dict[str, Any]]) -> None:
    """A row an answer, as the suffix says: the answer as the task's files write it, and the
    probabilities. Raises UserError for another suffix.
    """
    if path.suffix not in WRITERS:
        raise UserError(f"{path}: expected a name that ends with {', '.join(WRITERS)}; name one")
    values = dict(zip(task.labels, task.values or task.labels, strict=True))
    rows: list[dict[str, Any]] = [
        {"prediction": values[answer["label"]] if "label" in answer else answer["score"]}
        | {f"p({name})": round(share, 6) for name, share in answer["probabilities"].items()}
        for answer in answers
    ]
    table = pd.DataFrame(rows)
    with writing(path) as file:
        if path.suffix == ".jsonl":
            table.to_json(file, orient="records", lines=True, force_ascii=False)
        else:
            table.to_csv(file, sep="\t" if path.suffix == ".tsv" else ",", index_label="index")
