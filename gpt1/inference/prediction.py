"""A fine-tuned model on a file of its task."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.inference.saved import fields_of
from gpt1.tasks.definitions import Task
from gpt1.tasks.file_rows import read_rows
from gpt1.tasks.layouts import Form, Format, PassageFormat, TableFormat
from gpt1.tasks.metrics import majority_score, score, standard_error
from gpt1.tasks.rows import UNLABELLED, Example, Unreadable, numbered_lines

WRITERS = (".tsv", ".csv", ".jsonl")


class TaskFile(NamedTuple):
    """The examples of a file by row, from 0, and why others were left out."""

    examples: dict[int, Example]
    left_out: dict[str, int]

    @property
    def labelled(self) -> list[int]:
        """Return the rows with a label."""
        return [row for row, example in self.examples.items() if example.label != UNLABELLED]


def formats_of(task: Task, path: Path) -> list[Format]:
    """Return formats in which a file may hold examples: named columns as in official files or ours,
    then official files without names.
    """
    _, head = next(numbered_lines(path), (0, b""))
    official = [split.format for layout in task.layouts for split in layout]
    texts = tuple((name,) for name in fields_of(task) if name != "choices")
    apart = tuple((f"choice{number + 1}",) for number in range(len(task.labels)))
    choices = (apart, (("choices",),)) if task.kind == "multiple_choice" else ((),)
    tables = [form for form in official if isinstance(form, TableFormat)]
    tables += [TableFormat("export", texts, choices=columns) for columns in choices]
    labels = [name for form in tables for name in form.label] + ["label", "gold_label"]
    forms: tuple[Form, ...] = ("csv", "tsv") if path.suffix == ".csv" else ("tsv", "csv")
    unnamed: list[Format] = [form for form in tables if form.header]
    if path.suffix == ".parquet":
        forms, unnamed = ("export",), []
    elif path.suffix in (".json", ".jsonl") or head.startswith(b"{"):
        forms, unnamed = ("jsonl",), [form for form in official if isinstance(form, PassageFormat)]
    named = [
        replace(form, form=kind, label=tuple(labels), header=())
        for kind in forms
        for form in tables
    ]
    return list(dict.fromkeys([*named, *unnamed]))


def read_file(path: Path, task: Task) -> TaskFile:
    """Read a file in the format that reads most rows. Raises UserError where that is half or
    less.
    """
    if not path.is_file():
        raise UserError(f"{path}: expected a file of {task.name}, found none; see --help")
    best, bad, complaint = list[Example | Unreadable](), list[Unreadable](), "it has no row"
    for form in reversed(formats_of(task, path)):
        try:
            items = list(read_rows(path, form, task, labelled=False))
        except UserError as error:
            complaint = str(error).removeprefix(f"{path}: ")
            continue
        unread = [parsed for parsed in items if isinstance(parsed, Unreadable)]
        by_place = isinstance(form, TableFormat) and form.header
        if by_place and unread[:1] == items[:1] and len(unread) < len(items):
            continue  # the first row is a header
        if len(items) - len(unread) >= len(best) - len(bad):
            best, bad = items, unread
    if 2 * len(bad) >= len(best):
        if bad:
            complaint = (
                f"{len(bad)} of {len(best)} rows cannot be read, the first is row {bad[0].row}:"
                f" {bad[0].detail}"
            )
        raise UserError(
            f"{path}: expected an official file of {task.name}, an export of it, or the columns"
            f" {', '.join(fields_of(task))} (and label): {complaint}"
        )
    examples = {row: parsed for row, parsed in enumerate(best) if isinstance(parsed, Example)}
    return TaskFile(examples, Counter(parsed.reason for parsed in bad))


def scores(
    task: Task, rows: TaskFile, answers: dict[int, dict[str, Any]]
) -> dict[str, dict[str, float]]:
    """Return by metric, x 100: score, standard error, the best constant answer's score."""
    labels = np.array([rows.examples[row].label for row in rows.labelled])
    predicted = np.array(
        [
            task.labels.index(answer["label"]) if "label" in answer else answer["score"]
            for answer in map(answers.__getitem__, rows.labelled)
        ]
    )
    if task.target == "class":
        labels = labels.astype(np.int64)
    return {
        metric: {
            "score": 100 * score(metric, labels, predicted),
            "standard_error": 100 * standard_error(metric, labels, predicted),
            "majority": 100 * majority_score(metric, labels),
        }
        for metric in (task.metric, task.second_metric)
        if metric
    }


def write_answers(path: Path, task: Task, answers: dict[int, dict[str, Any]]) -> None:
    """Write a row per answer: its row in the file, from 0, the answer, probabilities."""
    values = dict(zip(task.labels, task.file_labels or task.labels, strict=True))
    rows: list[dict[str, Any]] = [
        {
            "index": row,
            "prediction": values[answer["label"]] if "label" in answer else answer["score"],
        }
        | {f"p({name})": round(share, 6) for name, share in answer["probabilities"].items()}
        for row, answer in answers.items()
    ]
    table = pd.DataFrame(rows)
    with writing(path) as file:
        if path.suffix == ".jsonl":
            table.to_json(file, orient="records", lines=True, force_ascii=False)
        else:
            table.to_csv(file, sep="\t" if path.suffix == ".tsv" else ",", index=False)
