"""Fine-tune on one task, the seeds of a row of `stages` (paper, sections 3.2, 4.1 and 5):
`python -m gpt1.stages finetune ROW`.

`ablate ROW` (Table 5) and `transfer ROW` (Figure 2, left) are the same with another recipe or
network.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from gpt1.base.errors import UserError
from gpt1.params.recipes import stage_recipe, start_of
from gpt1.params.schema import PARAMS, FinetuneStage, read_params
from gpt1.tracking.live import tracked
from gpt1.train.finetuning_data import FinetuningJob, finetune_job

StageType = TypeVar("StageType", bound=FinetuneStage)


def main(name: str) -> None:
    """The ordinary fine-tuning of a task (Tables 2-4)."""
    params = read_params()
    stage = row_named(name, params.stages.finetune, "finetune")
    recipes, root = {"": stage_recipe(params, stage)}, f"{stage.group}/{stage.task}"
    job = FinetuningJob(
        "finetune", name, stage.task, stage, "transformer", recipes, starts_of(stage), root, True
    )
    finetune_job(params, job, tracked)


def ablate(name: str) -> None:
    """A variant on a task (Table 5)."""
    params = read_params()
    stage = row_named(name, params.stages.ablate, "ablate")
    recipes, root = {"": stage_recipe(params, stage)}, f"{stage.variant}-{stage.task}"
    network = params.variants[stage.variant].network
    job = FinetuningJob("ablate", name, root, stage, network, recipes, starts_of(stage), root)
    finetune_job(params, job, tracked)


def transfer(name: str) -> None:
    """A task with ever more layers transferred (Figure 2, left); all of them is the ordinary
    fine-tuning, and is not computed again.
    """
    params = read_params()
    stage = row_named(name, params.stages.transfer, "transfer")
    recipe = stage_recipe(params, stage)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in stage.layers
    }
    job = FinetuningJob(
        "transfer", name, stage.task, stage, "transformer", recipes, starts_of(stage), stage.task
    )
    finetune_job(params, job, tracked)


def starts_of(stage: FinetuneStage) -> dict[int, Path]:
    """The folder of the pre-training that each seed of a row starts from."""
    return {seed: start_of(stage, seed) for seed in stage.seeds}


def row_named(name: str, rows: Mapping[str, StageType], stage: str) -> StageType:
    """The row of params.yaml's `stages` that a stage is to do. Raises UserError where there is
    none.
    """
    if name not in rows:
        raise UserError(
            f"expected one of the rows stages.{stage} of {PARAMS}: {', '.join(rows) or 'none'};"
            f" found {name}"
        )
    return rows[name]
