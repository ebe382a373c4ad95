"""What each stage of a run has to do: updates, tokens, operations, bytes. Follows gpt1/train and
gpt1/stages, whose loops it counts, over rows as facts.py knows them.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gpt1.params.recipes import stage_recipe
from gpt1.params.schema import Finetune, NetworkName, Params
from gpt1.params.sections import FinetuneStage, PretrainStage, TransferStage
from gpt1.pipeline.plan import facts, formulas
from gpt1.pipeline.plan.formulas import Network
from gpt1.pipeline.schedule import Stage
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS
from gpt1.train.schedules import snapshot_updates

KEPT_CHECKPOINTS = 3  # gpt1/train/checkpoint.py: the last two, and one in the making
OTHERS_EVALUATED = 1.7  # times: with the last weights, and with the best where these are not them
TOKEN_BYTES = 2.0
SPECIAL_SYMBOLS = 3

Kind = Literal["pretrain", "finetune", "score", "text"]


class UpdateShape(NamedTuple):
    """What one update takes: examples, sequences of each, tokens of a sequence; operations."""

    rows: int
    sequences: int
    length: float
    flops: float


@dataclass(frozen=True)
class StageWork:
    """A stage's work. rows, sequences, length: of one update; networks: made one after another;
    operations, tokens: of the whole stage; with_softmax, with_dropout: whether its updates have a
    language model, and dropout.

    bytes_read: of raw text; counted: whether its
    rows were counted in files, not known from tables.
    """

    stage: str
    kind: Kind
    counted: bool = True
    name: NetworkName = "transformer"
    network: Network | None = None
    rows: int = 0
    sequences: int = 1
    length: float = 0.0
    networks: int = 0
    updates: int = 0
    flops: float = 0.0
    scored_flops: float = 0.0
    tokens: float = 0.0
    bytes_read: float = 0.0
    disk_bytes: float = 0.0
    with_softmax: bool = True
    with_dropout: bool = True

    @property
    def update_tokens(self) -> float:
        """Tokens of one update."""
        return self.rows * self.sequences * self.length


def work_of(stage: Stage, params: Params, fresh: Collection[str]) -> StageWork:
    """The work of a stage of dvc.yaml; `fresh` are the stages whose outputs are up to date."""
    verb, _, item = stage.name.partition("@")
    if verb in ("pretrain", "zero_shot"):
        if params.pretrain.source == "official":  # imported weights: some windows of held-out books
            return StageWork(stage.name, "text")
        work = pretraining if verb == "pretrain" else scoring
        return work(stage.name, getattr(params.stages, verb)[item], params, fresh)
    if verb == "finetune":
        return finetuning(stage.name, params.stages.finetune[item], params, fresh)
    if verb == "ablate":
        variant = params.stages.ablate[item]
        network = params.variants[variant.variant].network
        return finetuning(stage.name, variant, params, fresh, network)
    if verb == "transfer":
        return finetuning(stage.name, params.stages.transfer[item], params, fresh)
    return reading(stage.name, params, fresh)


def network_of(name: NetworkName, params: Params, rows: int) -> Network:
    """The sizes of a network with so many rows of embeddings."""
    units = 0 if name == "transformer" else getattr(params, name).units
    return Network(params.model, units, rows)


def pretraining(
    stage: str, row: PretrainStage, params: Params, fresh: Collection[str]
) -> StageWork:
    """A network's pre-training, every seed of the row, with held-out evaluations, snapshots,
    checkpoints.
    """
    name = row.network
    corpus, recipe, context = (
        facts.corpus_size(params, fresh),
        params.pretrain,
        params.model.context,
    )
    network = network_of(name, params, corpus.rows)
    update_tokens = recipe.batch_size * context
    updates = recipe.updates or max(1, round((recipe.epochs or 0) * corpus.tokens / update_tokens))
    seeds, evaluations = len(row.seeds), -(-updates // recipe.heldout_updates)
    forward = formulas.hidden_flops(network, context) + formulas.softmax_flops(network)
    weights = len(snapshot_updates(updates, recipe.snapshots_per_decade)) + 1
    stored = seeds * weights * formulas.WEIGHT_BYTES + KEPT_CHECKPOINTS * formulas.CHECKPOINT_BYTES
    return StageWork(
        stage,
        "pretrain",
        counted=corpus.counted or recipe.updates is not None,
        name=name,
        network=network,
        rows=recipe.batch_size,
        length=context,
        networks=seeds,
        updates=seeds * updates,
        flops=seeds * updates * update_tokens * formulas.training_flops(network, context, True),
        scored_flops=seeds * evaluations * recipe.heldout_windows * context * forward,
        tokens=seeds * updates * update_tokens,
        disk_bytes=stored * formulas.parameters(network),
        with_dropout=recipe.dropout > 0,
    )


def evaluations_of(recipe: Finetune, updates_in_epoch: int) -> int:
    """Times that a fine-tuning looks at the selection split: after each epoch, and in the first at
    the updates that are named.
    """
    return recipe.epochs + sum(update < updates_in_epoch for update in recipe.evaluation_updates)


def finetuning(
    stage: str,
    row: FinetuneStage,
    params: Params,
    fresh: Collection[str],
    name: NetworkName = "transformer",
) -> StageWork:
    """Fine-tunings of one task by one recipe: seeds, times numbers of layers. The tasks' own keep
    their weights.
    """
    recipe, task = stage_recipe(params, row), row.task
    networks = len(row.seeds) * (len(row.layers) if isinstance(row, TransferStage) else 1)
    seen, sequences = facts.task_size(task, params, fresh), TASKS[task].sequences
    network = network_of(name, params, facts.corpus_size(params, fresh).rows + SPECIAL_SYMBOLS)
    in_epoch = seen.train // recipe.batch_size
    updates = networks * in_epoch * recipe.epochs
    example_tokens = sequences * seen.length
    tokens = updates * recipe.batch_size * example_tokens
    rows_scored = evaluations_of(recipe, in_epoch) * seen.dev + OTHERS_EVALUATED * (
        seen.labelled + seen.unlabelled
    )
    flops = formulas.training_flops(network.with_positions, seen.length, recipe.lambda_lm > 0)
    scored = networks * rows_scored * example_tokens * formulas.hidden_flops(network, seen.length)
    weights = networks * formulas.WEIGHT_BYTES * formulas.parameters(network)
    return StageWork(
        stage,
        "finetune",
        counted=seen.counted,
        name=name,
        network=network,
        rows=recipe.batch_size,
        sequences=sequences,
        length=seen.length,
        networks=networks,
        updates=updates,
        flops=tokens * flops,
        scored_flops=scored,
        tokens=tokens,
        disk_bytes=weights if stage.startswith("finetune@") else 0.0,
        with_softmax=recipe.lambda_lm > 0,
        with_dropout=recipe.dropout > 0,
    )


def scoring(stage: str, row: PretrainStage, params: Params, fresh: Collection[str]) -> StageWork:
    """Every snapshot's reading of the zero-shot sets, of every pre-training of the row."""
    pretrained = pretraining(stage, row, params, fresh)
    assert pretrained.network is not None
    seeds, per_decade = pretrained.networks, params.pretrain.snapshots_per_decade
    snapshots = seeds * len(snapshot_updates(pretrained.updates // seeds, per_decade))
    sets = [facts.zero_shot_tokens(one, params, fresh) for one in params.zero_shot]
    tokens = snapshots * sum(tokens for tokens, _ in sets)
    hidden = formulas.hidden_flops(pretrained.network, params.model.context / 2)
    return StageWork(
        stage,
        "score",
        counted=all(counted for _, counted in sets),
        name=pretrained.name,
        network=pretrained.network,
        networks=snapshots,
        scored_flops=tokens * (hidden + formulas.softmax_flops(pretrained.network)),
        tokens=tokens,
    )


def reading(stage: str, params: Params, fresh: Collection[str]) -> StageWork:
    """A stage without a network: how much raw text it goes through, and writes."""
    verb, _, item = stage.partition("@")
    corpus = facts.corpus_size(params, fresh)
    work = StageWork(stage, "text", corpus.counted)
    if verb in ("world", "clean", "bpe", "shard") or (item == "books"):
        small = {"bpe": 0.0}
        written = small | {"shard": TOKEN_BYTES * corpus.tokens}
        disk_bytes = written.get(verb, corpus.bytes_)
        return replace(work, bytes_read=corpus.bytes_, disk_bytes=disk_bytes)
    if verb == "acquire":
        known = facts.TASK_BYTES.get(item, facts.ASSUMED_BYTES)
        size = 0.0 if is_made_up(params.sources[item].folder) else known
        return replace(work, counted=False, bytes_read=size, disk_bytes=size)
    if verb == "baselines":
        tasks = [reading(f"encode@{task}", params, fresh) for task in params.tasks]
        counted = all(task.counted for task in tasks)
        fitted = "tfidf" in params.baselines.systems  # a fifth of the fits that the rate is of
        size = 0.2 * fitted * sum(task.bytes_read for task in tasks)
        return replace(work, counted=counted, bytes_read=size)
    if verb == "encode":
        seen, folder = facts.task_size(item, params, fresh), params.sources[item].folder
        sequences = TASKS[item].sequences
        tokens = sum(seen[:4]) * seen.length * min(2, sequences)  # a passage is read once
        return replace(
            work,
            counted=seen.counted,
            bytes_read=tokens * facts.bytes_a_token(folder, params.bpe.merges),
            disk_bytes=tokens * sequences * TOKEN_BYTES,
        )
    return work
