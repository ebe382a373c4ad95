"""params.yaml as frozen, strict models: a mistyped, missing or unknown key stops a run before it
starts.
"""

from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from gpt1.base.errors import UserError
from gpt1.params.sections import (
    Acquire,
    Baselines,
    Bpe,
    Clean,
    Download,
    Encode,
    Finetune,
    Generate,
    LstmParams,
    Model,
    NetworkName,
    Networks,
    Optimization,
    Pretrain,
    Schedule,
    Section,
    Shard,
    SourceParams,
    TaskParams,
    Transfer,
    Transformer,
    Variant,
    World,
    ZeroShotParams,
)
from gpt1.params.strict import validated
from gpt1.params.yaml import read_yaml

__all__ = [
    "PARAMS",
    "Finetune",
    "Generate",
    "Model",
    "NetworkName",
    "Optimization",
    "Params",
    "Pretrain",
    "Schedule",
    "TaskParams",
    "Variant",
    "imported_sources",
    "read_params",
    "refuse_without_stage",
    "validate",
]

PARAMS = Path("params.yaml")


class Params(Section):
    """The whole of params.yaml."""

    profile: str
    acquire: Acquire
    clean: Clean
    bpe: Bpe
    shard: Shard
    model: Model
    networks: Networks
    transformer: Transformer
    lstm: LstmParams
    lstm_equal: LstmParams
    pretrain: Pretrain
    encode: Encode
    baselines: Baselines
    finetune: Finetune
    variants: dict[str, Variant]
    generate: Generate
    world: dict[str, World]
    download: dict[str, Download]
    sources: dict[str, SourceParams]
    tasks: dict[str, TaskParams]
    transfer: dict[str, Transfer]
    zero_shot: dict[str, ZeroShotParams]

    @model_validator(mode="after")
    def rows_agree(self) -> Self:
        if (
            isinstance(self.finetune.transfer, int)
            and not 0 <= self.finetune.transfer <= self.model.layers
        ):
            raise ValueError(
                f"finetune.transfer must be all, none or 0..{self.model.layers} (model.layers), "
                f"found {self.finetune.transfer}"
            )
        imported = imported_sources(self.bpe.source, self.pretrain.source)
        needed = ["books", *self.tasks, *(name for name in imported if imported[name])]
        if wanted := [name for name in needed if name not in self.sources]:
            raise ValueError(
                f"sources has no row for {', '.join(wanted)}; compose params.yaml anew with gpt1"
                " profile"
            )
        for name, row in self.sources.items():
            made = (
                name in self.download
                if row.folder == "download"
                else row.folder.removeprefix("world/") in self.world
            )
            if row.folder != "raw" and not made:
                raise ValueError(
                    f"sources.{name}.folder: expected raw, download with a row download.{name}, or"
                    f" world/ and a row of world ({', '.join(self.world) or 'none'}), found"
                    f" {row.folder}"
                )
        return self

    @model_validator(mode="after")
    def rows_of_ablations_agree(self) -> Self:
        trained = ", ".join(self.networks.pretrain)
        for name, variant in self.variants.items():
            if alien := [
                task
                for task, group in variant.tasks.items()
                if task not in self.tasks or group != self.tasks[task].group
            ]:
                raise ValueError(
                    f"variants.{name}.tasks: expected tasks of params.yaml with their groups, found"
                    f" {alien[0]}: {variant.tasks[alien[0]]}; known tasks: {', '.join(self.tasks)}"
                )
            if variant.tasks and variant.network not in self.networks.pretrain:
                raise ValueError(
                    f"variants.{name}.tasks: expected {{}}, for networks.pretrain ({trained}) lacks"
                    f" {variant.network}; add it there, or leave the variant out so"
                )
            layers = variant.finetune.get("transfer", self.finetune.transfer)
            if variant.tasks and variant.network != "transformer" and isinstance(layers, int):
                raise ValueError(
                    f"variants.{name}.finetune.transfer: expected all or none for an LSTM, which"
                    f" has one layer, found {layers}"
                )
        if untrained := set(self.networks.zero_shot) - set(self.networks.pretrain):
            raise ValueError(
                f"networks.zero_shot: expected some of networks.pretrain ({trained}), found"
                f" {min(untrained)}"
            )
        for name, moved in self.transfer.items():
            if name not in self.tasks or moved.group != self.tasks[name].group:
                raise ValueError(
                    f"transfer.{name}: expected a task of params.yaml and its group, found"
                    f" {moved.group}; known tasks: {', '.join(self.tasks)}"
                )
            if outside := [
                layers for layers in moved.layers or () if not 0 <= layers <= self.model.layers
            ]:
                raise ValueError(
                    f"transfer.{name}.layers: expected numbers from 0 to {self.model.layers}"
                    f" (model.layers), found {', '.join(map(str, outside))}"
                )
        if absent := [name for name in self.zero_shot if name not in self.sources]:
            raise ValueError(
                f"sources has no row for {', '.join(absent)} of zero_shot; compose params.yaml anew"
                " with gpt1 profile"
            )
        return self


def imported_sources(bpe: str, pretrain: str) -> dict[str, bool]:
    """Whether a run with bpe.source and pretrain.source needs each of the sources that not every
    run needs.
    """
    return {"openai_bpe": bpe == "authors", "official": "official" in (bpe, pretrain)}


def validate(values: Any) -> Params:
    """Check plain values as params.yaml holds them. Raises UserError with one line that says what
    to mend.
    """
    if not isinstance(values, dict):
        raise UserError(
            f"{PARAMS}: expected sections such as model: and pretrain:, found"
            f" {type(values).__name__}; compose it with gpt1 profile"
        )
    section = values.get("pretrain")
    if isinstance(section, dict) and "seed" in section:
        raise UserError(
            f"{PARAMS}: pretrain.seed is a list of seeds now: in the section pretrain, write"
            f" seeds: [{section['seed']}] in place of seed: {section['seed']}"
        )
    params = validated(Params, values, "", str(PARAMS))
    rows = {f"tasks.{name}": row.finetune for name, row in params.tasks.items()}
    rows |= {f"variants.{name}": row.finetune for name, row in params.variants.items()}
    for place, row in {"": {}, **rows}.items():
        inner = f"{place}.finetune".lstrip(".")
        recipe = validated(Finetune, params.finetune.model_dump() | row, inner, str(PARAMS))
        pretrained = params.pretrain.seeds
        if len(pretrained) > 1 and (alone := [s for s in recipe.seeds if s not in pretrained]):
            raise UserError(
                f"{PARAMS}: {inner}.seeds: expected seeds of pretrain.seeds"
                f" ({', '.join(map(str, pretrained))}), for fine-tuning seed s starts from"
                f" pre-training seed s, found {', '.join(map(str, alone))}; add them to"
                " pretrain.seeds, or leave one pre-training seed, from which all start"
            )
    return params


def read_params(path: Path = PARAMS) -> Params:
    """Read and check params.yaml. Raises UserError where it is absent, no YAML, or has a wrong key
    or value.
    """
    return validate(read_yaml(path))


def refuse_without_stage(params: Params) -> None:
    """Raise UserError for a variant that dvc.yaml has no stage of: it would never run; and for a
    stage of it without its variant: DVC would read no stage at all.
    """
    stages = read_yaml(Path("dvc.yaml"))["stages"]
    for name in stages:
        if f"variants.{name}.tasks" in str(stages[name]) and name not in params.variants:
            raise UserError(
                f"{PARAMS}: no row variants.{name}, of which dvc.yaml has a stage; to leave the"
                f" variant out, give it no tasks: variants.{name}.tasks={{}}"
            )
    if alien := set(params.variants) - set(stages):
        raise UserError(
            f"{PARAMS}: variants.{min(alien)}: dvc.yaml has no stage {min(alien)}; add one like"
            " no_aux_lm there, or take the row out"
        )
