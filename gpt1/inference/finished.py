"""Which seeds of a task are fine-tuned, and which of them is the best on the development split."""

from dataclasses import dataclass
from pathlib import Path

from gpt1.base.errors import UserError, perhaps
from gpt1.base.files import read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.tasks.table import TASKS, Task


@dataclass(frozen=True)
class Finished:
    """The finished fine-tuning of a task: its folder, the seeds and their scores on the development
    split (0..1, correlations -1..1).
    """

    task: Task
    folder: Path
    dev_scores: dict[int, float]

    def best(self) -> int:
        """The seed that is best on the development split; of equals the first."""
        return max(self.dev_scores, key=lambda seed: (self.dev_scores[seed], -seed))

    def weights(self, seed: int | None) -> Path:
        """The weights of a seed, best by validation; None: of the best seed. Raises UserError where
        there is no such seed.
        """
        chosen = self.best() if seed is None else seed
        if chosen not in self.dev_scores:
            raise UserError(
                f"{self.folder}: expected one of the seeds"
                f" {', '.join(map(str, sorted(self.dev_scores)))}, found {chosen}; choose one of"
                " them with --seed, or add it to finetune.seeds in params.yaml and run gpt1 run"
            )
        return self.folder / f"seed-{chosen}" / "weights.safetensors"


def finished(params: Params, name: str) -> Finished:
    """The finished fine-tuning of a task of params.yaml. Raises UserError where there is no such
    task, or it is not finished.
    """
    if name not in params.tasks or name not in TASKS:
        raise UserError(
            f"expected one of the tasks in params.yaml: {', '.join(params.tasks)}; found"
            f" {name}{perhaps(name, params.tasks)}"
        )
    return read_finished(stage_folder("finetune", params.tasks[name].group, name))


def read_finished(folder: Path) -> Finished:
    """The finished fine-tuning in a folder finetune/<group>/<task>. Raises UserError where there is
    none.
    """
    path, name = folder / "summary.json", folder.resolve().name
    try:
        seeds = read_json(path)["seeds"]
        scores = {int(seed): float(row["best_dev_score"]) for seed, row in seeds.items()}
        if not scores:
            raise ValueError("it names no seed")
        return Finished(TASKS[name], folder, scores)
    except FileNotFoundError:
        raise UserError(
            f"{path} is not there: {name} is not fine-tuned; run gpt1 run finetune@{name}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{path}: expected the seeds of a task and their scores, found none that can be read"
            f" ({error}); run dvc repro -f finetune@{name}"
        ) from None
