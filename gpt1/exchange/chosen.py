"""Which files an export of a fine-tuned task is made of: those of the seed that is best on
validation, unless another is named.
"""

from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, stage_folder
from gpt1.exchange.incoming import read_json_file
from gpt1.inference.finished import read_finished


class ChosenTask(NamedTuple):
    """A task's weights, the vocabulary that they were trained with, task.json, and the seed."""

    weights: Path
    vocabulary: Path
    about: dict[str, Any]
    seed: int


def task_folder(name: Path) -> Path:
    """The folder data/finetune/<group>/<task> that a path or a task's name means. Raises UserError
    where there is none.
    """
    if (name / "summary.json").is_file():
        return name
    there = sorted(path.parent for path in stage_folder("finetune").glob("*/*/summary.json"))
    if found := [path for path in there if path.name == str(name)]:
        return found[0]
    raise UserError(
        f"{name}: expected a task that has been fine-tuned"
        f" ({', '.join(path.name for path in there) or 'none yet'}), or its folder under"
        f" {stage_folder('finetune')}, found none; run gpt1 run finetune@TASK"
    )


def chosen_task(name: Path, seed: int | None) -> ChosenTask:
    """What to export of a task; `seed` None: the one with the best score on validation. Raises
    UserError where it is not there.
    """
    done = read_finished(task_folder(name))
    weights = done.weights(seed)
    parents = done.folder.resolve().parents
    data = parents[2] if len(parents) > 2 and parents[1].name == "finetune" else DATA
    about = read_json_file(
        data / "encode" / parents[0].name / done.task.name / "task.json", "run dvc repro"
    )
    return ChosenTask(weights, data / "bpe", about, done.best() if seed is None else seed)
