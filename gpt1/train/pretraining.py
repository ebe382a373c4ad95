"""Pre-training (paper, sections 3.1 and 4.1): equation 1 over windows of the corpus, with held-out
perplexity, snapshots, checkpoints.
"""

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.lstm import Network
from gpt1.model.weights import Description
from gpt1.params.schema import Pretrain
from gpt1.train import checkpoint, optim
from gpt1.train.batches import Integers, shares
from gpt1.train.checkpoint import Position
from gpt1.train.curve import Curve
from gpt1.train.engine import Engine, finite, make_engine, total_floats
from gpt1.train.guards import Guard, MicroBatchSize
from gpt1.train.launch import Machine, facts
from gpt1.train.loop import Interrupted, MicroBatch, Progress, Report, Stop, stoppable
from gpt1.train.objectives import Pretraining
from gpt1.train.saving import Saver
from gpt1.train.schedules import snapshot_updates
from gpt1.train.snapshots import Snapshots
from gpt1.train.speed import speed_up


class Corpus(NamedTuple):
    """What pre-training reads: windows [batch, context + 1] of an update, the held-out windows,
    held-out words a token.
    """

    windows: Callable[[int], Integers]
    heldout_windows: Integers
    heldout_words_per_token: float
    starts: Callable[[int], Integers] | None = (
        None  # where an update's windows begin in the corpus, to name those that failed
    )


class Outcome(NamedTuple):
    """The last held-out perplexities, how many updates took no step, and how fast it went (for a
    log, not for an output).
    """

    heldout: dict[str, float]
    skipped_updates: int
    seconds: float
    tokens_per_second: float
    speed: dict[str, str]


@torch.inference_mode()
def heldout_values(
    engine: Engine, corpus: Corpus, micro_batch: int, stop: Stop
) -> dict[str, float]:
    """Loss in nats a token over the held-out windows, and perplexity for each token and for each
    word that the tokens make.

    Raises Interrupted where the run is to end.
    """
    own, nats = corpus.heldout_windows[engine.rank :: engine.processes], 0.0
    most = -(-len(corpus.heldout_windows) // (engine.processes * micro_batch))
    for start in stop.between(engine, range(0, len(own), micro_batch), most):
        windows_bt = torch.from_numpy(own[start : start + micro_batch]).to(engine.device)
        nats += float(engine.objective(windows_bt, NO_DROPOUT)["loss"]) * len(windows_bt)
    loss = total_floats(engine, [nats])[0] / len(corpus.heldout_windows)
    return {
        "heldout_loss": loss,
        "heldout_perplexity": math.exp(loss),
        "heldout_word_perplexity": math.exp(loss / corpus.heldout_words_per_token),
    }


def pretrain(
    network: Network,
    description: Description,
    recipe: Pretrain,
    updates: int,
    corpus: Corpus,
    machine: Machine,
    folder: Path,
    report: Report,
    code: dict[str, str],
) -> Outcome:
    """Train a network for `updates` updates; curve.jsonl and snapshots/ grow in `folder`, where
    checkpoints lie too.

    Goes on from the newest checkpoint in `folder`; each is of the moment before its update's
    held-out evaluation, so that one cut short is made anew. A signal drops what is in progress and
    ends the process with a checkpoint of the last complete update. Raises UserError where five
    updates in a row, or a held-out loss, are not finite, where one row takes more memory than there
    is, or where the checkpoint was made by other code; OSError where there is no room for curve and
    snapshots in the end.
    """
    context, main = network.context, machine.rank == 0
    micro_batch = MicroBatchSize(
        min(machine.micro_batch_for(context), recipe.batch_size // machine.processes)
    )
    state = checkpoint.newest_checkpoint(folder, code, machine.accept_checkpoint)
    chosen = speed_up(network, recipe, machine, updates * recipe.batch_size * context)
    engine = make_engine(
        Pretraining(network, recipe.precision),
        recipe,
        machine,
        len(shares(np.arange(recipe.batch_size), 0, machine.processes, micro_batch.rows)),
    )
    chosen["zero_stage"] = str(engine.stage)
    if state is not None:
        checkpoint.restore(state, engine)
    done = (
        state.position if state else Position(0, 0, 0)
    )  # the last update that took its step, and the curve up to there
    what, first, heldout = f"pretrain {description.kind}", done.update, dict[str, float]()
    if first and main:
        print(f"{what}: going on from the checkpoint of update {first}", file=sys.stderr)
    curve = Curve(folder / "curve.jsonl" if main else None, done.curve_lines)
    guard = Guard(
        what, done.skipped_updates, corpus.starts or (lambda _: np.arange(recipe.batch_size)), main
    )
    snapshots, wanted_snapshots = (
        Snapshots(folder / "snapshots", description),
        snapshot_updates(updates, recipe.snapshots_per_decade),
    )

    def make(update: int, rows: int) -> list[MicroBatch]:
        windows = corpus.windows(update)
        return [
            MicroBatch(
                part, len(part) / len(windows), torch.from_numpy(windows[part]).to(engine.device)
            )
            for part in shares(np.arange(len(windows)), engine.rank, engine.processes, rows)
        ]

    def note(update: int, values: Mapping[str, float]) -> None:
        tokens = update * recipe.batch_size * context
        curve.add({"update": update, "tokens": tokens, **values})
        report(update, {"tokens": tokens, **values})

    def evaluate(update: int, stop: Stop) -> None:
        if update and (update % recipe.heldout_updates == 0 or update == updates):
            heldout.update(
                finite(
                    heldout_values(engine, corpus, micro_batch.rows, stop), update, "held-out text"
                )
            )
            note(update, heldout)

    def write_records() -> None:
        curve.write()
        snapshots.write()

    with (
        closing(engine),
        stoppable() as stop,
        closing(Progress(what, updates, first, main)) as progress,
        closing(
            Saver(
                engine,
                folder,
                code,
                facts(machine) | chosen | {"micro_batch": micro_batch.rows},
                recipe.checkpoint_minutes,
                first,
                write_records,
            )
        ) as saver,
    ):
        try:
            evaluate(first, stop)
            for update in range(first + 1, updates + 1):
                rates = optim.rates(
                    recipe, update, updates, recipe.warmup_updates / updates, guard.skipped
                )
                values = micro_batch.take_update(
                    engine, partial(make, update), recipe.dropout, recipe.seed, update, rates, stop
                )
                progress.advance(update, recipe.batch_size * context, values["loss"])
                stepped = guard.passes(update, values)
                if not stepped:
                    note(update, {"skipped_updates": guard.skipped})
                elif update % recipe.log_updates == 0 or update == updates:
                    note(update, values)
                if guard.hopeless():
                    raise guard.stop(folder / "not-finite.json", saver.finish(done))
                if update in wanted_snapshots and main:
                    snapshots.take(update, network)
                if stepped:
                    done = Position(update, curve.lines, guard.skipped)
                    if update < updates:
                        saver.offer(done)
                evaluate(update, stop)
        except Interrupted:
            saved = saver.finish(done)
            engine.leave()  # the others wait for it: the launcher ends all once one has ended
            stop.end(
                f"interrupted at update {done.update} of {updates}, what came after it is dropped:"
                f" {saved}; run the same command again to go on"
            )
    write_records()
    return Outcome(
        heldout,
        guard.skipped,
        progress.seconds(),
        progress.tokens_per_second(),
        chosen | {"micro_batch": str(micro_batch.rows)},
    )
