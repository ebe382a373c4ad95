"""Pre-training (paper, sections 3.1 and 4.1): equation 1 over windows of the corpus, with held-out
perplexity, snapshots, checkpoints.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gpt1.base.errors import UserError
from gpt1.model.layout import to_device
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, save_weights
from gpt1.params.schema import Pretrain
from gpt1.train import checkpoint
from gpt1.train.batches import Integers
from gpt1.train.checkpoint import Checkpoint, Position, Saver
from gpt1.train.engine import Engine
from gpt1.train.launch import Machine, facts
from gpt1.train.loop import (
    Interrupted,
    Report,
    Stop,
    Trainer,
    check_finite,
    stoppable,
    training_steps,
)
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import refuse_full_disk
from gpt1.train.schedules import snapshot_updates

LARGEST_NATS = math.log(sys.float_info.max)


class Corpus(NamedTuple):
    """What pre-training reads: where the windows of an update begin, [batch]; the windows
    [b, context + 1] from b such places on; the held-out windows, and held-out words a token.
    """

    starts: Callable[[int], Integers]
    windows: Callable[[Integers], Integers]
    heldout_windows: Integers
    heldout_words_per_token: float


@dataclass(frozen=True)
class PretrainingRun:
    """A network to be trained from one seed for `updates` updates in `folder`, where curve.jsonl,
    snapshots/ and checkpoints lie; `code` is the digest that checkpoints are held to.
    """

    network: Network
    description: Description
    recipe: Pretrain
    seed: int
    updates: int
    corpus: Corpus
    machine: Machine
    folder: Path
    code: str = ""


class Pretrained(NamedTuple):
    """The last held-out perplexities, and how fast it went (for a log, not for an output)."""

    heldout: dict[str, float]
    speed: dict[str, Any]


@torch.inference_mode()
def heldout_values(
    engine: Engine, corpus: Corpus, micro_batch: int, stop: Stop
) -> dict[str, float]:
    """Loss in nats a token over the held-out windows, and perplexity for each token and for each
    word that the tokens make.

    Raises Interrupted where the run is to end.
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
    """The exponential of a loss; infinite where no float holds it."""
    return math.inf if nats > LARGEST_NATS else math.exp(nats)


def pretrain(run: PretrainingRun, report: Report) -> Pretrained:
    """Train; goes on from the newest checkpoint in the run's folder, whose curve and snapshots
    grow.

    A checkpoint is of the moment before its update's held-out evaluation, so that one cut short is
    made anew. A signal drops what is in progress and ends the process with a checkpoint of the last
    complete update. Raises UserError where an update or a held-out loss is not finite, where the
    checkpoint was made by other code, where there is no room for curve or snapshots.
    """
    network, recipe, corpus, updates = run.network, run.recipe, run.corpus, run.updates
    kind = run.description.kind
    state = checkpoint.newest_checkpoint(run.folder, run.code, run.machine.accept_checkpoint)
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
        select=lambda starts: torch.from_numpy(corpus.windows(starts)),
        curve=run.folder / "curve.jsonl",
        report=report,
        state=state,
    )
    if state and training.main:
        say_where_it_goes_on(training, state)
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
        facts(run.machine) | training.choices,
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
    with closing(training), stoppable(training.stop), resumable:
        try:
            # A checkpoint is of before its update's evaluation, which is repeated here.
            evaluate(done.update)  # what was cut short
            batches = map(corpus.starts, range(done.update + 1, updates + 1))
            for step in training_steps(training, batches, saver.due):
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
    """Where a file cannot be written or read inside, raises UserError that names the last
    checkpoint in the folder of the run.
    """
    try:
        yield
    except OSError as error:
        kept = max(folder.glob("update-*"), default="the start: there is no checkpoint")
        raise UserError(
            f"{what}: a file cannot be written or read ({error}): mend that and run the same"
            f" command again, which goes on from {kept}"
        ) from None


def say_where_it_goes_on(training: Trainer, state: Checkpoint) -> None:
    """Name the checkpoint's update, and other dropout masks than those of one run, on stderr."""
    line = f"going on from the checkpoint of update {training.first}"
    now = training.engine.processes, training.micro_batch
    if training.recipe.dropout and state.drawn_by != now:
        line += (
            "; dropout draws other masks from here on: processes and rows of a micro-batch are"
            f" {now}, and were {state.drawn_by}"
        )
    print(f"{training.what}: {line}", file=sys.stderr, flush=True)
