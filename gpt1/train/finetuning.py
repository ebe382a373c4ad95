"""Fine-tuning on one task with one seed (paper, sections 3.2 and 4.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.model.heads import Classifier
from gpt1.params.schema import Finetune
from gpt1.train.batches import (
    Examples,
    batch_rows,
    by_length,
    evaluation_batches,
    pad,
    updates_in_epoch,
)
from gpt1.train.engine import Engine
from gpt1.train.launch import Machine
from gpt1.train.loop import Interrupted, Report, Stop, Trainer, training_updates
from gpt1.train.objectives import Finetuning

Logits = npt.NDArray[np.float32]


class EncodedTask(NamedTuple):
    """A task that fine-tuning reads."""

    name: str
    splits: Mapping[str, Examples]
    selection_split: str
    score: Callable[[Logits], float]  # of the selection split


@dataclass(frozen=True)
class FinetuningRun:
    """A classifier to fine-tune on a task with a seed."""

    classifier: Classifier
    recipe: Finetune
    task: EncodedTask
    seed: int
    machine: Machine
    curve: Path
    what: str  # `<stage> <name>`, for the screen


class Best(NamedTuple):
    """The evaluation with the highest score so far."""

    score: float
    update: int
    logits: Logits
    weights: dict[str, torch.Tensor]


class FinetunedSeed(NamedTuple):
    """The results of one seed."""

    logits: dict[str, Logits]  # `<split>/best` and `<split>/last`
    best: Best
    updates: int
    speed: dict[str, Any]


@torch.inference_mode()
def logits_of(
    engine: Engine, objective: Finetuning, examples: Examples, most_tokens: int, stop: Stop
) -> Logits:
    """Return logits [n, outputs] in file order, without dropout, of `most_tokens` at once. Raises
    Interrupted where the run is to end.
    """
    parts = []
    for rows in evaluation_batches(examples, engine.rank, engine.processes, most_tokens):
        stop.check(engine)
        if len(rows):
            parts.append((rows, objective.logits(pad(examples, rows).to(engine.device))))
    head = objective.classifier.head
    outputs = head.linear.out_features if head.combine != "choose" else examples.sequences
    # Zeros where another process has the row: the sum over processes is the whole.
    logits_no = torch.zeros(len(examples), outputs, device=engine.device)
    for rows, logits_bo in parts:
        logits_no[torch.from_numpy(rows)] = logits_bo
    return engine.total(logits_no).cpu().numpy()


def finetune_seed(run: FinetuningRun, report: Report) -> FinetunedSeed:
    """Fine-tune for all epochs; evaluate after each, in the first also at
    recipe.evaluation_updates, as the authors do. A signal discards this training and ends the
    process. Raises UserError for too few rows or an update that is not finite, OSError where the
    curve cannot be written.
    """
    classifier, recipe, task = run.classifier, run.recipe, run.task
    train, dev = task.splits["train"], task.splits[task.selection_split]
    in_epoch = updates_in_epoch(len(train), recipe.batch_size, task.name)
    updates = in_epoch * recipe.epochs
    row_tokens = int(train.lengths(np.arange(len(train))).max()) * train.sequences
    objective = Finetuning(
        classifier, recipe.classifier_dropout, recipe.lambda_lm, recipe.precision
    )
    training = Trainer(
        run.what,
        objective,
        classifier.decoder,
        recipe,
        run.machine,
        seed=run.seed,
        updates=updates,
        warmup=recipe.warmup_fraction,
        row_tokens=row_tokens,
        compiled_tokens=0,
        inputs=lambda rows, to: pad(train, rows).to(to),
        curve=run.curve,
        report=report,
    )
    evaluate = partial(
        logits_of,
        training.engine,
        objective,
        most_tokens=run.machine.micro_batch_for(row_tokens) * row_tokens,
        stop=training.stop,
    )
    # The authors look at the dev set early in the first epoch, and then after each epoch.
    evaluate_at = {update for update in recipe.evaluation_updates if update < in_epoch}
    evaluate_at |= set(range(in_epoch, updates + 1, in_epoch))
    # a list: all processes evaluate splits in one order
    others = [name for name in task.splits if name not in ("train", task.selection_split)]

    def answers(dev_logits: Logits) -> dict[str, Logits]:
        return {name: evaluate(task.splits[name]) for name in others} | {
            task.selection_split: dev_logits
        }

    dev_logits = np.zeros((0, 0), np.float32)
    done, best = 0, Best(float("-inf"), 0, dev_logits, {})
    with training.running():
        try:
            # Which rows an update has follows from (seed, update); within it they are sorted by
            # length, so that attention computes less padding.
            rows = (
                batch_rows(len(train), recipe.batch_size, run.seed, n + 1) for n in range(updates)
            )
            for step in training_updates(training, (by_length(train, some) for some in rows)):
                done = step.update
                training.log(step, int(train.lengths(step.rows).sum()))
                if done in evaluate_at:
                    dev_logits = evaluate(dev)
                    score = task.score(dev_logits)
                    training.note(done, {"epoch": done / in_epoch, "dev_score": score})
                    # Of equal scores the earliest stays, as in the authors' code.
                    if score > best.score:
                        weights = classifier.state_dict().items()
                        copies = {name: value.cpu().clone() for name, value in weights}
                        best = Best(score, done, dev_logits, copies)
            # the other splits by the last weights, and by the best
            last = at_best = answers(dev_logits)
            if best.update < updates:
                classifier.load_state_dict(best.weights)
                at_best = answers(best.logits)
            training.stop.check(training.engine)  # asked for in the last evaluation
        except Interrupted:
            training.stop.end(
                training.engine,
                f"interrupted at update {done} of {updates} of {run.what}: finished seeds are"
                " kept; run the same command again to go on (this seed starts anew)",
            )
    return FinetunedSeed(
        {f"{split}/last": logits for split, logits in last.items()}
        | {f"{split}/best": logits for split, logits in at_best.items()},
        best,
        updates,
        training.speed(),
    )
