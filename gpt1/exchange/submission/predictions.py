"""What a run answers on GLUE's test rows: the seed that is best on dev of each task, by the weights
chosen on dev.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, read_json
from gpt1.exchange.submission.board import DECIMALS, HIGHEST, LOWEST, BoardFile
from gpt1.inference.finished import finetuned_folders, read_finished
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import Format, Split, Tsv
from gpt1.tasks.metrics import predictions
from gpt1.tasks.readers import files_of
from gpt1.tasks.rows import BadRowError, Example, as_text, numbered_lines
from gpt1.tasks.table import SCORE_CLASSES, TASKS

INDEX = "index"
MOST_DIGITS = 7


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
    folders = [path for path in finetuned_folders(data) if path.name == file.task]
    if not folders:
        return f"{file.task} is not fine-tuned"
    if len(folders) > 1:
        raise UserError(
            f"expected one folder {data}/finetune/GROUP/{file.task}, found {len(folders)}"
            f" ({folders[0]}, {folders[1]}); delete those of earlier groups"
        )
    done = read_finished(folders[0])
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
    name, shape = f"{file.split}/best", (examples, len(file.words) or SCORE_CLASSES)
    try:
        logits: npt.NDArray[Any] = read_arrays(path, [name])[name]
        if logits.shape != shape or logits.dtype.kind != "f" or not np.isfinite(logits).all():
            raise ValueError(f"{logits.dtype} in shape {list(logits.shape)}, or some not finite")
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{path}: expected {shape[0]} rows x {shape[1]} finite logits {name}, found others"
            f" ({error}); {again}"
        ) from None
    if file.words:
        return [file.words[answer] for answer in predictions(logits, "class").tolist()]
    return [
        f"{score:.{DECIMALS}f}"
        for score in np.clip(predictions(logits, "score"), LOWEST, HIGHEST).tolist()
    ]


def places_of(file: BoardFile, official: Path, examples: int) -> list[int]:
    """The index of each example: that of the official file where it has a column for it, else the
    row's place, from 0.

    The original files of MRPC and STS-B have none: GLUE numbers msr_paraphrase_test.txt and
    sts-test.csv in their own order. Without the official file, which needs not be kept, the
    examples are all rows in order. Raises UserError where they are not.
    """
    again = f"run gpt1 run finetune@{file.task}, or bring GLUE's own files and do so"
    split = _split(file, official)
    if split is None:
        if examples != file.rows:
            raise UserError(
                f"{official}: expected the official file of {file.split}, to know which"
                f" {file.rows - examples} of its rows cannot be read, found none; {again}"
            )
        return list(range(examples))
    places, place = [], -1
    for name in [part for parts in files_of(split, official) for part in parts]:
        form, indexed = _with_index(split.format, official / name)
        for item in read_rows(official / name, form, TASKS[file.task]):
            place += 1
            if isinstance(item, Example):
                places.append(_number(item.context[-1]) if indexed else place)
    if (
        len(places) != examples
        or len(set(places)) != examples
        or not all(0 <= place < file.rows for place in places)
    ):
        raise UserError(
            f"{official / split.files[0]}: expected {examples} readable rows, each with an index of"
            f" its own from 0 to {file.rows - 1}, found {len(set(places) & set(range(file.rows)))};"
            f" {again}"
        )
    return places


def _split(file: BoardFile, official: Path) -> Split | None:
    """How the official files of a split lie in a folder; None where they do not."""
    for layout in TASKS[file.task].layouts:
        if all(all(files_of(split, official)) for split in layout if split.required):
            return next(
                (
                    split
                    for split in layout
                    if split.name == file.split and all(files_of(split, official))
                ),
                None,
            )
    return None


def _with_index(form: Format, path: Path) -> tuple[Format, bool]:
    """A file's format with its index as the last text, where it has a column for it; and whether it
    has.
    """
    indexed = isinstance(form, Tsv) and not form.columns and INDEX in _header(path)
    return (
        replace(form, texts=(*form.texts, INDEX)) if indexed and isinstance(form, Tsv) else form
    ), indexed


def _number(text: str) -> int:
    """An index; -1 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else -1


def _header(path: Path) -> list[str]:
    """The columns that a file's first line names; none where it cannot be read."""
    try:
        return as_text(next(numbered_lines(path), (0, b""))[1]).split("\t")
    except BadRowError:
        return []
