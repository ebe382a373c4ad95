"""params.yaml as frozen, strict models: a mistyped, missing or unknown key stops a run before it starts."""

import difflib
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gpt1.errors import UserError
from gpt1.yaml_files import read_yaml

PARAMS = Path("params.yaml")

Schedule = Literal["warmup_linear", "warmup_cosine", "warmup_constant"]
Precision = Literal["bf16", "fp32"]
Positive: Any = Field(gt=0)
Fraction: Any = Field(ge=0, lt=1)


class Section(BaseModel):
    """A part of params.yaml."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


SectionType = TypeVar("SectionType", bound=Section)


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

    group: Literal["nli", "glue_nli", "qa", "glue"]
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
    pretrain: Pretrain
    encode: Encode
    finetune: Finetune
    report: Report
    world: dict[str, World]
    sources: dict[str, Source]
    tasks: dict[str, Task]

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

    def finetune_for(self, task: str) -> Finetune:
        """The section `finetune` with the task's own row laid over it."""
        return merged_finetune(self.finetune, self.tasks[task].finetune, f"tasks.{task}.finetune")


def merged_finetune(section: Finetune, row: dict[str, Any], place: str) -> Finetune:
    """`section` with the entries of `row` in place of its own. Raises UserError naming `place` and the key."""
    return _validated(Finetune, section.model_dump() | row, place)


def _known_keys(model: type[BaseModel]) -> list[str]:
    """Every dotted name below a model; rows of a mapping stand as `*`."""
    names = []
    for name, field in model.model_fields.items():
        names.append(name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                prefix = name if inner is field.annotation else f"{name}.*"
                names.extend(f"{prefix}.{key}" for key in _known_keys(inner))
    return names


def nearest_key(dotted: str, model: type[BaseModel] = Params) -> str:
    """The known key most like `dotted`, or an empty string; a key of the same section comes before one of another."""
    known = _known_keys(model)
    parent, _, last = dotted.rpartition(".")
    pattern = ".".join("*" if f"{parent}.".startswith(("tasks.", "sources.", "world.")) and place == 1 else part
                       for place, part in enumerate(parent.split(".")))
    siblings = {key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == pattern}
    if found := difflib.get_close_matches(last, sorted(siblings), n=1):
        return f"{parent}.{found[0]}" if parent else found[0]
    words = {key.rpartition(".")[2]: key for key in known}
    found = difflib.get_close_matches(last, sorted(words), n=1)
    return words[found[0]] if found else ""


def _explained(error: ValidationError, model: type[BaseModel], place: str) -> str:
    """One problem in one line: the dotted name, what was found, what was expected, the nearest known key.

    An unknown key comes first: where a name is mistyped it is the cause, and the missing one only what follows.
    """
    problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    inner = ".".join(str(part) for part in problem["loc"] if part not in ("literal['all','none']", "int"))
    dotted = ".".join(part for part in (place, inner) if part)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "value_error":
        return f"{PARAMS}: {problem['ctx']['error']}{more}"
    if problem["type"] == "extra_forbidden":
        near = nearest_key(inner, model)
        hint = f"did you mean {'.'.join(part for part in (place, near) if part)}?" if near else "remove it"
        return f"{PARAMS}: unknown key {dotted} (found {problem['input']!r}); {hint}{more}"
    if problem["type"] == "missing":
        return f"{PARAMS}: {dotted} is missing; expected every key of conf/paper.yaml{more}; compose it anew with gpt1 profile"
    expected = problem["msg"].replace("Input should be", "expected").replace("a valid integer", "an integer").replace("a valid ", "a ")
    return f"{PARAMS}: {dotted}: found {problem['input']!r}, {expected[0].lower() + expected[1:]}{more}"


def _tuples(value: Any) -> Any:
    """YAML lists as tuples: strict models take no lists for tuples, and frozen ones should hold none."""
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


def _validated(model: type[SectionType], values: Any, place: str) -> SectionType:
    try:
        return model.model_validate(_tuples(values))
    except ValidationError as error:
        raise UserError(_explained(error, model, place)) from None


def validate(values: Any) -> Params:
    """Check plain values as params.yaml holds them. Raises UserError with one line that says what to mend."""
    if not isinstance(values, dict):
        raise UserError(f"{PARAMS}: expected sections such as model: and pretrain:, found {type(values).__name__}; "
                        "compose it with gpt1 profile")
    params = _validated(Params, values, "")
    for task in params.tasks:
        params.finetune_for(task)
    return params


def read_params(path: Path = PARAMS) -> Params:
    """Read and check params.yaml. Raises UserError where it is absent, no YAML, or has a wrong key or value."""
    return validate(read_yaml(path))
