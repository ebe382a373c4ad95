"""A saved model on a file in one of its task's official formats, whichever it is: its examples, and
what could not be read; the task's metrics where it has labels, predictions in any case.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.inference.saved import Answer, TaskModel
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import Format, Jsonl, Tsv
from gpt1.tasks.metrics import majority_score, score, standard_error
from gpt1.tasks.rows import NO_LABEL, UNKNOWN_LABEL, UNLABELLED, Example, Unreadable
from gpt1.tasks.table import Task

LOOKED_AT = 200  # rows by which the format is known
MOST_UNKNOWN = 0.25  # of a file's labels; with more a score of the rest says nothing of the file


@dataclass(frozen=True)
class OfficialFile:
    """The examples of a file in their order; unreadable: how many rows for which reason; left_out:
    those that the field leaves out too.
    """

    examples: list[Example]
    labelled: bool
    unreadable: dict[str, int]
    left_out: dict[str, int]


def formats_of(task: Task, file_name: str) -> list[Format]:
    """Every format in which the task's files come, and those without their labels: that of a file
    of this name first.
    """
    splits = [split for layout in task.layouts for split in layout]
    ordered = [
        *(split.format for split in splits if file_name in split.files),
        *(split.format for split in splits),
    ]
    headed = [
        form
        for form in ordered
        if isinstance(form, Tsv | Jsonl) and not (isinstance(form, Tsv) and form.columns)
    ]
    without = [replace(form, label=None) for form in headed if isinstance(form, Tsv | Jsonl)]
    return list(dict.fromkeys(sorted((*ordered, *without), key=lambda form: form.label is None)))


def read_official(path: Path, task: Task) -> OfficialFile:
    """Read a file by the first format that most of its first rows have, labels if there are any.

    Raises UserError where the file is not there, has no rows, is in none of the task's formats, or
    spells its labels otherwise.
    """
    if not path.is_file():
        raise UserError(
            f"{path}: expected a file in an official format of {task.name}, found"
            f" {'a folder' if path.is_dir() else 'none'}; such files lie in"
            f" data/acquire/tasks/{task.name}/"
        )
    complaints: list[str] = []
    misspelt: UserError | None = None
    for form in formats_of(task, path.name):
        if misspelt and form.label is None:
            break
        try:
            counted, bad = _counts(islice(read_rows(path, form, task), LOOKED_AT))
            if counted > len(bad) and (found := _read(path, form, task)):
                return found
        except MisspeltError as error:
            misspelt = misspelt or error
            continue
        except UserError as error:
            complaints.append(str(error))
            continue
        complaints += [f"row {row.row}: {row.detail}" for row in bad[:1]]
    raise misspelt or UserError(
        f"{path}: expected a file in an official format of {task.name}, found none of them: "
        f"{complaints[0] if complaints else 'it has no rows with a label'}; see {task.origin}"
    )


class MisspeltError(UserError):
    """A file has labels, but too many are none of the task's."""


def _counts(rows: Iterable[Example | Unreadable]) -> tuple[int, list[Unreadable]]:
    """How many rows are in a format, whatever their labels; and those that are not."""
    items = list(rows)
    bad = [
        item
        for item in items
        if isinstance(item, Unreadable)
        and not item.expected
        and item.reason not in (UNKNOWN_LABEL, NO_LABEL)
    ]
    return len(items) - len(bad), bad


def _read(path: Path, form: Format, task: Task) -> OfficialFile | None:
    """None where the file has a column of labels, and no label in it."""
    items = list(read_rows(path, form, task))
    examples = [item for item in items if isinstance(item, Example)]
    left = [item for item in items if isinstance(item, Unreadable)]
    unknown = [item for item in left if item.reason == UNKNOWN_LABEL]
    if len(unknown) > MOST_UNKNOWN * (len(examples) + len(unknown)):
        raise MisspeltError(
            f"{path}: {len(unknown)} of {len(items)} rows have another label than the task; the"
            f" first is row {unknown[0].row}: {unknown[0].detail}; spell them so, or leave their"
            " column out for predictions alone"
        )
    if not examples:
        return None
    unreadable, left_out = (
        Counter(item.reason for item in left if item.expected is expected)
        for expected in (False, True)
    )
    if gold := [
        example for example in examples if example.label != UNLABELLED
    ]:  # an export has -1 for a label that there is not
        left_out["no gold label"] += len(examples) - len(gold)
    labelled = form.label is not None and bool(gold)
    return OfficialFile(gold if labelled else examples, labelled, dict(unreadable), dict(+left_out))


@dataclass(frozen=True)
class Score:
    """A metric in the paper's units (times 100): the model's, one standard error of it, and what an
    answer that looks at no input gets.
    """

    metric: str
    value: float
    standard_error: float
    blind: float


def answer_all(model: TaskModel, file: OfficialFile) -> list[Answer]:
    """The answers to a file's examples, in order, with a bar on a terminal."""
    return list(
        tqdm(
            model.answers(file.examples),
            total=len(file.examples),
            unit="example",
            leave=False,
            disable=not sys.stderr.isatty(),
        )
    )


def scores(task: Task, file: OfficialFile, answers: list[Answer]) -> list[Score]:
    """The task's metrics of the answers; none where the file has no labels."""
    if not file.labelled:
        return []
    if task.target == "score":
        labels, found = (
            np.array([one.label for one in file.examples]),
            np.array([one.score for one in answers], dtype=np.float64),
        )
    else:
        labels = np.array([int(one.label) for one in file.examples])
        found = np.array([task.labels.index(str(one.label)) for one in answers])
    return [
        Score(
            metric,
            100 * score(metric, labels, found),
            100 * standard_error(metric, labels, found),
            100 * majority_score(metric, labels),
        )
        for metric in (task.metric, task.second_metric)
        if metric
    ]


def write_predictions(path: Path, task: Task, answers: list[Answer]) -> None:
    """A tab-separated file: the readable row's number from 0, the answer as the task's files write
    it, the probabilities.
    """
    names = list(answers[0].probabilities)
    values = dict(zip(task.labels, task.values or task.labels, strict=True))
    with writing(path) as file:
        file.write("\t".join(("index", "prediction", *(f"p({name})" for name in names))) + "\n")
        for index, one in enumerate(answers):
            said = f"{one.score:.6f}" if one.score is not None else values[str(one.label)]
            file.write(
                "\t".join((str(index), said, *(f"{one.probabilities[name]:.6f}" for name in names)))
                + "\n"
            )


def record(task: Task, seed: int, file: OfficialFile, found: list[Score]) -> dict[str, Any]:
    """The outcome as plain values, for programs."""
    return {
        "task": task.name,
        "seed": seed,
        "examples": len(file.examples),
        "labelled": file.labelled,
        "unreadable": file.unreadable,
        "left_out": file.left_out,
        "scores": {one.metric: vars(one) for one in found},
    }
