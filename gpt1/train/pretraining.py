"""Pre-training (paper, sections 3.1 and 4.1), or the same outputs from imported weights."""

import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gpt1.base.errors import UserError
from gpt1.base.files import link_or_copy, sha256_file, write_json, writing_folder
from gpt1.corpus.shards import SPLITS, Shards
from gpt1.model.lstm import Network
from gpt1.model.networks import make_network, parameters_by_component
from gpt1.model.packing import to_device
from gpt1.model.weights import Description, save_weights, transfer_weights
from gpt1.params.schema import Params, Pretrain
from gpt1.train import checkpoint
from gpt1.train.batches import Integers
from gpt1.train.checkpoint import Position, Saver, note_finished
from gpt1.train.engine import Engine
from gpt1.train.launch import Machine
from gpt1.train.loop import (
    Interrupted,
    Report,
    Stop,
    Trainer,
    check_finite,
    seed_for,
    training_updates,
)
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import refuse_full_disk
from gpt1.train.schedules import snapshot_updates

LARGEST_NATS = math.log(sys.float_info.max)


class Corpus(NamedTuple):
    """What pre-training reads."""

    starts: Callable[[int], Integers]  # [batch], of an update's windows
    windows: Callable[[Integers], Integers]  # [b, context + 1], at such starts
    heldout_windows: Integers
    heldout_words_per_token: float


@dataclass(frozen=True)
class PretrainingRun:
    """A network to train from one seed."""

    network: Network
    description: Description
    recipe: Pretrain
    seed: int
    updates: int
    corpus: Corpus
    machine: Machine
    folder: Path  # of curve.jsonl, snapshots/ and checkpoints
    code: str = ""  # the digest that checkpoints are compared with


class Pretrained(NamedTuple):
    """The last held-out perplexities, and the speed."""

    heldout: dict[str, float]
    speed: dict[str, Any]


@torch.inference_mode()
def heldout_values(
    engine: Engine, corpus: Corpus, micro_batch: int, stop: Stop
) -> dict[str, float]:
    """Return the held-out loss in nats per token, and the perplexity of a token and of a word.
    Raises Interrupted.
    """
    windows, together = corpus.heldout_windows, micro_batch * engine.processes
    nats = torch.zeros(1, dtype=torch.float64, device=engine.device)
    for start in range(0, len(windows), together):
        stop.check(engine)
        own = windows[start : start + together][engine.rank :: engine.processes]
        if len(own):
            windows_bt = to_device(torch.from_numpy(own), engine.device)
            nats += engine.objective(windows_bt, 0.0)["loss"].double() * len(own)
    loss = engine.total(nats).item() / len(windows)
    return {
        "heldout_loss": loss,
        "heldout_perplexity": perplexity(loss),
        "heldout_word_perplexity": perplexity(loss / corpus.heldout_words_per_token),
    }


def perplexity(nats: float) -> float:
    """Return e to the loss; infinity where no float holds it."""
    return math.inf if nats > LARGEST_NATS else math.exp(nats)


def pretrain(run: PretrainingRun, report: Report) -> Pretrained:
    """Train from the newest checkpoint, if there is one. A signal saves a checkpoint and ends the
    process. Raises UserError where a loss is not finite, other code made the checkpoint, or the
    disk is full.
    """
    network, recipe, corpus, updates = run.network, run.recipe, run.corpus, run.updates
    kind = run.description.kind
    state = checkpoint.newest_checkpoint(run.folder, run.code)
    tokens = recipe.batch_size * network.context  # of an update
    training = Trainer(
        f"pretrain {kind}/seed-{run.seed}",
        Pretraining(network, recipe.precision),
        network,
        recipe,
        run.machine,
        seed=run.seed,
        updates=updates,
        warmup=recipe.warmup_updates / updates,
        row_tokens=network.context,
        compiled_tokens=updates * tokens,
        inputs=lambda starts, to: to_device(torch.from_numpy(corpus.windows(starts)), to),
        curve=run.folder / "curve.jsonl",
        report=report,
        state=state,
    )
    if state and training.main:
        update = state.position.update
        print(f"{training.what}: going on from the checkpoint of update {update}", file=sys.stderr)
    training.tokens = training.first * tokens
    (snapshots := run.folder / "snapshots").mkdir(parents=True, exist_ok=True)
    # Evenly over the logarithm of updates: Figure 2, right, is drawn over that.
    snapshots_at = snapshot_updates(updates, recipe.snapshots_per_decade)
    if kind == "lstm_equal":
        snapshots_at.clear()
    # A checkpoint is weights and two moments; a curve and a summary are nothing beside.
    kept = sum(update > training.first for update in snapshots_at)
    refuse_full_disk(run.folder, network, 3 + 1 + kept)
    saver = Saver(
        training.engine,
        run.folder,
        run.code,
        recipe.checkpoint_minutes,
        training.first,
    )
    done, heldout = Position(training.first, training.curve.lines), dict[str, float]()

    def evaluate(update: int) -> None:
        if update and (update % recipe.heldout_updates == 0 or update == updates):
            values = heldout_values(training.engine, corpus, training.micro_batch, training.stop)
            check_finite(values, f"{training.what}: held-out loss after update {update}")
            training.note(update, values)
            heldout.update(values)

    resumable = named_where_it_goes_on(training.what, run.folder)
    with training.running(), resumable:
        try:
            # A checkpoint is of before its update's evaluation, which is repeated here.
            evaluate(done.update)  # what was cut short
            batches = map(corpus.starts, range(done.update + 1, updates + 1))
            for step in training_updates(training, batches, saver.due):
                training.log(step, tokens)
                if training.main and step.update in snapshots_at:
                    path = snapshots / f"{step.update:08d}.safetensors"
                    save_weights(path, network, run.description)
                # The position before the evaluation: its lines on the curve are not of the
                # checkpoint.
                done = Position(step.update, training.curve.lines)
                if step.save and step.update < updates:
                    saver.save(done, training.micro_batch)
                evaluate(step.update)
            training.stop.check(training.engine)  # asked for in the last evaluation
        except Interrupted:
            saved = saver.save(done, training.micro_batch)
            training.stop.end(
                training.engine,
                f"interrupted at update {done.update} of {updates}, what came after it is dropped:"
                f" {saved}; run the same command again to go on",
            )
    return Pretrained(heldout, training.speed())


@contextmanager
def named_where_it_goes_on(what: str, folder: Path) -> Iterator[None]:
    """Turn an OSError into a UserError that names the last checkpoint."""
    try:
        yield
    except OSError as error:
        kept = max(folder.glob("update-*"), default="the start: there is no checkpoint")
        raise UserError(
            f"{what}: a file cannot be written or read ({error}): mend that and run the same"
            f" command again, which goes on from {kept}"
        ) from None


def corpus_of(shards: Shards, recipe: Pretrain, seed: int, context: int) -> Corpus:
    """Return the windows that a seed draws from the shards."""
    return Corpus(
        partial(shards.starts, "train", seed, batch_size=recipe.batch_size, context=context),
        partial(shards.windows, "train", context=context),
        shards.heldout_windows(recipe.heldout_windows, context),
        shards.words_per_token("heldout"),
    )


def number_of_updates(params: Params, shards: Shards) -> int:
    """Return pretrain.updates, or as many as make pretrain.epochs passes over the training tokens.
    Raises UserError where that is none, or less than the warm-up.
    """
    context, recipe, tokens = params.model.context, params.pretrain, shards.tokens("train")
    for split in SPLITS:
        shards.starts(split, 0, 0, 1, context)  # refuses books that are all shorter
    updates = recipe.updates
    if updates is None:
        # Windows are drawn with replacement, so an epoch is an expectation.
        updates = round((recipe.epochs or 0) * tokens / (recipe.batch_size * context))
    if updates < 1:
        raise UserError(
            f"pretrain.epochs: {recipe.epochs} of {tokens} tokens make not one update of"
            f" {recipe.batch_size} x {context}; raise pretrain.epochs or lower pretrain.batch_size"
            " in params.yaml"
        )
    if recipe.warmup_updates > updates:
        raise UserError(
            f"pretrain.warmup_updates: expected at most the {updates} updates of the run, found"
            f" {recipe.warmup_updates}; lower it in params.yaml"
        )
    return updates


def run_folder(recipe: Pretrain, shards: Shards, description: Description, seed: int) -> Path:
    """Return the folder of one seed's checkpoints and finished outputs."""
    what_matters = [
        description.config,
        recipe.model_dump(exclude={"checkpoint_minutes", "seeds"}) | {"seed": seed},
        sha256_file(shards.folder / "index.json"),
    ]
    return checkpoint.state_folder("pretrain", f"{description.kind}-seed-{seed}", what_matters)


def make_run(
    params: Params,
    shards: Shards,
    description: Description,
    seed: int,
    updates: int,
    machine: Machine,
    code: str,
) -> PretrainingRun:
    """Make a run with a freshly drawn network."""
    recipe, name, rows = params.pretrain, description.kind, description.vocabulary_size
    return PretrainingRun(
        make_network(name, params, rows, torch.Generator().manual_seed(seed_for(seed))),
        description,
        recipe,
        seed,
        updates,
        corpus_of(shards, recipe, seed, params.model.context),
        machine,
        run_folder(recipe, shards, description, seed),
        code,
    )


def summary_of(
    shards: Shards, description: Description, network: Network, **values: Any
) -> dict[str, Any]:
    """Return the contents of summary.json."""
    return {
        "network": description.kind,
        "train_tokens": shards.tokens("train"),
        "heldout_tokens": shards.tokens("heldout"),
        "vocabulary_size": description.vocabulary_size,
        "parameters": parameters_by_component(network),
        **values,
    }


def keep_seed(run: PretrainingRun, shards: Shards, trained: Pretrained) -> None:
    """Keep a finished seed until the stage ends, and remove its checkpoints."""
    summary = summary_of(
        shards,
        run.description,
        run.network,
        updates=run.updates,
        tokens=run.updates * run.recipe.batch_size * run.network.context,
        **trained.heldout,
    )
    finished = run.folder / f"seed-{run.seed}"
    whole = named_where_it_goes_on(f"{run.description.kind} {finished.name}", run.folder)
    with whole, writing_folder(finished) as new:
        save_weights(new / "weights.safetensors", run.network, run.description)
        shutil.copytree(run.folder / "snapshots", new / "snapshots", copy_function=link_or_copy)
        shutil.copyfile(run.folder / "curve.jsonl", new / "curve.jsonl")
        write_json(new / "summary.json", summary)
        note_finished(new, run.code)
    for path in run.folder.glob("update-*"):
        shutil.rmtree(path)


def write_imported(
    out: Path,
    weights: Path,
    seed: int,
    params: Params,
    shards: Shards,
    description: Description,
    machine: Machine,
) -> None:
    """Write a seed's outputs from imported weights, without perplexity where no books are held out.
    Raises UserError where the weights do not fit.
    """
    recipe, heldout = params.pretrain, dict[str, float]()
    network = make_network(description.kind, params, description.vocabulary_size, torch.Generator())
    transfer_weights(weights, description, network, "all")
    if shards.tokens("heldout"):
        engine = Engine(Pretraining(network.to(machine.device), recipe.precision), recipe)
        corpus = corpus_of(shards, recipe, seed, network.context)
        rows = machine.micro_batch_for(network.context)
        heldout = heldout_values(engine, corpus, rows, Stop())
        if not all(map(math.isfinite, heldout.values())):
            raise UserError(
                f"{weights.parent}: expected a finite loss on the held-out books, found none; bring"
                " the weights again: gpt1 import FOLDER"
            )
    with writing_folder(out) as new:
        (new / "snapshots").mkdir()
        (new / "curve.jsonl").touch()
        save_weights(new / "weights.safetensors", network, description)
        about = {"source": "official", "updates": 0, "tokens": 0, **heldout}
        write_json(new / "summary.json", summary_of(shards, description, network, **about))
