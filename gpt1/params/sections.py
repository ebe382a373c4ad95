"""The sections of params.yaml as frozen, strict models; gpt1/params/schema.py makes the whole of
them and checks what spans several.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Schedule = Literal["warmup_linear", "warmup_cosine", "warmup_constant"]
Precision = Literal["bf16", "fp32"]
NetworkName = Literal["transformer", "lstm", "lstm_equal"]
Group = Literal["nli", "glue_nli", "qa", "glue"]
Positive: Any = Field(gt=0)
PLAIN = r"^[^\x00-\x1f\x7f-\x9f]*$"  # no character that steers a terminal
Fraction: Any = Field(ge=0, lt=1)


class Section(BaseModel):
    """A part of params.yaml."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Acquire(Section):
    max_unpacked_bytes: int = Positive


class Clean(Section):
    corpus_name: str = Field(min_length=1, max_length=200, pattern=PLAIN)
    text_field: str = Field(min_length=1)


class Bpe(Section):
    source: Literal["authors", "learn", "official"]
    merges: int = Positive
    alphabet_size: int = Positive
    max_word_types: int = Positive


class Baselines(Section):
    """What the networks are to beat on every task: systems that know no order of words, each tuned
    on dev.
    """

    systems: tuple[Literal["majority", "tfidf"], ...]
    words: int = Positive
    penalties: tuple[float, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def positive(self) -> Self:
        values = self.penalties
        if min(values) <= 0 or len(set(values)) < len(values):
            raise ValueError(
                "baselines.penalties must be above 0 and differ from one another, found"
                f" {list(values)}"
            )
        return self


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
            raise ValueError(
                f"model.heads {self.heads} must divide model.width {self.width}; "
                f"choose heads from the divisors of {self.width}"
            )
        return self


class Transformer(Section):
    """What the Transformer alone has: the learning rate of its pre-training, null for that of the
    section `pretrain`.
    """

    learning_rate: float | None = Field(gt=0)


class LstmParams(Section):
    """The paper's baseline, of its proportion (`lstm`) or of equal size (`lstm_equal`): one LSTM
    layer between the same embeddings (paper, section 5).
    """

    units: int = Positive
    learning_rate: float | None = Field(gt=0)


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
    source: Literal["train", "official"]
    epochs: float | None = Field(gt=0)
    updates: int | None = Field(gt=0)
    warmup_updates: int = Field(ge=0)
    seeds: tuple[int, ...] = Field(min_length=1)
    heldout_updates: int = Positive
    heldout_windows: int = Positive
    snapshots_per_decade: int = Positive
    checkpoint_minutes: float = Positive

    @model_validator(mode="after")
    def seeds_differ(self) -> Self:
        if min(self.seeds) < 0:
            raise ValueError(
                f"pretrain.seeds: expected whole numbers from 0, found {list(self.seeds)}"
            )
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(
                f"pretrain.seeds must differ from one another, found {list(self.seeds)}"
            )
        if self.source == "official" and len(self.seeds) > 1:
            raise ValueError(
                "pretrain.seeds: expected one seed, for imported weights (pretrain.source:"
                f" official) are one pre-training, found {list(self.seeds)}"
            )
        return self

    @model_validator(mode="after")
    def one_length(self) -> Self:
        if (self.epochs is None) == (self.updates is None):
            raise ValueError(
                "give either pretrain.epochs or pretrain.updates a number and set the other to"
                f" null; found epochs {self.epochs}, updates {self.updates}"
            )
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
            raise ValueError(
                f"finetune.seeds must differ from one another, found {list(self.seeds)}"
            )
        return self


class Networks(Section):
    """The networks of a run."""

    pretrain: tuple[NetworkName, ...] = Field(min_length=1)
    zero_shot: tuple[NetworkName, ...]


class Variant(Section):
    """An ablation (paper, Table 5): which pre-trained network, what differs in fine-tuning, and on
    which tasks, with their groups.
    """

    network: NetworkName
    finetune: dict[str, Any]
    tasks: dict[str, Group]


class Transfer(Section):
    """Layer transfer on one task (paper, Figure 2 left): numbers of layers, null for 0 to
    model.layers.
    """

    group: Group
    layers: tuple[int, ...] | None


class ZeroShotParams(Section):
    """One zero-shot set (paper, Figure 2 right): how many rows to choose a threshold on, and to
    score.
    """

    train_rows: int | None = Field(gt=0)
    rows: int | None = Field(gt=0)


class Generate(Section):
    """Texts that the pre-trained Transformer goes on with: own prompts and openings of held-out
    books.
    """

    prompts: tuple[str, ...]
    heldout_prompts: int = Field(ge=0)
    prompt_tokens: int = Positive
    tokens: int = Positive
    seed: int = Field(ge=0)
    samples: int = Positive
    beams: int = Field(ge=2)
    length_penalty: float
    temperature: float = Positive
    top_k: int | None = Field(gt=0)
    top_p: float = Field(gt=0, le=1)


class World(Section):
    seed: int = Field(ge=0)
    books: int = Positive
    pages: int = Positive


class Download(Section):
    """A source that the stage `download` brings; what and from where stands in
    gpt1/sources/addresses.py.
    """


class SourceParams(Section):
    """Where one source lies: data/<folder>/<its name>."""

    group: Literal["corpus", "bpe", "weights", "tasks"]
    folder: str = Field(pattern="^(raw|download|world/[a-z0-9_]+)$")


class TaskParams(Section):
    """One task's row: how many rows of it, and what differs in its fine-tuning."""

    group: Group
    train_rows: int | None = Field(gt=0)
    eval_rows: int | None = Field(gt=0)
    finetune: dict[str, Any]
