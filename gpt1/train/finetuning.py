"""Fine-tuning on one task with one seed (paper, sections 3.2 and 4.1): equation 5, model selection
on the development split, logits.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.model.heads import Classifier
from gpt1.params.schema import Finetune
from gpt1.train import optim
from gpt1.train.batches import (
    Examples,
    Integers,
    by_length,
    evaluation_batches,
    members,
    pad,
    shares,
)
from gpt1.train.curve import Curve
from gpt1.train.engine import Engine, make_engine
from gpt1.train.guards import Guard, MicroBatchSize
from gpt1.train.launch import Machine
from gpt1.train.loop import Interrupted, MicroBatch, Progress, Report, Stop, stoppable
from gpt1.train.objectives import Finetuning
from gpt1.train.speed import speed_up

Logits = npt.NDArray[np.float32]


class Task(NamedTuple):
    """A task as tensors can be made of it: its splits, which of them selects the model, and how
    logits on that one are scored.
    """

    name: str
    splits: Mapping[str, Examples]
    selection_split: str
    score: Callable[[Logits], float]


class Outcome(NamedTuple):
    """What one seed gives: logits `<split>/best` and `<split>/last`, the best weights, where they
    were, how many updates took no step, and how fast it went.
    """

    logits: dict[str, Logits]
    best_weights: dict[str, torch.Tensor]
    best_update: int
    best_dev_score: float
    updates: int
    skipped_updates: int
    seconds: float
    tokens_per_second: float
    speed: dict[str, str]


@torch.inference_mode()
def logits_of(
    engine: Engine, objective: Finetuning, examples: Examples, most_tokens: int, stop: Stop
) -> Logits:
    """Logits [n, outputs] of every example in file order, no dropout, `most_tokens` at once: the
    same whatever that is.

    Raises Interrupted where the run is to end.
    """
    batches, parts = evaluation_batches(examples, engine.rank, engine.processes, most_tokens), []
    for rows in stop.between(engine, batches, len(batches)):
        if len(rows):
            tokens_bkt = pad(examples, rows).to(engine.device).tokens_bkt
            parts.append((rows, objective.logits(tokens_bkt)))
    head = objective.classifier.head
    outputs = head.linear.out_features if head.combine != "choose" else examples.sequences
    logits_no = torch.zeros(len(examples), outputs, device=engine.device)
    for rows, logits_bo in parts:
        logits_no[torch.from_numpy(rows).to(engine.device)] = logits_bo
    return engine.total(logits_no).cpu().numpy()


def finetune_seed(
    classifier: Classifier,
    recipe: Finetune,
    task: Task,
    seed: int,
    updates_in_epoch: int,
    machine: Machine,
    curve_path: Path,
    report: Report,
    what: str,
) -> Outcome:
    """Fine-tune for all epochs; evaluates after each, and in the first also at
    recipe.evaluation_updates, as the authors do.

    `what` names the run on the screen. A signal drops this seed and ends the process. Raises
    UserError where five updates in a row are not finite or one row takes more memory than there is,
    OSError where there is no room for the curve in the end.
    """
    train, dev, main = task.splits["train"], task.splits[task.selection_split], machine.rank == 0
    updates = updates_in_epoch * recipe.epochs
    row_tokens = int(train.lengths(np.arange(len(train))).max()) * train.sequences
    most_tokens = machine.micro_batch_for(row_tokens) * row_tokens
    micro_batch = MicroBatchSize(
        min(machine.micro_batch_for(row_tokens), recipe.batch_size // machine.processes)
    )
    speed = speed_up(classifier.decoder, recipe, machine, 0)
    objective = Finetuning(
        classifier, recipe.classifier_dropout, recipe.lambda_lm, recipe.precision
    )
    engine = make_engine(
        objective,
        recipe,
        machine,
        len(shares(np.arange(recipe.batch_size), 0, machine.processes, micro_batch.rows)),
    )
    speed["zero_stage"] = str(engine.stage)
    curve, update = Curve(curve_path if main else None, 0), 0
    best_score, best_update, best_weights = float("-inf"), 0, {}
    selected: dict[
        str, Logits
    ] = {}  # the last and the best evaluation's logits on the selection split
    others = {
        name: examples
        for name, examples in task.splits.items()
        if name not in ("train", task.selection_split)
    }

    def rows_of(number: int) -> Integers:
        return by_length(train, members(len(train), recipe.batch_size, seed, number))

    def make(number: int, most: int) -> list[MicroBatch]:
        rows = rows_of(number)
        return [
            MicroBatch(part, len(part) / len(rows), pad(train, rows[part]).to(engine.device))
            for part in shares(np.arange(len(rows)), engine.rank, engine.processes, most)
        ]

    def note(values: Mapping[str, float]) -> None:
        point = {"tokens": progress.tokens, **values}
        curve.add({"update": update, **point})
        report(update, point)

    def on_others(which: str, stop: Stop) -> dict[str, Logits]:
        return {
            f"{name}/{which}": logits_of(engine, objective, examples, most_tokens, stop)
            for name, examples in others.items()
        }

    guard = Guard(what, 0, rows_of, main)
    with (
        closing(engine),
        stoppable() as stop,
        closing(Progress(what, updates, 0, main)) as progress,
    ):
        try:
            for update in range(1, updates + 1):
                rates = optim.rates(recipe, update, updates, recipe.warmup_fraction, guard.skipped)
                values = micro_batch.take_update(
                    engine, partial(make, update), recipe.dropout, seed, update, rates, stop
                )
                progress.advance(update, int(train.lengths(rows_of(update)).sum()), values["loss"])
                if not guard.passes(update, values):
                    note({"skipped_updates": guard.skipped})
                elif update % recipe.log_updates == 0 or update == updates:
                    note(values)
                if guard.hopeless():
                    raise guard.stop(
                        curve_path.with_suffix(".not-finite.json"), "finished seeds are kept"
                    )
                epoch, within = divmod(update, updates_in_epoch)
                if within == 0 or (epoch == 0 and update in recipe.evaluation_updates):
                    selected["last"] = logits_of(engine, objective, dev, most_tokens, stop)
                    dev_score = task.score(selected["last"])
                    note({"epoch": update / updates_in_epoch, "dev_score": dev_score})
                    if dev_score > best_score:
                        best_score, best_update, selected["best"] = (
                            dev_score,
                            update,
                            selected["last"],
                        )
                        best_weights = {
                            name: tensor.detach().cpu().clone()
                            for name, tensor in classifier.state_dict().items()
                        }
            logits = {
                f"{task.selection_split}/{which}": found for which, found in selected.items()
            } | on_others("last", stop)
            if best_update < updates:
                classifier.load_state_dict(best_weights)
                logits |= on_others("best", stop)
            else:
                logits |= {f"{name}/best": logits[f"{name}/last"] for name in others}
        except Interrupted:
            engine.leave()
            stop.end(
                f"interrupted at update {update} of {updates} of {what}: finished seeds are kept; "
                "run the same command again to go on (this seed starts anew)"
            )
    curve.write()
    return Outcome(
        logits,
        best_weights,
        best_update,
        best_score,
        updates,
        guard.skipped,
        progress.seconds(),
        progress.tokens_per_second(),
        speed | {"micro_batch": str(micro_batch.rows)},
    )
