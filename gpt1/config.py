"""params.yaml as frozen, strict models: a mistyped, missing or unknown key stops a run before it starts."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gpt1.errors import UserError
from gpt1.strict import validated
from gpt1.yaml_files import read_yaml

PARAMS = Path("params.yaml")

Schedule = Literal["warmup_linear", "warmup_cosine", "warmup_constant"]
Precision = Literal["bf16", "fp32"]
NetworkName = Literal["transformer", "lstm"]
Group = Literal["nli", "glue_nli", "qa", "glue"]
Positive: Any = Field(gt=0)
Fraction: Any = Field(ge=0, lt=1)


class Section(BaseModel):
    """A part of params.yaml."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Acquire(Section):
    max_unpacked_bytes: int = Positive


class Clean(Section):
    corpus_name: str = Field(min_length=1)


class Bpe(Section):
    source: Literal["authors", "learn"]
    merges: int = Positive
    alphabet_size: int = Positive
    max_word_types: int = Positive


class Shard(Section):
    heldout_fraction: float = Field(gt=0, lt=1)
    heldout_seed: int = Field(ge=0)


class Model(Section):
    """Sizes of the network (paper, section 4.1)."""

    context: int = Field(ge=8)
    width: int = Positive
    layers: int = Positive
    heads: int = Positive
    feed_forward: int = Positive
    embedding_deviation: float = Positive
    weight_deviation: float = Positive
    layer_norm_epsilon: float = Positive

    @model_validator(mode="after")
    def heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"model.heads {self.heads} must divide model.width {self.width}; "
                             f"choose heads from the divisors of {self.width}")
        return self


class Lstm(Section):
    """The paper's baseline: one LSTM layer between the same embeddings (paper, section 5)."""

    units: int = Positive


class Optimization(Section):
    """What pre-training and fine-tuning share: the authors' Adam, its schedule, precision."""

    batch_size: int = Positive
    learning_rate: float = Positive
    schedule: Schedule
    beta1: float = Fraction
    beta2: float = Fraction
    epsilon: float = Positive
    weight_decay: float = Field(ge=0)
    max_gradient_norm: float = Positive
    dropout: float = Fraction
    precision: Precision
    log_updates: int = Positive


class Pretrain(Optimization):
    epochs: float | None = Field(gt=0)
    updates: int | None = Field(gt=0)
    warmup_updates: int = Field(ge=0)
    seed: int = Field(ge=0)
    heldout_updates: int = Positive
    heldout_windows: int = Positive
    snapshots_per_decade: int = Positive
    checkpoint_minutes: float = Positive

    @model_validator(mode="after")
    def one_length(self) -> Self:
        if (self.epochs is None) == (self.updates is None):
            raise ValueError("give either pretrain.epochs or pretrain.updates a number and set the other to null; "
                             f"found epochs {self.epochs}, updates {self.updates}")
        return self


class Encode(Section):
    max_unreadable_fraction: float = Field(ge=0, le=1)


class Finetune(Optimization):
    seeds: tuple[int, ...] = Field(min_length=1)
    epochs: int = Positive
    warmup_fraction: float = Fraction
    classifier_dropout: float = Fraction
    lambda_lm: float = Field(ge=0)
    transfer: Literal["all", "none"] | int
    evaluation_updates: tuple[int, ...]

    @model_validator(mode="after")
    def seeds_differ(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"finetune.seeds must differ from one another, found {list(self.seeds)}")
        return self


class Variant(Section):
    """A row of ablations (paper, Table 5): which pre-trained network, how many of the seeds (null: all), what differs in fine-tuning."""

    network: NetworkName
    seeds: int | None = Field(gt=0)
    finetune: dict[str, Any]


class Ablation(Section):
    """One variant on one task; `reads` is the data that it starts from: pre-trained weights, or the vocabulary alone."""

    variant: str
    task: str
    group: Group
    reads: str


class Transfer(Section):
    """Layer transfer on one task (paper, Figure 2 left): numbers of layers, null for 0 to model.layers; how many seeds, null for all."""

    group: Group
    layers: tuple[int, ...] | None
    seeds: int | None = Field(gt=0)


class ZeroShot(Section):
    """One zero-shot set (paper, Figure 2 right): how many rows to choose a threshold on, and to score."""

    train_rows: int | None = Field(gt=0)
    rows: int | None = Field(gt=0)


class Report(Section):
    chance_standard_errors: float = Field(ge=0)


class World(Section):
    seed: int = Field(ge=0)
    books: int = Positive
    pages: int = Positive


class Source(Section):
    """Where one source lies: data/<folder>/<its name>."""

    group: Literal["corpus", "bpe", "tasks"]
    folder: str = Field(pattern="^(raw|world/[a-z0-9_]+)$")


class Task(Section):
    """One task's row: how many rows of it, and what differs in its fine-tuning."""

    group: Group
    train_rows: int | None = Field(gt=0)
    eval_rows: int | None = Field(gt=0)
    finetune: dict[str, Any]


class Params(Section):
    """The whole of params.yaml."""

    profile: str
    acquire: Acquire
    clean: Clean
    bpe: Bpe
    shard: Shard
    model: Model
    lstm: Lstm
    pretrain: Pretrain
    encode: Encode
    finetune: Finetune
    variants: dict[str, Variant]
    report: Report
    world: dict[str, World]
    sources: dict[str, Source]
    tasks: dict[str, Task]
    ablate: dict[str, Ablation]
    transfer: dict[str, Transfer]
    zero_shot: dict[str, ZeroShot]

    @model_validator(mode="after")
    def rows_agree(self) -> Self:
        if isinstance(self.finetune.transfer, int) and not 0 <= self.finetune.transfer <= self.model.layers:
            raise ValueError(f"finetune.transfer must be all, none or 0..{self.model.layers} (model.layers), "
                             f"found {self.finetune.transfer}")
        wanted = [name for name in ("books", *self.tasks) if name not in self.sources]
        if self.bpe.source == "authors" and "openai_bpe" not in self.sources:
            wanted.append("openai_bpe")
        if wanted:
            raise ValueError(f"sources has no row for {', '.join(wanted)}; compose params.yaml anew with gpt1 profile")
        for name, row in self.sources.items():
            if row.folder != "raw" and row.folder.removeprefix("world/") not in self.world:
                raise ValueError(f"sources.{name}.folder: expected raw or world/ and a row of world ({', '.join(self.world) or 'none'}), "
                                 f"found {row.folder}")
        return self

    @model_validator(mode="after")
    def rows_of_ablations_agree(self) -> Self:
        if "full" in self.variants:
            raise ValueError("variants.full: full is the ordinary fine-tuning in Table 5, expected another name")
        for name, row in self.ablate.items():
            known = row.variant in self.variants and row.task in self.tasks
            wanted = ablation(row.variant, self.variants[row.variant], row.task, self.tasks[row.task]) if known else None
            if name != f"{row.variant}-{row.task}" or row != wanted:
                raise ValueError(f"ablate.{name}: expected VARIANT-TASK, a variant among {', '.join(self.variants) or 'none'}, a task of "
                                 f"tasks, their group and reads, found {row.model_dump()}; compose params.yaml anew with gpt1 profile")
        for name, moved in self.transfer.items():
            if name not in self.tasks or moved.group != self.tasks[name].group:
                raise ValueError(f"transfer.{name}: expected a task of params.yaml and its group, found {moved.group}; known tasks: "
                                 f"{', '.join(self.tasks)}")
            if wrong := [layers for layers in moved.layers or () if not 0 <= layers <= self.model.layers]:
                raise ValueError(f"transfer.{name}.layers: expected numbers from 0 to {self.model.layers} (model.layers), found "
                                 f"{', '.join(map(str, wrong))}")
        if absent := [name for name in self.zero_shot if name not in self.sources]:
            raise ValueError(f"sources has no row for {', '.join(absent)} of zero_shot; compose params.yaml anew with gpt1 profile")
        return self

    def finetune_for(self, task: str, variant: str | None = None) -> Finetune:
        """The section `finetune` with the task's own row laid over it, and over that what the variant changes, if one is given."""
        recipe = merged_finetune(self.finetune, self.tasks[task].finetune, f"tasks.{task}.finetune")
        if variant is None:
            return recipe
        row = self.variants[variant]
        return with_first_seeds(merged_finetune(recipe, row.finetune, f"variants.{variant}.finetune"), row.seeds)

    def transfer_recipe(self, task: str) -> Finetune:
        """The recipe of a task's layer transfer: that of its fine-tuning, on the first of its seeds."""
        return with_first_seeds(self.finetune_for(task), self.transfer[task].seeds)

    def transferred_layers(self, task: str) -> tuple[int, ...]:
        """The numbers of layers of a task's transfer, ascending."""
        layers = self.transfer[task].layers
        return tuple(range(self.model.layers + 1)) if layers is None else tuple(sorted(set(layers)))


def ablation(name: str, variant: Variant, task: str, row: Task) -> Ablation:
    """The row of `ablate` for a variant and a task, whose own rows are given."""
    reads = "bpe" if variant.finetune.get("transfer") == "none" else f"pretrain/{variant.network}/weights.safetensors"
    return Ablation(variant=name, task=task, group=row.group, reads=reads)


def with_first_seeds(recipe: Finetune, count: int | None) -> Finetune:
    """The recipe on its first `count` seeds; None: on all."""
    return recipe.model_copy(update={"seeds": recipe.seeds[:count]})


def merged_finetune(section: Finetune, row: dict[str, Any], place: str) -> Finetune:
    """`section` with the entries of `row` in place of its own. Raises UserError naming `place` and the key."""
    return validated(Finetune, section.model_dump() | row, place, str(PARAMS))


def validate(values: Any) -> Params:
    """Check plain values as params.yaml holds them. Raises UserError with one line that says what to mend."""
    if not isinstance(values, dict):
        raise UserError(f"{PARAMS}: expected sections such as model: and pretrain:, found {type(values).__name__}; "
                        "compose it with gpt1 profile")
    params = validated(Params, values, "", str(PARAMS))
    for task in params.tasks:
        params.finetune_for(task)
    for ablated in params.ablate.values():
        recipe = params.finetune_for(ablated.task, ablated.variant)
        if params.variants[ablated.variant].network == "lstm" and isinstance(recipe.transfer, int):
            raise UserError(f"{PARAMS}: variants.{ablated.variant}.finetune.transfer: expected all or none for the LSTM, which has one "
                            f"layer, found {recipe.transfer}")
    return params


def read_params(path: Path = PARAMS) -> Params:
    """Read and check params.yaml. Raises UserError where it is absent, no YAML, or has a wrong key or value."""
    return validate(read_yaml(path))
