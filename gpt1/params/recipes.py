"""What the rows of params.yaml make of its section `finetune`: the recipe a task is trained by, its
seeds, the pre-training that each starts from, the layers transferred.

DVC watches this file for every stage that it can decide a result of.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpt1.base.files import stage_folder
from gpt1.params.schema import PARAMS, Finetune, NetworkName, Params
from gpt1.params.strict import validated


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


def pretraining_seeds_behind(params: Params, seeds: Iterable[int]) -> tuple[int, ...]:
    """The pre-trainings that fine-tunings with `seeds` start from, each once, in their order: how
    many draws of the pre-training stand behind a score, which is what its interval may count.
    """
    return tuple(dict.fromkeys(pretraining_seed(params, seed) for seed in seeds))


def merged(section: Finetune, row: dict[str, Any], place: str) -> Finetune:
    """`section` with the entries of `row` in place of its own. Raises UserError naming `place` and
    the key.
    """
    return validated(Finetune, section.model_dump() | row, place, str(PARAMS))


def finetune_recipe(params: Params, task: str, variant: str | None = None) -> Finetune:
    """The section `finetune` with the task's own row laid over it, and over that what the variant
    changes, if one is given.
    """
    recipe = merged(params.finetune, params.tasks[task].finetune, f"tasks.{task}.finetune")
    if variant is None:
        return recipe
    row = params.variants[variant]
    return _on_first_seeds(merged(recipe, row.finetune, f"variants.{variant}.finetune"), row.seeds)


def transfer_recipe(params: Params, task: str) -> Finetune:
    """The recipe of a task's layer transfer: that of its fine-tuning, on the first of its seeds."""
    return _on_first_seeds(finetune_recipe(params, task), params.transfer[task].seeds)


def transferred_layers(params: Params, task: str) -> tuple[int, ...]:
    """The numbers of layers of a task's transfer, ascending."""
    layers = params.transfer[task].layers
    return tuple(range(params.model.layers + 1)) if layers is None else tuple(sorted(set(layers)))


def _on_first_seeds(recipe: Finetune, count: int | None) -> Finetune:
    """The recipe on its first `count` seeds; None: on all."""
    return recipe.model_copy(update={"seeds": recipe.seeds[:count]})
