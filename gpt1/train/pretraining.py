"""Pre-training (paper, sections 3.1 and 4.1): equation 1 over windows of the corpus, with held-out perplexity, snapshots, checkpoints."""

import math
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gpt1.config import Pretrain
from gpt1.model.gpt import NO_DROPOUT
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, save_weights
from gpt1.train import checkpoint, optim
from gpt1.train.batches import Integers, shares
from gpt1.train.curve import Curve
from gpt1.train.engine import Engine, autocast, finite, make_engine, total_floats
from gpt1.train.launch import Machine, facts
from gpt1.train.loop import Interrupted, Progress, Report, Stop, stoppable, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.schedules import snapshot_updates


class Corpus(NamedTuple):
    """What pre-training reads: windows [batch, context + 1] of an update, the held-out windows, held-out words a token."""

    windows: Callable[[int], Integers]
    heldout_windows: Integers
    heldout_words_per_token: float


class Outcome(NamedTuple):
    """The last held-out perplexities, and how fast it went (for a log, not for an output)."""

    heldout: dict[str, float]
    seconds: float
    tokens_per_second: float


@torch.inference_mode()
def heldout_values(engine: Engine, recipe: Pretrain, corpus: Corpus, micro_batch: int, stop: Stop) -> dict[str, float]:
    """Loss in nats a token over the held-out windows, and perplexity for each token and for each word that the tokens make.

    Raises Interrupted where the run is to end.
    """
    own, nats = corpus.heldout_windows[engine.rank::engine.processes], 0.0
    most = -(-len(corpus.heldout_windows) // (engine.processes * micro_batch))
    for start in stop.between(engine, range(0, len(own), micro_batch), most):
        windows_bt = torch.from_numpy(own[start:start + micro_batch]).to(engine.device)
        with autocast(engine.device, recipe):
            nats += float(engine.objective(windows_bt, NO_DROPOUT)["loss"]) * len(windows_bt)
    loss = total_floats(engine, [nats])[0] / len(corpus.heldout_windows)
    return {"heldout_loss": loss, "heldout_perplexity": math.exp(loss),
            "heldout_word_perplexity": math.exp(loss / corpus.heldout_words_per_token)}


def pretrain(network: Network, description: Description, recipe: Pretrain, updates: int, corpus: Corpus, machine: Machine, folder: Path,
             report: Report, code: dict[str, str]) -> Outcome:
    """Train a network for `updates` updates; curve.jsonl and snapshots/ grow in `folder`, where checkpoints lie too.

    Goes on from the newest checkpoint in `folder`; each is of the moment before its update's held-out evaluation, so that one cut short
    is made anew. A signal drops what is in progress and ends the process with a checkpoint of the last complete update.
    Raises UserError where a loss is not finite or the checkpoint was made by other code.
    """
    context = network.context
    micro_batch = machine.micro_batch_for(context)
    micro_batches = len(shares(np.arange(recipe.batch_size), machine.rank, machine.processes, micro_batch))
    state = checkpoint.newest_checkpoint(folder, code, machine.accept_checkpoint)
    engine = make_engine(Pretraining(network), recipe, machine, micro_batches)
    if state is not None:
        checkpoint.restore(state, network, engine.optimizer)
    first, main = state.update if state else 0, engine.rank == 0
    if first and main:
        print(f"pretrain {description.kind}: going on from the checkpoint of update {first}", file=sys.stderr)
    curve = Curve(folder / "curve.jsonl" if main else None, state.curve_lines if state else 0)
    snapshots, heldout = snapshot_updates(updates, recipe.snapshots_per_decade), dict[str, float]()
    progress, saved_at = Progress(f"pretrain {description.kind}", updates, first, main), time.monotonic()
    done, saved, curve_lines = first, first, curve.lines  # the last complete update, that of the last checkpoint, the curve up to `done`

    def note(update: int, values: dict[str, float]) -> None:
        tokens = update * recipe.batch_size * context
        curve.add({"update": update, "tokens": tokens, **values})
        report(update, {"tokens": tokens, **values})

    def save() -> None:
        if main:
            about: dict[str, Any] = facts(machine) | {"micro_batch": micro_batch}
            checkpoint.save_checkpoint(folder, done, network, engine.optimizer, curve_lines, code, about)

    def evaluate(stop: Stop) -> None:
        if done and (done % recipe.heldout_updates == 0 or done == updates):
            heldout.update(finite(heldout_values(engine, recipe, corpus, micro_batch, stop), done, "held-out text"))
            note(done, heldout)

    with stoppable() as stop:
        try:
            with closing(progress):
                evaluate(stop)
                for update in range(first + 1, updates + 1):
                    windows = corpus.windows(update)
                    rows = shares(np.arange(len(windows)), engine.rank, engine.processes, micro_batch)
                    batches = [(len(part) / len(windows), torch.from_numpy(windows[part]).to(engine.device)) for part in rows]
                    rates = optim.rates(recipe, update, updates, recipe.warmup_updates / updates)
                    values = take_update(engine, batches, recipe.dropout, recipe.seed, update, rates, stop)
                    progress.advance(update, recipe.batch_size * context, values["loss"])
                    if update % recipe.log_updates == 0 or update == updates:
                        note(update, values)
                    if update in snapshots and main:
                        save_weights(folder / "snapshots" / f"{update:08d}.safetensors", network, description)
                    done, curve_lines = update, curve.lines
                    if time.monotonic() - saved_at > recipe.checkpoint_minutes * 60 and update < updates:
                        save()
                        saved, saved_at = update, time.monotonic()
                    evaluate(stop)
        except Interrupted:
            if saved < done:
                save()
            engine.leave()  # the others wait for it: the launcher ends all once one has ended
            stop.end(f"interrupted at update {done} of {updates}, what came after it is dropped: "
                     f"{'checkpoint saved' if done else 'nothing to save yet'}; run the same command again to go on")
    return Outcome(heldout, progress.seconds(), progress.tokens_per_second())
