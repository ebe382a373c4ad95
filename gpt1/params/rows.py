"""The rows of params.yaml's section `stages`, of which dvc.yaml makes the stages that run a
network: `granularity` says how many seeds, and numbers of layers, each takes. Results are the same.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpt1.params.sections import (
    AblateStage,
    FinetuneStage,
    NetworkName,
    PretrainStage,
    Section,
    Stages,
    TransferStage,
)

if TYPE_CHECKING:
    from gpt1.params.schema import Params

SIZES: dict[NetworkName, str] = {  # sections of params.yaml
    "transformer": "model",
    "lstm": "lstm",
    "lstm_equal": "lstm_equal",
}
NO_STAGES = Stages(pretrain={}, finetune={}, ablate={}, transfer={}, zero_shot={})


def stage_rows(params: "Params", ablated: Collection[str]) -> Stages:
    """Every row that the settings ask for, variants on the tasks `ablated`: with granularity `task`
    one for each network, task, variant on a task, and transfer; with `seed` one for each of their
    seeds, and of a transfer's numbers of layers.
    """
    pretrain, finetune, ablate, transfer = {}, {}, {}, {}
    for network, sizes in SIZES.items():
        for part, seeds in _by_seed(params, params.pretrain.seeds):
            pretrain[_name(network, part)] = PretrainStage(
                network=network, sizes=sizes, seeds=seeds, folder=_folder(network, part)
            )
    for task, row in params.tasks.items():
        for part, seeds in _by_seed(params, finetuning_seeds(params, task)):
            finetune[_name(task, part)] = FinetuneStage(
                task=task,
                group=row.group,
                seeds=seeds,
                reads=_start(params, "transformer", seeds),
                folder=_folder(f"{row.group}/{task}", part),
            )
    for variant, changes in params.variants.items():
        from_nothing = changes.finetune.get("transfer") == "none"
        for task in (task for task in params.tasks if task in ablated):
            for part, seeds in _by_seed(params, finetuning_seeds(params, task, variant)):
                ablate[_name(f"{variant}-{task}", part)] = AblateStage(
                    variant=variant,
                    task=task,
                    group=params.tasks[task].group,
                    seeds=seeds,
                    reads="bpe" if from_nothing else _start(params, changes.network, seeds),
                    folder=_folder(f"{variant}-{task}", part),
                )
    for task, moved in params.transfer.items():
        layers = _layers_below_all(params, task)
        together = [("", layers)] if params.granularity == "task" else []
        for above, some in together or [(f"layers-{count}", (count,)) for count in layers]:
            for part, seeds in _by_seed(params, finetuning_seeds(params, task)[: moved.seeds]):
                transfer[_name(task, above, part)] = TransferStage(
                    task=task,
                    group=moved.group,
                    layers=some,
                    seeds=seeds,
                    reads=_start(params, "transformer", seeds),
                    folder=_folder(task, above, part),
                )
    zero_shot = {name: row for name, row in pretrain.items() if row.network != "lstm_equal"}
    return Stages(
        pretrain=pretrain,
        finetune=finetune,
        ablate=ablate,
        transfer=transfer,
        zero_shot=zero_shot,
    )


def finetuning_seeds(params: "Params", task: str, variant: str | None = None) -> tuple[int, ...]:
    """The seeds of a task's fine-tuning, or of a variant's on it."""
    seeds = params.tasks[task].finetune.get("seeds", params.finetune.seeds)
    if variant is None:
        return tuple(seeds)
    row = params.variants[variant]
    return tuple(row.finetune.get("seeds", seeds)[: row.seeds])


def subject(row: Section) -> tuple[str, ...]:
    """What a row is of, whatever its granularity: a network, a task, or a variant and a task."""
    return tuple(row.model_dump(include={"network", "variant", "task"}).values())


def place_of(name: str) -> str:
    """Where the parts of a row's name lie: `mnli/layers-3/seed-0` of mnli-layers-3-seed-0."""
    return re.sub(r"-((?:layers|seed)-\d+)(?=-|$)", r"/\1", name)


def _by_seed(params: "Params", seeds: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """The seeds of one row each, by the name of their part: `seed-0`, or nothing for all."""
    if params.granularity == "task":
        return [("", tuple(seeds))]
    return [(f"seed-{seed}", (seed,)) for seed in seeds]


def _layers_below_all(params: "Params", task: str) -> tuple[int, ...]:
    """Numbers of layers of a transfer; all of them is the ordinary fine-tuning."""
    layers = params.transfer[task].layers
    wanted = range(params.model.layers) if layers is None else sorted(set(layers))
    return tuple(count for count in wanted if count < params.model.layers)


def _start(params: "Params", network: str, seeds: Sequence[int]) -> str:
    """The folder of the pre-training that fine-tunings start from: the only one that they need, or
    that of the network, where each finds the one of its own number.
    """
    pretrained = params.pretrain.seeds
    needed = pretrained if len(pretrained) == 1 else tuple(seeds)
    return f"pretrain/{network}" + (f"/seed-{needed[0]}" if len(needed) == 1 else "")


def _name(*parts: str) -> str:
    return "-".join(filter(None, parts))


def _folder(*parts: str) -> str:
    return Path(*parts).as_posix()
