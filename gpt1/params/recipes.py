"""What the rows of params.yaml make of its section `finetune`: the recipe a task is trained by, its
seeds, the pre-training that each starts from, the layers transferred.

DVC watches this file for every stage that it can decide a result of.
"""

from pathlib import Path
from typing import cast, get_args

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.params.schema import PARAMS, Finetune, NetworkName, Params
from gpt1.params.strict import validated


def network_and_seed(name: str, number: str) -> tuple[NetworkName, int]:
    """The two words that name a pre-training on a command line. Raises UserError."""
    if name not in get_args(NetworkName) or not number.isdecimal():
        raise UserError(
            f"expected one of {', '.join(get_args(NetworkName))} and a seed, found {name} {number}"
        )
    return cast(NetworkName, name), int(number)


def pretraining_params(params: Params, network: NetworkName) -> Params:
    """The parameters by which a network is pre-trained: its own learning rate, where it has one, in
    the place of that of `pretrain`.
    """
    rate = getattr(params, network).learning_rate
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
    starts from; None: the first.
    """
    return f"pretrain@{network}-{pretraining_seed(params, seed)}"


def finetune_recipe(params: Params, task: str, variant: str | None = None) -> Finetune:
    """The recipe of a task's fine-tuning, or of a variant's on it: the section `finetune` with the
    task's own row laid over it, and over that what the variant changes.
    """
    values = params.finetune.model_dump() | params.tasks[task].finetune
    path = f"tasks.{task}.finetune"
    if variant is not None:
        values |= params.variants[variant].finetune
        path = f"variants.{variant}.finetune"
    return validated(Finetune, values, path, str(PARAMS))


def transferred_layers(params: Params, task: str) -> tuple[int, ...]:
    """The numbers of layers of a task's transfer, ascending."""
    layers = params.transfer[task].layers
    return tuple(range(params.model.layers + 1)) if layers is None else tuple(sorted(set(layers)))
