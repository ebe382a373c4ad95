"""Fine-tuning on one task with one seed (paper, sections 3.2 and 4.1): equation 5, model selection on the development split, logits."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.config import Finetune
from gpt1.model.gpt import NO_DROPOUT
from gpt1.model.heads import Classifier
from gpt1.train import optim
from gpt1.train.batches import Examples, by_length, evaluation_batches, members, pad, shares
from gpt1.train.curve import Curve
from gpt1.train.engine import Engine, autocast, make_engine
from gpt1.train.launch import Machine
from gpt1.train.loop import Interrupted, Progress, Report, Stop, stoppable, take_update
from gpt1.train.objectives import Finetuning

Logits = npt.NDArray[np.float32]


class Task(NamedTuple):
    """A task as tensors can be made of it: its splits, which of them selects the model, and how logits on that one are scored."""

    name: str
    splits: Mapping[str, Examples]
    selection_split: str
    score: Callable[[Logits], float]


class Outcome(NamedTuple):
    """What one seed gives: logits `<split>/best` and `<split>/last`, the best weights, where they were, and how fast it went."""

    logits: dict[str, Logits]
    best_weights: dict[str, torch.Tensor]
    best_update: int
    best_dev_score: float
    updates: int
    seconds: float
    tokens_per_second: float


@torch.inference_mode()
def logits_of(engine: Engine, classifier: Classifier, recipe: Finetune, examples: Examples, micro_batch: int, stop: Stop) -> Logits:
    """Logits [n, outputs] of every example in file order, no dropout, whatever the processes and micro-batches.

    Raises Interrupted where the run is to end.
    """
    parts, most = [], -(-len(examples) // (engine.processes * micro_batch))
    for rows, batch in stop.between(engine, evaluation_batches(examples, engine.rank, engine.processes, micro_batch), most):
        with autocast(engine.device, recipe):
            parts.append((rows, classifier(batch.to(engine.device).tokens_bkt, NO_DROPOUT, 0.0).logits_bo.float()))
    outputs = classifier.head.linear.out_features if classifier.head.combine != "choose" else examples.sequences
    logits_no = torch.zeros(len(examples), outputs, device=engine.device)
    for rows, logits_bo in parts:
        logits_no[torch.from_numpy(rows).to(engine.device)] = logits_bo
    return engine.total(logits_no).cpu().numpy()


def finetune_seed(classifier: Classifier, recipe: Finetune, task: Task, seed: int, updates_in_epoch: int, machine: Machine,
                  curve_path: Path, report: Report, what: str) -> Outcome:
    """Fine-tune for all epochs; evaluates after each, and in the first also at recipe.evaluation_updates, as the authors do.

    `what` names the run on the screen. A signal drops this seed and ends the process. Raises UserError where a loss is not finite.
    """
    train = task.splits["train"]
    updates = updates_in_epoch * recipe.epochs
    longest = int(train.lengths(np.arange(len(train))).max())
    micro_batch = machine.micro_batch_for(longest * train.sequences)
    micro_batches = len(shares(np.arange(recipe.batch_size), machine.rank, machine.processes, micro_batch))
    engine = make_engine(Finetuning(classifier, recipe.classifier_dropout, recipe.lambda_lm), recipe, machine, micro_batches)
    curve = Curve(curve_path if engine.rank == 0 else None, 0)
    progress, update = Progress(what, updates, 0, engine.rank == 0), 0
    best_score, best_update, best_weights = float("-inf"), 0, {}
    selected: dict[str, Logits] = {}  # the last and the best evaluation's logits on the selection split
    others = {name: examples for name, examples in task.splits.items() if name not in ("train", task.selection_split)}

    def note(values: dict[str, float]) -> None:
        curve.add({"update": update, **values})
        report(update, values)

    def on_others(which: str, stop: Stop) -> dict[str, Logits]:
        return {f"{name}/{which}": logits_of(engine, classifier, recipe, examples, micro_batch, stop) for name, examples in others.items()}

    with stoppable() as stop:
        try:
            with closing(progress):
                for update in range(1, updates + 1):
                    rows = by_length(train, members(len(train), recipe.batch_size, seed, update))
                    parts = shares(rows, engine.rank, engine.processes, micro_batch)
                    batches = [(len(part) / len(rows), pad(train, part).to(engine.device)) for part in parts]
                    rates = optim.rates(recipe, update, updates, recipe.warmup_fraction)
                    values = take_update(engine, batches, recipe.dropout, seed, update, rates, stop)
                    progress.advance(update, int(train.lengths(rows).sum()), values["loss"])
                    if update % recipe.log_updates == 0 or update == updates:
                        note(values)
                    epoch, within = divmod(update, updates_in_epoch)
                    if within == 0 or (epoch == 0 and update in recipe.evaluation_updates):
                        dev = task.splits[task.selection_split]
                        selected["last"] = logits_of(engine, classifier, recipe, dev, micro_batch, stop)
                        dev_score = task.score(selected["last"])
                        note({"epoch": update / updates_in_epoch, "dev_score": dev_score})
                        if dev_score > best_score:
                            best_score, best_update, selected["best"] = dev_score, update, selected["last"]
                            best_weights = {name: tensor.detach().cpu().clone() for name, tensor in classifier.state_dict().items()}
            logits = {f"{task.selection_split}/{which}": found for which, found in selected.items()} | on_others("last", stop)
            if best_update < updates:
                classifier.load_state_dict(best_weights)
                logits |= on_others("best", stop)
            else:
                logits |= {f"{name}/best": logits[f"{name}/last"] for name in others}
        except Interrupted:
            engine.leave()
            stop.end(f"interrupted at update {update} of {updates} of {what}: finished seeds are kept; "
                     "run the same command again to go on (this seed starts anew)")
    return Outcome(logits, best_weights, best_update, best_score, updates, progress.seconds(), progress.tokens_per_second())
