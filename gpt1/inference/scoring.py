"""A saved model on a file in its task's official format: the task's metrics where the file has
labels, predictions in any case.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from gpt1.base.files import writing
from gpt1.inference.official import OfficialFile
from gpt1.inference.saved import Answer, TaskModel
from gpt1.tasks.metrics import majority_score, score, standard_error
from gpt1.tasks.table import Task


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
