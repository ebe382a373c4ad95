"""Which seeds of a task are fine-tuned, and the best on dev."""

from pathlib import Path
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, read_json, stage_folder
from gpt1.params.schema import Params, refuse_unknown
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


def finetuned_task(params: Params, name: str) -> FinetunedTask:
    """Return a finished fine-tuning. Raises UserError where there is none."""
    refuse_unknown(name, params.tasks, "tasks")
    return read_finetuned_task(stage_folder("finetune", params.tasks[name].group, name))


def finetuned_folders(data: Path = DATA) -> list[Path]:
    """Return the folders `finetune/<group>/<task>` with a finished seed."""
    return sorted({path.parents[1] for path in data.glob("finetune/*/*/seed-*/summary.json")})


def read_finetuned_task(folder: Path) -> FinetunedTask:
    """Read a folder of seeds. Raises UserError where none is finished."""
    name, scores = folder.resolve().name, dict[int, float]()
    for path in sorted(folder.glob("seed-*/summary.json")):
        try:
            scores[int(path.parent.name.removeprefix("seed-"))] = float(
                read_json(path)["best_dev_score"]
            )
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise UserError(
                f"{path}: expected the score of a seed, found none that can be read ({error});"
                f" delete {path.parent} and run gpt1 run finetune@{name}"
            ) from None
    if not scores:
        done = sorted(path.name for path in finetuned_folders(folder.parents[1].parent))
        raise UserError(
            f"{folder}/seed-*/summary.json is not there: {name} is not fine-tuned; run gpt1 run"
            f" finetune@{name}" + (f", or choose of {', '.join(done)}, which are" if done else "")
        )
    return FinetunedTask(TASKS[name], folder, dict(sorted(scores.items())))
