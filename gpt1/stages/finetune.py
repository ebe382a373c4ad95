"""Fine-tune on one task, on every seed (paper, sections 3.2, 4.1 and 5): `python -m gpt1.stages
finetune TASK`.

`ablation ABLATION TASK` (Table 5) and `transfer TASK` (Figure 2, left) are the same with another
recipe or network.
"""

from collections.abc import Collection
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.params.recipes import finetune_recipe, pretraining_of, transferred_layers
from gpt1.params.schema import PARAMS, Finetune, NetworkName, Params, read_params
from gpt1.tracking.live import tracked
from gpt1.train.finetuning_data import FinetuningJob, finetune_job


def main(task: str) -> None:
    """Fine-tune a task (Tables 2-4)."""
    params = read_params()
    refuse_unknown(task, params.tasks, "tasks")
    root = f"{params.tasks[task].group}/{task}"
    recipes = {"": finetune_recipe(params, task)}
    starts = starts_of(params, "transformer", recipes[""])
    job = FinetuningJob(("finetune", task), task, task, "transformer", recipes, starts, root, True)
    finetune_job(params, job, tracked)


def ablation(name: str, task: str) -> None:
    """Fine-tune a task with one thing changed, as the row `name` of `ablations` says (Table 5)."""
    params = read_params()
    refuse_unknown(name, params.ablations, "ablations")
    refuse_unknown(task, params.tasks, "tasks")
    row, root = params.ablations[name], f"{name}-{task}"
    recipes = {"": finetune_recipe(params, task, name)}
    starts = starts_of(params, row.network, recipes[""])
    job = FinetuningJob(("ablation", name, task), root, task, row.network, recipes, starts, root)
    finetune_job(params, job, tracked)


def transfer(task: str) -> None:
    """Fine-tune a task with more and more layers transferred (Figure 2, left); all layers is the
    ordinary fine-tuning, which is not computed again.
    """
    params = read_params()
    refuse_unknown(task, params.transfer, "transfer")
    recipe = finetune_recipe(params, task)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in transferred_layers(params, task)
        if layers < params.model.layers
    }
    starts = starts_of(params, "transformer", recipe)
    job = FinetuningJob(("transfer", task), task, task, "transformer", recipes, starts, task)
    finetune_job(params, job, tracked)


def starts_of(params: Params, network: NetworkName, recipe: Finetune) -> dict[int, Path]:
    """Return the folder of the pre-training that each seed starts from."""
    return {seed: pretraining_of(params, network, seed) for seed in recipe.seeds}


def refuse_unknown(name: str, rows: Collection[str], section: str) -> None:
    """Raise UserError where params.yaml has no such row."""
    if name not in rows:
        raise UserError(
            f"expected one of the rows {section} of {PARAMS}: {', '.join(rows) or 'none'}; found"
            f" {name}"
        )
