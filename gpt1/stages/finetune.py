"""Fine-tune on one task, every seed (paper, sections 3.2, 4.1 and 5): `python -m gpt1.stages
finetune TASK`.

`ablate VARIANT-TASK` (Table 5) and `transfer TASK` (Figure 2, left) are the same with another
recipe or network.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.params.recipes import (
    finetune_recipe,
    pretraining_of,
    transfer_recipe,
    transferred_layers,
)
from gpt1.params.schema import Finetune, NetworkName, Params, read_params
from gpt1.tracking.live import tracked
from gpt1.train.finetuning_data import WEIGHTS, FinetuningJob, finetune_job


def main(name: str) -> None:
    """The ordinary fine-tuning of a task (Tables 2-4)."""
    params = read_params()
    check_row(name, params.tasks, "tasks")
    out = stage_folder("finetune", params.tasks[name].group, name)
    recipes = {"": finetune_recipe(params, name)}
    starts = start_weights(params, "transformer", recipes)
    job = FinetuningJob("finetune", name, name, "transformer", recipes, starts, out, True)
    finetune_job(params, job, tracked)


def ablate(name: str) -> None:
    """A variant on a task (Table 5)."""
    params = read_params()
    check_row(name, params.ablate, "rows of ablate")
    row, out = params.ablate[name], stage_folder("ablate", name)
    network = params.variants[row.variant].network
    recipes = {"": finetune_recipe(params, row.task, row.variant)}
    starts = start_weights(params, network, recipes)
    job = FinetuningJob("ablate", name, row.task, network, recipes, starts, out)
    finetune_job(params, job, tracked)


def transfer(name: str) -> None:
    """A task with ever more layers transferred (Figure 2, left); all of them is the ordinary
    fine-tuning, and is not computed again.
    """
    params = read_params()
    check_row(name, params.transfer, "rows of transfer")
    recipe, out = transfer_recipe(params, name), stage_folder("transfer", name)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in transferred_layers(params, name)
        if layers < params.model.layers
    }
    starts = start_weights(params, "transformer", recipes)
    job = FinetuningJob("transfer", name, name, "transformer", recipes, starts, out)
    finetune_job(params, job, tracked)


def start_weights(
    params: Params, network: NetworkName, recipes: Mapping[str, Finetune]
) -> dict[int, Path]:
    """The pre-trained weights that each seed of the recipes starts from."""
    return {
        seed: pretraining_of(params, network, seed) / WEIGHTS
        for recipe in recipes.values()
        for seed in recipe.seeds
    }


def check_row(name: str, rows: Iterable[str], what: str) -> None:
    """Raise UserError where params.yaml has no such row."""
    if name not in rows:
        raise UserError(
            f"expected one of the {what} in params.yaml: {', '.join(rows) or 'none'}; found {name}"
        )
