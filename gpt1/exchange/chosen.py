"""Which files an export is made of: the language model's, or those of a fine-tuned task and the
seed that is best on validation.
"""

from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, stage_folder
from gpt1.exchange.incoming import read_json_file


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
    what_to_do = "run dvc repro"
    folder = task_folder(name)
    try:
        seeds = dict(read_json_file(folder / "summary.json", what_to_do)["seeds"])
        scores = {
            str(name): (float(found["best_dev_score"]), -int(name)) for name, found in seeds.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{folder / 'summary.json'}: expected the seeds and their scores, found something else"
            f" ({error}); {what_to_do}"
        ) from None
    best = max(scores, key=lambda name: scores[name], default=None) if seed is None else str(seed)
    if best is None or best not in scores:
        raise UserError(
            f"{folder}: expected one of the seeds {', '.join(scores)}, found {best}; name one of"
            " them by --seed"
        )
    weights = folder / f"seed-{best}" / "weights.safetensors"
    parents = folder.resolve().parents
    data = parents[2] if len(parents) > 2 and parents[1].name == "finetune" else DATA
    about = read_json_file(
        data / "encode" / parents[0].name / folder.resolve().name / "task.json", what_to_do
    )
    return ChosenTask(weights, data / "bpe", about, int(best))
