"""`finetune TASK`: fine-tune on one task, on every seed (paper, sections 3.2, 4.1 and 5). `ablation
ABLATION TASK` (Table 5) and `transfer TASK` (Figure 2, left) use another recipe or network.
"""

from gpt1.params.recipes import finetune_recipe, pretraining_of, transferred_layers
from gpt1.params.schema import Finetune, NetworkName, Params, read_params, refuse_unknown
from gpt1.tracking.live import tracked
from gpt1.train.finetuning_data import FinetuningPlan, run_finetunings


def main(task: str) -> None:
    """Fine-tune a task (Tables 2-4)."""
    params = read_params()
    refuse_unknown(task, params.tasks, "tasks")
    recipes = {"": finetune_recipe(params, task)}
    root = f"{params.tasks[task].group}/{task}"
    run(params, ("finetune", task), "transformer", recipes, root)


def ablation(name: str, task: str) -> None:
    """Fine-tune a task as the row `name` of `ablations` says (Table 5)."""
    params = read_params()
    refuse_unknown(name, params.ablations, "ablations")
    refuse_unknown(task, params.tasks, "tasks")
    network, recipes = params.ablations[name].network, {"": finetune_recipe(params, task, name)}
    run(params, ("ablation", name, task), network, recipes, f"{name}-{task}")


def transfer(task: str) -> None:
    """Fine-tune a task with more and more layers transferred, but not all, as `main` does."""
    params = read_params()
    refuse_unknown(task, params.transfer, "transfer")
    recipe = finetune_recipe(params, task)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in transferred_layers(params, task)
        if layers < params.model.layers
    }
    run(params, ("transfer", task), "transformer", recipes, task)


def run(
    params: Params,
    command: tuple[str, ...],
    network: NetworkName,
    recipes: dict[str, Finetune],
    root: str,
) -> None:
    """Fine-tune by these recipes, each seed from its pre-training."""
    seeds = {seed for recipe in recipes.values() for seed in recipe.seeds}
    starts = {seed: pretraining_of(params, network, seed) for seed in seeds}
    run_finetunings(params, FinetuningPlan(command, network, recipes, starts, root), tracked)
