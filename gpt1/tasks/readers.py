"""A task's official files as examples: which splits are there, which rows are chosen, how many may
be bad.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.params.schema import TaskParams
from gpt1.sources.exports import split_files
from gpt1.tasks.definitions import SCORE_CLASSES, Task
from gpt1.tasks.file_rows import read_rows
from gpt1.tasks.layouts import Share, Split, release_of
from gpt1.tasks.rows import UNLABELLED, Example, Unreadable

SCALED_ROWS = 100  # of scores, so many that one above 1 is sure to be among them
SHARE_SEED = 3535999445  # with which the authors' code splits Story Cloze's validation stories


@dataclass(frozen=True)
class SplitRows:
    """The examples of a split, and counts of its whole files."""

    examples: list[Example]
    available: int  # examples, before rows are chosen
    rows_read: int
    unreadable: dict[str, int]
    left_out: dict[str, int]
    labelled: bool

    def counts(self) -> dict[str, Any]:
        """Return all but the examples."""
        return {name: value for name, value in vars(self).items() if name != "examples"}


@dataclass
class Tally:
    """Counts of a split's rows, and the highest label."""

    examples: int = 0
    labelled: int = 0
    highest: float = UNLABELLED
    unreadable: Counter[str] = field(default_factory=Counter)


def splits_there(task: Task, folder: Path) -> list[Split]:
    """Return the splits that `folder` holds. Raises UserError where no layout is complete."""
    for layout in task.layouts:
        present = [split for split in layout if all(files_of(split, folder))]
        if all(split in present for split in layout if split.required):
            return present
    raise UserError(
        f"{folder} does not hold {task.source.expected}; run python -m gpt1.stages acquire"
        f" {task.name}"
    )


def files_of(split: Split, folder: Path) -> list[list[Path]]:
    """Return, of each of a split's files, those that are there: itself, an export's parts, or
    none.
    """
    if split.exported:
        return [split_files(folder, name) for name in split.files]
    return [[path] if (path := folder / name).is_file() else [] for name in split.files]


def read_task(
    task: Task, folder: Path, row: TaskParams, max_unreadable_fraction: float
) -> tuple[dict[str, SplitRows], str]:
    """Read every split, without those that have no labels where eval_rows is a number, and name the
    release ("" where a task has one). Raises UserError.
    """
    there = splits_there(task, folder)
    splits = {
        split.name: read_split(task, split, folder, row, max_unreadable_fraction) for split in there
    }
    files = tuple(file for split in there for file in split.files)
    release = release_of(
        task.releases, {name: rows.rows_read for name, rows in splits.items()}, files
    )
    name = release.name if release else "not recognised" if task.releases else ""
    return {
        name: rows for name, rows in splits.items() if rows.labelled or row.eval_rows is None
    }, name


def check_task(task: Task, folder: Path, max_unreadable_fraction: float) -> None:
    """Read every row, and keep none. Raises UserError."""
    for split in splits_there(task, folder):
        deque(examples_of(task, split, folder, max_unreadable_fraction, Tally()), maxlen=0)


def read_split(
    task: Task, split: Split, folder: Path, row: TaskParams, max_unreadable_fraction: float
) -> SplitRows:
    """Read one split's files and choose its rows. Raises UserError."""
    tally = Tally()
    examples = list(examples_of(task, split, folder, max_unreadable_fraction, tally))
    rows_read = len(examples) + tally.unreadable.total()
    left_out = {}
    if 0 < tally.labelled < len(examples):
        left_out["no gold label"] = len(examples) - tally.labelled
        examples = [example for example in examples if example.label != UNLABELLED]
    if split.share:
        rows = share_rows(split.name, split.share, len(examples))
        examples = [examples[index] for index in rows]
    most = row.train_rows if split.name == "train" else row.eval_rows
    chosen = [examples[index] for index in chosen_rows(task.name, split.name, len(examples), most)]
    return SplitRows(
        chosen, len(examples), rows_read, dict(tally.unreadable), left_out, tally.labelled > 0
    )


def examples_of(
    task: Task, split: Split, folder: Path, max_unreadable_fraction: float, tally: Tally
) -> Iterator[Example]:
    """Yield a split's examples and count rows in `tally`. Raises UserError after no rows, too many
    bad ones, or wrong labels.
    """
    present = files_of(split, folder)
    for subset, paths in enumerate(present):
        for path in paths:
            readable, unreadable, first = 0, Counter[str](), Unreadable(0, "", "")
            for row in read_rows(path, split.format, task, split.required):
                if isinstance(row, Example):
                    readable += 1
                    tally.examples += 1
                    tally.labelled += row.label != UNLABELLED
                    tally.highest = max(tally.highest, row.label)
                    yield replace(row, subset=subset) if task.subsets else row
                else:
                    first = first if unreadable else row
                    unreadable[row.reason] += 1
            if readable or unreadable or not split.exported:  # a part of an export may have no rows
                _check_rows(path, readable, unreadable, first, max_unreadable_fraction)
            tally.unreadable.update(unreadable)
    _check_split(task, split, present[0][0], tally)


def _check_rows(
    path: Path, readable: int, unreadable: Counter[str], first: Unreadable, limit: float
) -> None:
    bad = unreadable.total()
    total = readable + bad
    if total == 0:
        raise _no_rows(path)
    if bad > limit * total or not readable:
        reasons = ", ".join(f"{reason} {count}" for reason, count in unreadable.most_common())
        raise UserError(
            f"{path}: {bad} of {total} rows cannot be read ({reasons}), more than"
            f" encode.max_unreadable_fraction {limit} allows; the first is row {first.row}:"
            f" {first.detail}; mend the file or raise the limit"
        )


def _check_split(task: Task, split: Split, path: Path, tally: Tally) -> None:
    if split.share and tally.examples < 2:
        raise UserError(
            f"{path} has {tally.examples} readable rows; expected at least 2, for train and dev"
        )
    if task.target == "score" and tally.labelled >= SCALED_ROWS and tally.highest <= 1:
        raise UserError(
            f"{path}: expected scores from 0 to {SCORE_CLASSES - 1}, found none above 1 in"
            f" {tally.labelled} rows; they are scaled, take a file whose scores are not"
        )
    if not tally.examples:
        raise _no_rows(path)
    if split.required and not tally.labelled:
        raise UserError(
            f"{path}: expected labels, found none in {tally.examples} rows of {split.name}; put a"
            " file with labels there"
        )


def _no_rows(path: Path) -> UserError:
    return UserError(
        f"{path} has no rows; expected the official file, get it again and run the acquire stage"
    )


def share_rows(split: str, share: Share, rows: int) -> npt.NDArray[np.int64]:
    """Return the row numbers (ascending) of train or dev in a file that holds both."""
    from sklearn.model_selection import train_test_split

    heldout = share.heldout if rows == share.of else max(1, round(rows * share.heldout / share.of))
    train, dev = train_test_split(np.arange(rows), test_size=heldout, random_state=SHARE_SEED)
    return np.sort(train if split == "train" else dev)


def chosen_rows(task: str, split: str, rows: int, most: int | None) -> npt.NDArray[np.int64]:
    """Choose rows (ascending): all, or `most` by a seed of task and split; fewer are a subset of
    more.
    """
    if most is None or most >= rows:
        return np.arange(rows)
    seed = int.from_bytes(hashlib.sha256(f"{task}/{split}".encode()).digest()[:8], "big")
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])
