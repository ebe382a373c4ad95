"""What the rows of params.yaml make of its section `finetune`: the recipe a task is trained by, its
seeds, the pre-training that each starts from, the layers transferred.

DVC watches this file for every stage that it can decide a result of.
"""

from pathlib import Path
from typing import Any

from gpt1.base.files import stage_folder
from gpt1.params.schema import (
    PARAMS,
    AblateStage,
    Finetune,
    FinetuneStage,
    NetworkName,
    Params,
)
from gpt1.params.strict import validated


def pretraining_params(params: Params, network: NetworkName) -> Params:
    """The parameters by which a network is pre-trained: an LSTM's own learning rate, where it has
    one, in the place of that of `pretrain`.
    """
    rate = None if network == "transformer" else getattr(params, network).learning_rate
    if rate is None:
        return params
    recipe = params.pretrain.model_copy(update={"learning_rate": rate})
    return params.model_copy(update={"pretrain": recipe})


def pretraining_seed(params: Params, seed: int | None = None) -> int:
    """The pre-training that fine-tuning seed `seed` starts from: the one of its own number, or the
    only one there is. None: the first, which speaks where one alone can.
    """
    seeds = params.pretrain.seeds
    return seeds[0] if seed is None or len(seeds) == 1 else seed


def pretraining_of(params: Params, network: NetworkName, seed: int | None = None) -> Path:
    """The folder of the pre-training of a network that fine-tuning seed `seed` starts from; None:
    of the first.
    """
    return stage_folder("pretrain", network, f"seed-{pretraining_seed(params, seed)}")


def pretraining_stage(params: Params, network: NetworkName, seed: int | None = None) -> str:
    """The name of the stage that makes the pre-training of a network that fine-tuning seed `seed`
    starts from; None: the first. Raises KeyError where params.yaml has no row of it.
    """
    wanted = pretraining_seed(params, seed)
    for name, row in params.stages.pretrain.items():
        if row.network == network and wanted in row.seeds:
            return f"pretrain@{name}"
    raise KeyError(f"{network}, seed {wanted}")


def start_of(stage: FinetuneStage, seed: int) -> Path:
    """The folder of the pre-training that a seed of a stage starts from."""
    folder = stage_folder(stage.reads)
    return folder if folder.name.startswith("seed-") else folder / f"seed-{seed}"


def stage_recipe(params: Params, stage: FinetuneStage) -> Finetune:
    """The recipe of a stage, on its seeds: the section `finetune` with the task's own row laid over
    it, and over that what the variant changes, if it is of one.
    """
    section = params.finetune.model_dump(exclude={"seeds"})
    variant = stage.variant if isinstance(stage, AblateStage) else None
    return _recipe(params, section, stage.task, variant, {"seeds": stage.seeds})


def finetune_recipe(params: Params, task: str, variant: str | None = None) -> Finetune:
    """The recipe of a task's fine-tuning, or of a variant's on it, on all its seeds."""
    recipe = _recipe(params, params.finetune.model_dump(), task, variant, {})
    count = None if variant is None else params.variants[variant].seeds
    return recipe.model_copy(update={"seeds": recipe.seeds[:count]})


def transfer_recipe(params: Params, task: str) -> Finetune:
    """The recipe of a task's layer transfer: that of its fine-tuning, on the first of its seeds."""
    recipe = finetune_recipe(params, task)
    return recipe.model_copy(update={"seeds": recipe.seeds[: params.transfer[task].seeds]})


def transferred_layers(params: Params, task: str) -> tuple[int, ...]:
    """The numbers of layers of a task's transfer, ascending."""
    layers = params.transfer[task].layers
    return tuple(range(params.model.layers + 1)) if layers is None else tuple(sorted(set(layers)))


def is_ablated(params: Params, variant: str, task: str) -> bool:
    """Whether the run has a variant of Table 5 on a task."""
    return any((row.variant, row.task) == (variant, task) for row in params.stages.ablate.values())


def _recipe(
    params: Params, section: dict[str, Any], task: str, variant: str | None, own: dict[str, Any]
) -> Finetune:
    """`section` with the rows of the task and the variant laid over it, and `own` over all."""
    values, place = section | params.tasks[task].finetune, f"tasks.{task}.finetune"
    if variant is not None:
        values |= params.variants[variant].finetune
        place = f"variants.{variant}.finetune"
    return validated(Finetune, values | own, place, str(PARAMS))
