"""Pre-training (paper, sections 3.1 and 4.1): equation 1 over windows of the corpus, with held-out
perplexity, snapshots, checkpoints.
"""

import math
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gpt1.model.device import to_device, to_host
from gpt1.model.lstm import Network
from gpt1.model.weights import Description
from gpt1.params.schema import Pretrain
from gpt1.train import checkpoint
from gpt1.train.batches import Integers
from gpt1.train.checkpoint import Position, Saver
from gpt1.train.engine import Engine, finite
from gpt1.train.launch import Machine, facts
from gpt1.train.loop import Interrupted, Report, Stop, Trainer, stoppable
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import Snapshots
from gpt1.train.schedules import snapshot_updates
from gpt1.train.speed import speed_up


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
    snapshots/ and checkpoints lie; `code` has the hashes that checkpoints are held to.
    """

    network: Network
    description: Description
    recipe: Pretrain
    seed: int
    updates: int
    corpus: Corpus
    machine: Machine
    folder: Path
    code: dict[str, str] = field(default_factory=dict)


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
    own = corpus.heldout_windows[engine.rank :: engine.processes]
    nats = torch.zeros(1, dtype=torch.float64, device=engine.device)
    most = -(-len(corpus.heldout_windows) // (engine.processes * micro_batch))
    for start in stop.between(engine, range(0, len(own), micro_batch), most):
        windows_bt = to_device(torch.from_numpy(own[start : start + micro_batch]), engine.device)
        nats += engine.objective(windows_bt, 0.0)["loss"].double() * len(windows_bt)
    loss = to_host(engine.total(nats)).read()[0] / len(corpus.heldout_windows)
    return {
        "heldout_loss": loss,
        "heldout_perplexity": math.exp(loss),
        "heldout_word_perplexity": math.exp(loss / corpus.heldout_words_per_token),
    }


def pretrain(run: PretrainingRun, report: Report) -> Pretrained:
    """Train; goes on from the newest checkpoint in the run's folder, whose curve and snapshots
    grow.

    A checkpoint is of the moment before its update's held-out evaluation, so that one cut short is
    made anew. A signal drops what is in progress and ends the process with a checkpoint of the last
    complete update. Raises UserError where an update or a held-out loss is not finite, where there
    is too little memory, where the checkpoint was made by other
    code, or where another process has taken the folder; OSError where there is no room for curve
    and snapshots in the end.
    """
    network, recipe, corpus, updates = run.network, run.recipe, run.corpus, run.updates
    state = checkpoint.newest_checkpoint(run.folder, run.code, run.machine.accept_checkpoint)
    done = state.position if state else Position(0, 0)  # the last update
    what = f"pretrain {run.description.kind}/seed-{run.seed}"
    first, heldout = done.update, dict[str, float]()
    tokens = recipe.batch_size * network.context  # of an update
    trainer = Trainer(
        what,
        Pretraining(network, recipe.precision),
        recipe,
        run.machine,
        seed=run.seed,
        updates=updates,
        warmup=recipe.warmup_updates / updates,
        row_tokens=network.context,
        choices=speed_up(network, recipe, run.machine, updates * tokens),
        draw=corpus.starts,
        select=lambda starts: torch.from_numpy(corpus.windows(starts)),
        curve=run.folder / "curve.jsonl",
        report=report,
        state=state,
    )
    trainer.tokens = first * tokens
    if first and trainer.main:
        print(f"{what}: going on from the checkpoint of update {first}", file=sys.stderr)
        now = (run.machine.processes, trainer.rows)
        if state and recipe.dropout and state.drawn_by != now:
            print(
                f"{what}: dropout draws other masks from here on: processes and rows of a"
                f" micro-batch are {now}, and were {state.drawn_by}",
                file=sys.stderr,
            )
    snapshots = Snapshots(run.folder / "snapshots", run.description)
    snapshots_at = snapshot_updates(updates, recipe.snapshots_per_decade)
    saver = Saver(
        trainer.engine,
        run.folder,
        run.code,
        facts(run.machine) | trainer.choices | {"micro_batch": trainer.rows},
        recipe.checkpoint_minutes,
        first,
        (trainer.curve, snapshots),
    )
    with closing(trainer), stoppable(trainer.stop), closing(saver):
        try:
            for update in range(first, updates + 1):
                # no update where the checkpoint was made, but its evaluation
                if update > first:
                    # draw the batch and take the step
                    trainer.stop.due = update < updates and saver.due(update)
                    values = trainer.take_update(update)
                    # log
                    trainer.log(update, tokens, values, partial(saver.finish, done))
                    # save
                    if update in snapshots_at and trainer.main:
                        snapshots.take(update, network)
                    done = Position(update, trainer.curve.lines)
                    if trainer.stop.due:
                        saver.begin(done)
                # evaluate
                if update and (update % recipe.heldout_updates == 0 or update == updates):
                    heldout = heldout_values(trainer.engine, corpus, trainer.rows, trainer.stop)
                    trainer.note(update, finite(heldout, update, "held-out text"))
        except Interrupted:
            saved = saver.finish(done)
            trainer.engine.leave()  # the others wait: the launcher ends all once one has ended
            trainer.stop.end(
                f"interrupted at update {done.update} of {updates}, what came after it is dropped:"
                f" {saved}; run the same command again to go on"
            )
    trainer.curve.write()
    snapshots.write()
    return Pretrained(heldout, trainer.speed())
