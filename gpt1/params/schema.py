"""params.yaml as frozen, strict models: a wrong key stops a run before it starts."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from gpt1.base.errors import UserError, did_you_mean
from gpt1.params.strict import validated
from gpt1.params.yaml import read_yaml

PARAMS = Path("params.yaml")
Schedule = Literal["warmup_linear", "warmup_cosine"]
NetworkName = Literal["transformer", "lstm", "lstm_equal"]
Group = Literal["nli", "glue_nli", "qa", "glue"]
Fraction = Annotated[float, Field(ge=0, lt=1)]


Seeds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Acquire(Section):
    max_unpacked_bytes: PositiveInt


class Clean(Section):
    corpus_name: str = Field(min_length=1)
    text_field: str


class Bpe(Section):
    source: Literal["authors", "learn", "official"]
    merges: PositiveInt
    alphabet_size: PositiveInt
    max_word_types: PositiveInt


class Baselines(Section):
    systems: tuple[Literal["majority", "tfidf"], ...]
    words: PositiveInt
    penalties: tuple[PositiveFloat, ...] = Field(min_length=1)


class Shard(Section):
    heldout_fraction: float = Field(gt=0, lt=1)
    heldout_seed: NonNegativeInt


class Model(Section):
    """Sizes of the network (paper, section 4.1)."""

    context: int = Field(ge=8)
    width: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    feed_forward: PositiveInt
    embedding_deviation: PositiveFloat
    weight_deviation: PositiveFloat
    layer_norm_epsilon: PositiveFloat

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"model.heads {self.heads} must divide model.width {self.width}")
        return self


class Transformer(Section):
    """learning_rate: of the Transformer's pre-training; null: that of section `pretrain`."""

    learning_rate: PositiveFloat | None


class LstmParams(Section):
    """The paper's baseline (section 5), or one of equal size."""

    units: PositiveInt
    learning_rate: PositiveFloat | None


class Optimization(Section):
    batch_size: PositiveInt
    learning_rate: PositiveFloat
    schedule: Schedule
    beta1: Fraction
    beta2: Fraction
    epsilon: PositiveFloat
    weight_decay: NonNegativeFloat
    max_gradient_norm: PositiveFloat
    dropout: Fraction
    precision: Literal["bf16", "fp32"]
    log_updates: PositiveInt


class Pretrain(Optimization):
    source: Literal["train", "official"]
    epochs: PositiveFloat | None
    updates: PositiveInt | None
    warmup_updates: NonNegativeInt
    seeds: Seeds
    heldout_updates: PositiveInt
    heldout_windows: PositiveInt
    snapshots_per_decade: PositiveInt
    checkpoint_minutes: PositiveFloat

    @model_validator(mode="after")
    def agrees(self) -> Self:
        if (self.epochs is None) == (self.updates is None):
            raise ValueError(
                "give either pretrain.epochs or pretrain.updates a number and set the other to"
                f" null; found epochs {self.epochs}, updates {self.updates}"
            )
        if self.warmup_updates > (self.updates or math.inf):
            raise ValueError(
                f"pretrain.warmup_updates: expected at most the {self.updates} updates of the run,"
                f" found {self.warmup_updates}; lower it"
            )
        if self.source == "official" and len(self.seeds) > 1:
            raise ValueError(
                f"pretrain.seeds: expected one, for imported weights, found {list(self.seeds)}"
            )
        return self


class Encode(Section):
    max_unreadable_fraction: float = Field(ge=0, le=1)


class Finetune(Optimization):
    seeds: Seeds
    epochs: PositiveInt
    warmup_fraction: Fraction
    classifier_dropout: Fraction
    symbol_deviation: PositiveFloat
    lambda_lm: NonNegativeFloat
    transfer: Literal["all", "none"] | int
    evaluation_updates: tuple[int, ...]


class Networks(Section):
    pretrain: tuple[NetworkName, ...] = Field(min_length=1)
    zero_shot: tuple[Literal["transformer", "lstm"], ...]  # no other keeps snapshots


class Ablation(Section):
    """An ablation (paper, Table 5); tasks: with their groups."""

    network: NetworkName
    finetune: dict[str, Any]
    tasks: dict[str, Group]


class Transfer(Section):
    """Layer transfer on one task (paper, Figure 2 left); layers: null for 0 to model.layers."""

    group: Group
    layers: tuple[int, ...] | None


class ZeroShotParams(Section):
    """A zero-shot set (paper, Figure 2 right); train_rows: to choose a threshold on."""

    train_rows: PositiveInt | None
    rows: PositiveInt | None


class Generate(Section):
    """Texts that the Transformer continues: prompts, and openings of held-out books."""

    prompts: tuple[str, ...]
    heldout_prompts: NonNegativeInt
    prompt_tokens: PositiveInt
    tokens: PositiveInt
    seed: NonNegativeInt
    samples: PositiveInt
    beams: int = Field(ge=2)
    length_penalty: float
    temperature: PositiveFloat
    top_k: PositiveInt | None
    top_p: float = Field(gt=0, le=1)


class TownParams(Section):
    seed: NonNegativeInt
    books: PositiveInt
    pages: PositiveInt


class SourceParams(Section):
    """A source in `data/<folder>/<its name>`; folder none: it is left out."""

    group: Literal["corpus", "bpe", "weights", "tasks"]
    folder: str


class TaskParams(Section):
    """A task's row; finetune: what differs from that section."""

    group: Group
    train_rows: PositiveInt | None
    eval_rows: PositiveInt | None
    finetune: dict[str, Any]


class Params(Section):
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
    ablations: dict[str, Ablation]
    generate: Generate
    town: TownParams | None
    sources: dict[str, SourceParams]
    tasks: dict[str, TaskParams]
    transfer: dict[str, Transfer]
    zero_shot: dict[str, ZeroShotParams]

    @model_validator(mode="after")
    def agrees(self) -> Self:
        needed = needed_sources(self.bpe.source, self.pretrain.source)
        trained, layers = self.networks.pretrain, range(self.model.layers + 1)
        groups = [f"{name}: {row.group}" for name, row in self.tasks.items()]
        folders = ["raw", "none", *["town"] * bool(self.town)]
        for name, section in (("pretrain", self.pretrain), ("finetune", self.finetune)):
            if len({*section.seeds}) < len(section.seeds):
                raise ValueError(f"{name}.seeds: expected each seed once; found {section.seeds}")
        _expect("finetune.transfer", self.finetune.transfer, ["all", "none", *layers])
        for name in (*needed, *self.tasks, *self.zero_shot):
            if name not in self.sources:
                raise ValueError(f"sources: expected {name}, which this run needs; found none")
        for name in self.networks.zero_shot:
            _expect("networks.zero_shot", name, trained)
        for name, source in self.sources.items():
            _expect(f"sources.{name}.folder", source.folder, folders)
        for name, task_row in self.tasks.items():
            moved = task_row.finetune.get("transfer", "all")
            _expect(f"tasks.{name}.finetune.transfer", moved, ["all", "none", *layers])
        for name, row in self.transfer.items():
            _expect(f"transfer.{name}", f"{name}: {row.group}", groups)
            for number in row.layers or ():
                _expect(f"transfer.{name}.layers", number, layers)
        for name, ablation in self.ablations.items():
            for task, group in ablation.tasks.items():
                _expect(f"ablations.{name}.tasks", f"{task}: {group}", groups)
                _expect(f"ablations.{name}.network", ablation.network, trained)
                transfer = ablation.finetune.get("transfer", self.finetune.transfer)
                moved = layers if ablation.network == "transformer" else ()  # an LSTM has one layer
                # dvc.yaml gives this one no weights to start from
                allowed = ["none"] if name == "no_pretraining" else ["all", "none", *moved]
                _expect(f"ablations.{name}.finetune.transfer", transfer, allowed)
        return self


def _expect(path: str, found: Any, expected: Collection[Any]) -> None:
    if found not in expected:
        raise ValueError(f"{path}: expected {', '.join(map(str, expected))}; found {found}")


def needed_sources(bpe: str, pretrain: str) -> list[str]:
    """Return the sources that a run needs, by bpe.source and pretrain.source."""
    wanted = {
        "books": pretrain == "train",
        "openai_bpe": bpe == "authors",
        "official": "official" in (bpe, pretrain),
    }
    return [*filter(wanted.get, wanted)]


def validate(values: Any) -> Params:
    """Check plain values as params.yaml holds them. Raises UserError."""
    params = validated(Params, values, "", str(PARAMS))
    rows = {f"tasks.{name}.finetune": row.finetune for name, row in params.tasks.items()}
    rows |= {f"ablations.{name}.finetune": row.finetune for name, row in params.ablations.items()}
    started = params.pretrain.seeds
    for path, row in {"finetune": {}, **rows}.items():
        recipe = validated(Finetune, params.finetune.model_dump() | row, path, str(PARAMS))
        if len(started) > 1 and not {*recipe.seeds} <= {*started}:
            raise UserError(
                f"{PARAMS}: {path}.seeds: expected some of pretrain.seeds {[*started]}, of which"
                f" each starts from its own, found {[*recipe.seeds]}"
            )
    return params


def read_params(path: Path = PARAMS) -> Params:
    """Read and check params.yaml. Raises UserError."""
    return validate(read_yaml(path))


def refuse_unknown(
    name: str, rows: Collection[str], section: str, code: Collection[str] | None = None
) -> None:
    """Raise UserError where params.yaml or the code has no such row."""
    code = rows if code is None else code
    if name not in rows or name not in code:
        names = [row for row in rows if row in code]
        raise UserError(
            f"expected one of the rows {section} of {PARAMS}, which gpt1 profile writes:"
            f" {', '.join(names) or 'none'}; found {name}{did_you_mean(name, names)}"
        )


def ablations_with_stage() -> set[str]:
    """Return the ablations that have a stage in dvc.yaml."""
    stages = read_yaml(Path("dvc.yaml"))["stages"]
    return {name for name in stages if f"ablations.{name}.tasks" in str(stages[name])}


def refuse_without_stage(params: Params) -> None:
    """Raise UserError for an ablation without a stage in dvc.yaml, which would never run, and the
    reverse, which DVC cannot read.
    """
    for name in sorted(ablations_with_stage() ^ {*params.ablations}):
        raise UserError(
            f"{PARAMS}: ablations.{name}: expected this row and a stage {name} in dvc.yaml, found"
            " one alone; copy the stage no_aux_lm there under that name, or compose the row anew"
            f" with gpt1 profile (ablations.{name}.tasks={{}} leaves it out)"
        )
