"""Our fine-tuning against Hugging Face's Trainer: the same examples, start, epochs, batch, rate,
dropout, threads, in one process in turn; by the clock and, for a machine that does other work too,
by processor time.

    python benchmarks/finetuning.py [--tasks rte sst2] [--precision bf16] [--rounds 3]        made-up rows as many and as long as real ones
    python benchmarks/finetuning.py --run FOLDER --tasks rte sst2 [--train-rows 10000]        a run's encoded tasks and pre-trained weights

In the root of the checkout. --profile gives the network's sizes where the examples are made up; a
run brings its own in params.yaml. Ours is finetune_seed as the stage calls it, with its evaluation
after each epoch. Trainer gets what a careful user gives it: whole batches, as ours,
group_by_length, padding to the longest of a batch, larger batches for its evaluation after each
epoch, fused AdamW, autocast where bf16, and a module that adds the auxiliary language model to the
loss (over the vocabulary and the special symbols, a mean over the batch's real tokens; ours is over
position rows too, a mean over sequences, as the authors'). Neither writes weights; ours keeps the
best in memory. Before the first round our weights, put into their module, must give our logits.
Padding is that of training batches; ours computes little but attention for it.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from made_up_tasks import SHAPES, accuracy, fresh_classifier, made_up_task, recipe_of
from side_by_side import (
    finish,
    heading,
    in_turn,
    machine_facts,
    parser,
    rates,
    shown,
    spread,
    table,
    times_faster,
)
from trainer import collate, module_of, rows_of, trainer_for
from transformers.utils import logging

from gpt1.model.heads import Classifier
from gpt1.params.profile import compose
from gpt1.params.schema import Finetune, Model, read_params, validate
from gpt1.train import finetuning, launch
from gpt1.train.batches import Batch, Examples, pad, updates_in_epoch
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.launch import Machine

SEED, LOGITS_OF = 0, 32
VOCABULARY = {"paper": 40_478, "small": 5_202, "demo": 2_622}
SIDES = ("ours", "trainer")


class Work(NamedTuple):
    """A task to be fine-tuned on, the recipe, the network's sizes, what makes the classifier to
    start from, the score of logits.
    """

    task: EncodedTask
    sizes: Model
    recipe: Finetune
    start: Callable[[], Classifier]
    score: Callable[[Any, Any], float]


def first_rows(examples: Examples, rows: int | None) -> Examples:
    """The first rows of a split, or all. Ends the program where an example is more than one
    sequence or no class.
    """
    if examples.sequences != 1 or not np.issubdtype(examples.labels.dtype, np.integer):
        raise SystemExit(
            "expected a task of one sequence an example and classes (rte, sst2, cola, mnli, snli,"
            " qnli), found another"
        )
    if rows is None or rows >= len(examples):
        return examples
    return Examples(
        examples.tokens[: examples.offsets[rows]],
        examples.offsets[: rows + 1],
        examples.labels[:rows],
        1,
    )


def of_run(name: str, epochs: int, precision: str, train_rows: int | None) -> Work:
    """A task of the run in this folder, from its pre-trained weights."""
    from gpt1.base.files import stage_folder
    from gpt1.model.networks import describe
    from gpt1.tasks import metrics
    from gpt1.train.finetuning_data import make_classifier, read_task

    params = read_params()
    about, task = read_task(stage_folder("encode", params.tasks[name].group, name), params)
    recipe = recipe_of(params, epochs, precision)
    dev = task.selection_split
    task = task._replace(
        splits={
            "train": first_rows(task.splits["train"], train_rows),
            dev: first_rows(task.splits[dev], None),
        }
    )
    wanted = describe(
        "transformer", params, about["vocabulary_size"], about["vocabulary_fingerprint"]
    )
    weights = stage_folder("pretrain", "transformer", "seed-0", "weights.safetensors")
    return Work(
        task,
        params.model,
        recipe,
        lambda: make_classifier(params, recipe, about, wanted, weights, SEED),
        lambda logits, labels: metrics.score(
            about["metric"], labels, metrics.predictions(logits, about["target"])
        ),
    )


def made_up(name: str, profile: str, epochs: int, precision: str, rows_share: float) -> Work:
    """Made-up rows in the place of a task's, from random weights."""
    params = validate(compose(profile, []))
    vocabulary = VOCABULARY[profile]
    task = made_up_task(name, rows_share, params.model.context, vocabulary)
    return Work(
        task,
        params.model,
        recipe_of(params, epochs, precision),
        lambda: fresh_classifier(params, vocabulary, 2, SEED),
        accuracy,
    )


class Padding:
    """Counts tokens and places of the training batches that go through it."""

    def __init__(self) -> None:
        self.tokens = self.places = 0

    def note(self, lengths: torch.Tensor, places: int) -> None:
        self.tokens, self.places = self.tokens + int(lengths.sum()), self.places + places

    def share(self) -> float:
        return 1.0 - self.tokens / self.places

    def counted_pad(self, examples: Examples, rows: np.ndarray) -> Batch:
        """gpt1.train.batches.pad, counted."""
        batch = pad(examples, rows)
        self.note(batch.lengths_bk, batch.tokens_bkt.numel())
        return batch


@torch.no_grad()
def check_equal(work: Work) -> float:
    """The largest difference of logits on the first rows of dev, before training; ends the program
    above 1e-3.
    """
    ours, dev = work.start(), work.task.splits[work.task.selection_split]
    rows = np.arange(min(LOGITS_OF, len(dev)))
    expected = ours(pad(dev, rows).tokens_bkt).logits_bo
    found = module_of(ours, work.sizes, work.recipe).eval()(**collate(rows_of(dev)[: len(rows)]))[
        "logits"
    ]
    difference = float((found - expected).abs().max())
    if not difference < 1e-3:
        raise SystemExit(
            "expected our weights in Hugging Face's model to give our logits, found a difference"
            f" of {difference:.0e}"
        )
    return difference


def compare(
    work: Work, machine: Machine, warm_up: int, rounds: int, folder: Path
) -> dict[str, Any]:
    """Seconds (training and its evaluations; not what makes the model), processor seconds, rows a
    second, dev scores and padding of both sides.
    """
    task, recipe, dev = work.task, work.recipe, work.task.selection_split
    train = task.splits["train"]
    in_epoch = updates_in_epoch(len(train), recipe.batch_size, task.name)
    rows = {
        "train": rows_of(train)[: in_epoch * recipe.batch_size],
        "dev": rows_of(task.splits[dev]),
    }
    scores, seconds, processor, padding = (
        {side: [] for side in SIDES},
        {side: [] for side in SIDES},
        {side: [] for side in SIDES},
        {side: Padding() for side in SIDES},
    )

    def timed(side: str, work: Callable[[], Any]) -> Any:
        started, used = time.perf_counter(), time.process_time()
        found = work()
        seconds[side].append(time.perf_counter() - started)
        processor[side].append(time.process_time() - used)
        return found

    def ours() -> None:
        classifier, finetuning.pad = work.start(), padding["ours"].counted_pad
        run = FinetuningRun(
            classifier, recipe, task, SEED, machine, folder / "curve.jsonl", task.name
        )
        outcome = timed("ours", lambda: finetune_seed(run, lambda *_: None))
        finetuning.pad = pad
        scores["ours"].append(task.score(outcome.logits[f"{dev}/last"]))

    def theirs() -> None:
        trainer = trainer_for(
            module_of(work.start(), work.sizes, recipe),
            recipe,
            rows,
            in_epoch * recipe.epochs,
            machine.device,
            padding["trainer"].note,
            work.score,
            folder,
        )
        timed("trainer", trainer.train)
        scores["trainer"].append(
            next(
                line["eval_score"]
                for line in reversed(trainer.state.log_history)
                if "eval_score" in line
            )
        )

    difference = check_equal(work)
    in_turn({"ours": ours, "trainer": theirs}, warm_up, rounds)
    warm = {side: sum(all_[:warm_up]) for side, all_ in seconds.items()}
    seconds, processor = (
        {side: all_[warm_up:] for side, all_ in every.items()} for every in (seconds, processor)
    )
    rows_taken = in_epoch * recipe.batch_size * recipe.epochs
    return {
        "rows": len(train),
        "mean_tokens": len(train.tokens) / len(train),
        "batch": recipe.batch_size,
        "epochs": recipe.epochs,
        "logits_differ": difference,
        "ours_times_faster": times_faster(seconds["ours"], seconds["trainer"]),
        "by_processor_time": times_faster(processor["ours"], processor["trainer"]),
        "sides": {
            side: {
                "seconds": seconds[side],
                "processor_seconds": processor[side],
                "warm_up_seconds": warm[side],
                "dev_scores": scores[side],
                "rows_per_second": rates(seconds[side], rows_taken),
                "padding_share": padding[side].share(),
            }
            for side in SIDES
        },
    }


def main() -> None:
    options = parser(__doc__, 3)
    options.add_argument(
        "--tasks",
        nargs="+",
        default=["rte", "sst2"],
        help=f"made up: {', '.join(SHAPES)}; of a run: any of one sequence",
    )
    options.add_argument(
        "--run",
        type=Path,
        metavar="FOLDER",
        help="a checkout with params.yaml, encoded tasks and pre-trained weights",
    )
    options.add_argument(
        "--train-rows", type=int, help="only the first rows of a run's train split"
    )
    options.add_argument("--profile", choices=sorted(VOCABULARY), default="small")
    options.add_argument(
        "--rows-share", type=float, default=1.0, help="of the made-up rows (default 1: all)"
    )
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    options.add_argument(
        "--warm-up",
        type=int,
        default=1,
        help="whole fine-tunings of each side before the measured ones (default 1)",
    )
    arguments = options.parse_args()
    logging.set_verbosity_error()
    machine = launch.read_machine()
    machine = replace(machine, threads=arguments.threads or machine.threads)
    launch.prepare(machine)
    facts, found = machine_facts(), {}
    print(
        f"{heading(facts)}\n{arguments.run or arguments.profile}, {arguments.precision},"
        f" {arguments.epochs} epochs\n"
    )
    json_path = arguments.json.absolute() if arguments.json else None
    if arguments.run:
        os.chdir(arguments.run)
    rows = []
    for name in arguments.tasks:
        work = (
            of_run(name, arguments.epochs, arguments.precision, arguments.train_rows)
            if arguments.run
            else made_up(
                name, arguments.profile, arguments.epochs, arguments.precision, arguments.rows_share
            )
        )
        with tempfile.TemporaryDirectory() as folder:
            found[name] = one = compare(
                work, machine, arguments.warm_up, arguments.rounds, Path(folder)
            )
        for side, values in one["sides"].items():
            rows.append(
                [
                    f"{name}, {one['rows']:,} rows of {one['mean_tokens']:.0f} tokens",
                    side,
                    shown(spread(values["seconds"]), 1),
                    shown(values["rows_per_second"], 1),
                    shown(spread(values["dev_scores"]), 3),
                    f"{values['padding_share']:.1%}",
                    f"{values['warm_up_seconds']:.1f}",
                    shown(spread(values["processor_seconds"]), 1),
                    shown(one["ours_times_faster"], 2) if side == "ours" else "",
                    shown(one["by_processor_time"], 2) if side == "ours" else "",
                ]
            )
    print(
        table(
            [
                "task",
                "side",
                "seconds: median (least to most)",
                "rows/s",
                "dev score",
                "padding",
                "warm-up, s",
                "processor s",
                "times faster",
                "by processor time",
            ],
            rows,
        )
    )
    finish(
        json_path,
        facts,
        {
            "precision": arguments.precision,
            "profile": None if arguments.run else arguments.profile,
            "tasks": found,
        },
    )


if __name__ == "__main__":
    main()
