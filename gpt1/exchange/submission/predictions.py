"""What a run answers on GLUE's test rows: the seed that is best on dev of each task, by the weights
chosen on dev.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, read_json
from gpt1.exchange.submission.board import DECIMALS, HIGHEST, LOWEST, BoardFile
from gpt1.exchange.submission.places import places_of
from gpt1.inference.finished import read_finished
from gpt1.tasks.metrics import predictions
from gpt1.tasks.table import SCORE_CLASSES, TASKS


@dataclass(frozen=True)
class Predicted:
    """The answers of a file in the order of its index; the seed they are of, its score on dev;
    which indices had no readable row.
    """

    answers: list[str]
    seed: int
    dev_score: float
    unreadable: tuple[int, ...]


def predicted(file: BoardFile, data: Path) -> Predicted | str:
    """A file's answers by the run whose folder `data` is, or why the run has none.

    Raises UserError where what the run left is broken, or the order of the rows cannot be known.
    """
    summaries = sorted(data.glob(f"finetune/*/{file.task}/summary.json"))
    if not summaries:
        return f"{file.task} is not fine-tuned"
    if len(summaries) > 1:
        raise UserError(
            f"expected one folder {data}/finetune/GROUP/{file.task}, found {len(summaries)}"
            f" ({summaries[0].parent}, {summaries[1].parent}); delete those of earlier groups"
        )
    done = read_finished(summaries[0].parent)
    best, again = done.best(), f"run gpt1 run finetune@{file.task}"
    path = data / "encode" / done.folder.parent.name / file.task / "task.json"
    labels = list(TASKS[file.task].labels)
    try:
        about = read_json(path)
        splits = dict(about["splits"])
        split = splits.get(file.split, {"examples": 0})
        examples = int(split["examples"])
        chosen_of = int(split.get("available", examples))
        rows = int(split.get("rows_read", examples))
        if about.get("labels", labels) != labels:
            raise ValueError(f"labels other than {', '.join(labels)}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected the splits and labels of the task, found others ({error}); {again}"
        ) from None
    if file.split not in splits:
        return (
            f"{file.task} was run without {file.split}: GLUE's file was not there, or eval_rows"
            " is set"
        )
    if examples != chosen_of or rows != file.rows:
        return (
            f"{file.task} has {examples if examples != chosen_of else rows} rows of {file.split},"
            f" not {file.rows}"
        )
    answers = _answers(file, done.weights(best).with_name("logits.npz"), examples, again)
    places = places_of(file, data / "acquire" / "tasks" / file.task, examples)
    by_place = dict(zip(places, answers, strict=True))
    return Predicted(
        [by_place.get(place, file.constant) for place in range(file.rows)],
        best,
        done.dev_scores[best],
        tuple(place for place in range(file.rows) if place not in by_place),
    )


def _answers(file: BoardFile, path: Path, examples: int, again: str) -> list[str]:
    """The words, or scores, of a split's rows in their order. Raises UserError where the logits are
    missing or broken.
    """
    name = f"{file.split}/best"
    try:
        logits: npt.NDArray[Any] = read_arrays(path, [name])[name]
    except (OSError, ValueError, KeyError):
        raise UserError(
            f"{path}: expected the logits {name}, found none that can be read; {again}"
        ) from None
    shape = (examples, len(file.words) or SCORE_CLASSES)
    if logits.shape != shape or logits.dtype.kind != "f" or not np.isfinite(logits).all():
        found = " x ".join(map(str, logits.shape)) if logits.shape != shape else "some that are not"
        raise UserError(
            f"{path}: {name}: expected {shape[0]} rows x {shape[1]} finite logits, found"
            f" {found}; {again}"
        )
    if file.words:
        return [file.words[answer] for answer in predictions(logits, "class").tolist()]
    return [
        f"{score:.{DECIMALS}f}"
        for score in np.clip(predictions(logits, "score"), LOWEST, HIGHEST).tolist()
    ]
