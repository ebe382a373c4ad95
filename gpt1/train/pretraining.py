"""Pre-training (paper, sections 3.1 and 4.1): equation 1 over windows of the corpus, with held-out perplexity, snapshots, checkpoints."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from gpt1.train.loop import Progress, Report, stoppable, take_update
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
def heldout_values(engine: Engine, recipe: Pretrain, corpus: Corpus, micro_batch: int) -> dict[str, float]:
    """Loss in nats a token over the held-out windows, and perplexity for each token and for each word that the tokens make."""
    own, nats = corpus.heldout_windows[engine.rank::engine.processes], 0.0
    for start in range(0, len(own), micro_batch):
        windows_bt = torch.from_numpy(own[start:start + micro_batch]).to(engine.device)
        with autocast(engine.device, recipe):
            nats += float(engine.objective(windows_bt, NO_DROPOUT)["loss"]) * len(windows_bt)
    loss = total_floats(engine, [nats])[0] / len(corpus.heldout_windows)
    return {"heldout_loss": loss, "heldout_perplexity": math.exp(loss),
            "heldout_word_perplexity": math.exp(loss / corpus.heldout_words_per_token)}


@contextmanager
def measured(progress: Progress) -> Iterator[None]:
    """Close the progress bar however the block ends."""
    try:
        yield
    finally:
        progress.close()


def pretrain(network: Network, description: Description, recipe: Pretrain, updates: int, corpus: Corpus, machine: Machine, folder: Path,
             report: Report, code: dict[str, str]) -> Outcome:
    """Train a network for `updates` updates; curve.jsonl and snapshots/ grow in `folder`, where checkpoints lie too.

    Goes on from the newest checkpoint in `folder`. A signal ends the process after the update in progress, with a checkpoint.
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
    curve = Curve(folder / "curve.jsonl" if main else None, state.curve_lines if state else 0)
    snapshots, heldout = snapshot_updates(updates, recipe.snapshots_per_decade), {}
    progress, saved_at = Progress(f"pretrain {description.kind}", updates, first, main), time.monotonic()

    def note(update: int, values: dict[str, float]) -> None:
        tokens = update * recipe.batch_size * context
        curve.add({"update": update, "tokens": tokens, **values})
        report(update, {"tokens": tokens, **values})

    def save(update: int) -> None:
        if main:
            about: dict[str, Any] = facts(machine) | {"micro_batch": micro_batch}
            checkpoint.save_checkpoint(folder, update, network, engine.optimizer, curve.lines, code, about)

    with measured(progress), stoppable() as stop:
        for update in range(first + 1, updates + 1):
            windows = corpus.windows(update)
            rows = shares(np.arange(len(windows)), engine.rank, engine.processes, micro_batch)
            batches = [(len(part) / len(windows), torch.from_numpy(windows[part]).to(engine.device)) for part in rows]
            rates = optim.rates(recipe, update, updates, recipe.warmup_updates / updates)
            values = take_update(engine, batches, recipe.dropout, recipe.seed, update, rates, stop)
            progress.advance(update, recipe.batch_size * context, values["loss"])
            if update % recipe.log_updates == 0 or update == updates:
                note(update, values)
            if update % recipe.heldout_updates == 0 or update == updates:
                heldout = finite(heldout_values(engine, recipe, corpus, micro_batch), update, "held-out text")
                note(update, heldout)
            if update in snapshots and main:
                save_weights(folder / "snapshots" / f"{update:08d}.safetensors", network, description)
            if stop.agreed and update < updates:
                save(update)
                stop.end(f"interrupted at update {update} of {updates}: checkpoint saved; run the same command again to go on")
            if time.monotonic() - saved_at > recipe.checkpoint_minutes * 60 and update < updates:
                save(update)
                saved_at = time.monotonic()
    return Outcome(heldout, progress.seconds(), progress.tokens_per_second())
