"""Which seeds of a task are fine-tuned, and the best on dev."""

from pathlib import Path
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder
from gpt1.tasks.definitions import TASKS, Task


class FinetunedTask(NamedTuple):
    """A finished fine-tuning, with dev scores by seed (0..1, correlations -1..1)."""

    task: Task
    folder: Path
    dev_scores: dict[int, float]

    def best(self) -> int:
        """Return the seed with the best dev score; of equals the first."""
        return max(self.dev_scores, key=lambda seed: (self.dev_scores[seed], -seed))

    def weights(self, seed: int | None) -> Path:
        """Return the weights file of a seed (None: the best). Raises UserError for unknown ones."""
        chosen = self.best() if seed is None else seed
        if chosen not in self.dev_scores:
            raise UserError(
                f"{self.folder}: expected one of the seeds"
                f" {', '.join(map(str, sorted(self.dev_scores)))}, found {chosen}; choose one of"
                " them with --seed, or add it to finetune.seeds in params.yaml and run gpt1 run"
            )
        return self.folder / f"seed-{chosen}" / "weights.safetensors"


def finetuned_folders() -> dict[str, Path]:
    """Return the folder `finetune/<group>/<task>` of each task with a finished seed."""
    summaries = sorted(stage_folder("finetune").glob("*/*/seed-*/summary.json"))
    folders = {path.parents[1].name: path.parents[1] for path in summaries}
    return {name: folder for name, folder in folders.items() if name in TASKS}


def finetuned_task(name: str) -> FinetunedTask:
    """Return a finished fine-tuning. Raises UserError where there is none."""
    folders, scores = finetuned_folders(), dict[int, float]()
    if name not in folders:
        raise UserError(
            f"{stage_folder('finetune', '*', name)}/seed-*/summary.json is not there: {name} is not"
            f" fine-tuned; run gpt1 run finetune@{name}"
            + (f", or choose of {', '.join(sorted(folders))}, which are" if folders else "")
        )
    for path in sorted(folders[name].glob("seed-*/summary.json")):
        try:
            scores[int(path.parent.name.removeprefix("seed-"))] = float(
                read_json(path)["best_dev_score"]
            )
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise UserError(
                f"{path}: expected the score of a seed, found none that can be read ({error});"
                f" delete {path.parent} and run gpt1 run finetune@{name}"
            ) from None
    return FinetunedTask(TASKS[name], folders[name], dict(sorted(scores.items())))
