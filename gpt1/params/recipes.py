"""Recipes that follow from params.yaml. DVC watches this file for every stage that it can
change.
"""

from pathlib import Path
from typing import cast, get_args

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.params.schema import PARAMS, Finetune, NetworkName, Params
from gpt1.params.strict import validated


def network_and_seed(name: str, number: str) -> tuple[NetworkName, int]:
    """Parse the two words that name a pre-training. Raises UserError."""
    if name not in get_args(NetworkName) or not number.isdecimal():
        raise UserError(
            f"expected one of {', '.join(get_args(NetworkName))} and a seed, found {name} {number}"
        )
    return cast(NetworkName, name), int(number)


def pretraining_params(params: Params, network: NetworkName) -> Params:
    """Return the parameters for pre-training a network, with its own learning rate, if it has
    one.
    """
    rate = getattr(params, network).learning_rate
    if rate is None:
        return params
    recipe = params.pretrain.model_copy(update={"learning_rate": rate})
    return params.model_copy(update={"pretrain": recipe})


def pretraining_seed(params: Params, seed: int | None = None) -> int:
    """Return the pre-training seed of a fine-tuning seed: the same number, or the only one; None:
    the first.
    """
    seeds = params.pretrain.seeds
    return seeds[0] if seed is None or len(seeds) == 1 else seed


def pretraining_of(params: Params, network: NetworkName, seed: int | None = None) -> Path:
    """Return the folder of the pre-training of a fine-tuning's seed; None: the first."""
    return stage_folder("pretrain", network, f"seed-{pretraining_seed(params, seed)}")


def pretraining_stage(params: Params, network: NetworkName) -> str:
    """Return the stage of a network's first pre-training."""
    return f"pretrain@{network}-{pretraining_seed(params)}"


def finetune_recipe(params: Params, task: str, ablation: str | None = None) -> Finetune:
    """Return section `finetune`, changed by the task's row, then by the ablation. Raises
    UserError.
    """
    values = params.finetune.model_dump() | params.tasks[task].finetune
    path = f"tasks.{task}.finetune"
    if ablation is not None:
        values |= params.ablations[ablation].finetune
        path = f"ablations.{ablation}.finetune"
    return validated(Finetune, values, path, str(PARAMS))


def transferred_layers(params: Params, task: str) -> tuple[int, ...]:
    """Return the numbers of layers of a task's transfer, ascending."""
    layers = params.transfer[task].layers
    return tuple(range(params.model.layers + 1)) if layers is None else tuple(sorted(set(layers)))
