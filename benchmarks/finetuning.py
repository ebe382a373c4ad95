"""Our fine-tuning against Hugging Face's Trainer: the same examples, start, epochs, batch, rate,
dropout, threads, in one process in turn.

    python benchmarks/finetuning.py --run FOLDER [--tasks rte sst2] [--train-rows 10000] [--precision bf16] [--rounds 3]

FOLDER is the root of a run's checkout: its parameters, encoded tasks and pre-trained weights. Ours
is finetune_seed as the stage calls it, with its evaluation after each epoch. Trainer gets what a
careful user gives it: whole batches, as ours, group_by_length, padding to the longest of a batch,
larger batches for its evaluation after each epoch, fused AdamW, autocast where bf16, and a module
that adds the auxiliary language model to the loss (over the vocabulary and the special symbols, a
mean over the batch's real tokens; ours is over position rows too, a mean over sequences, as the
authors'). Neither writes weights; ours keeps the best in memory. Before the first round, which does
not count, our weights, put into their module, must give our logits.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from measuring import (
    check_equal,
    hugging_face,
    in_turn,
    parser,
    prepared_machine,
    rates,
    spread,
    table,
    times_faster,
)
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.base.files import stage_folder
from gpt1.model.heads import Classifier
from gpt1.model.networks import describe
from gpt1.params.schema import Finetune, Model, read_params
from gpt1.tasks import metrics
from gpt1.train.batches import Examples, pad, updates_in_epoch
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.finetuning_data import make_classifier, read_task
from gpt1.train.launch import Machine

SEED, WARM_UP, LOGITS_OF = 0, 1, 32
EVALUATION_BATCHES = 4  # times the training batch
SCHEDULES = {
    "warmup_linear": "linear",
    "warmup_cosine": "cosine",
}


class Work(NamedTuple):
    """A task to be fine-tuned on, the recipe, the network's sizes, what makes the classifier to
    start from, the score of logits and labels.
    """

    task: EncodedTask
    sizes: Model
    recipe: Finetune
    start: Callable[[], Classifier]
    score: Callable[[Any, Any], float]


def work_of(name: str, given: argparse.Namespace) -> Work:
    """A task of the run in this folder, from its pre-trained weights."""
    params = read_params()
    about, task = read_task(stage_folder("encode", params.tasks[name].group, name), params)
    if about["sequences"] != 1 or about["target"] != "class":
        raise SystemExit(f"{name}: expected a task of classes and one sequence an example")
    train = task.splits["train"]
    rows = min(given.train_rows or len(train), len(train))
    ends = train.offsets[: rows + 1]
    train = Examples(train.tokens[: ends[-1]], ends, train.labels[:rows], 1)
    changes = {"precision": given.precision, "evaluation_updates": ()}
    recipe = params.finetune.model_copy(update=changes)
    wanted = describe(
        "transformer", params, about["vocabulary_size"], about["vocabulary_fingerprint"]
    )
    weights = stage_folder("pretrain", "transformer", "seed-0", "weights.safetensors")
    dev = task.selection_split
    return Work(
        task._replace(splits={"train": train, dev: task.splits[dev]}),
        params.model,
        recipe,
        lambda: make_classifier(params, recipe, about, wanted, weights, SEED),
        lambda logits, labels: metrics.score(
            about["metric"], labels, metrics.answers_of(logits, about["target"])
        ),
    )


class TheirClassifier(nn.Module):
    """As a user of Trainer writes it: their GPT, a linear layer on the state at the last token, the
    auxiliary LM added to the loss; here with the weights of ours.
    """

    def __init__(self, ours: Classifier, sizes: Model, recipe: Finetune) -> None:
        super().__init__()
        self.gpt = hugging_face(ours.decoder, sizes, recipe.dropout).transformer
        self.head = nn.Linear(sizes.width, ours.head.linear.out_features)
        self.head.load_state_dict(ours.head.linear.state_dict())
        self.dropout, self.lambda_lm = nn.Dropout(recipe.classifier_dropout), recipe.lambda_lm

    def forward(self, input_ids: Tensor, lengths: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Loss and logits of right-padded token ids [b, t]; under the causal mask padding needs
        none of its own.
        """
        hidden_btd = self.gpt(input_ids=input_ids).last_hidden_state
        last_b = torch.arange(len(lengths), device=lengths.device), lengths - 1
        logits_bo = self.head(self.dropout(hidden_btd[last_b]))
        loss = F.cross_entropy(logits_bo.float(), labels)
        if self.training and self.lambda_lm:
            places_t = torch.arange(1, input_ids.shape[1], device=lengths.device)
            targets_bt = input_ids[:, 1:].masked_fill(places_t >= lengths[:, None], -100)
            tokens_btv = F.linear(hidden_btd[:, :-1], self.gpt.tokens_embed.weight)
            loss = loss + self.lambda_lm * F.cross_entropy(
                tokens_btv.flatten(0, 1).float(), targets_bt.flatten(), ignore_index=-100
            )
        return {"loss": loss, "logits": logits_bo}


def rows_of(examples: Examples, rows: int) -> list[dict[str, Any]]:
    """The first examples as rows: ids, their number, label."""
    ids = np.split(examples.tokens.astype(np.int64), examples.offsets[1:-1])[:rows]
    return [
        {"input_ids": torch.from_numpy(each), "length": len(each), "labels": int(label)}
        for each, label in zip(ids, examples.labels, strict=False)
    ]


def collate(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Rows padded to the longest among them."""
    ids = [row["input_ids"] for row in rows]
    return {
        "input_ids": nn.utils.rnn.pad_sequence(ids, batch_first=True),
        "lengths": torch.tensor([row["length"] for row in rows]),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def trainer_of(
    work: Work, rows: dict[str, list[dict[str, Any]]], machine: Machine, folder: str
) -> transformers.Trainer:
    """A Trainer by our recipe on these rows, from our weights, which evaluates dev after each epoch
    and writes nothing.
    """
    recipe = work.recipe
    updates = len(rows["train"]) // recipe.batch_size * recipe.epochs
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        use_cpu=machine.device == "cpu",
        bf16=recipe.precision == "bf16",
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=EVALUATION_BATCHES * recipe.batch_size,
        train_sampling_strategy="group_by_length",
        length_column_name="length",
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=SCHEDULES[recipe.schedule],
        warmup_steps=math.ceil(updates * recipe.warmup_fraction),
        optim="adamw_torch_fused",
        adam_beta1=recipe.beta1,
        adam_beta2=recipe.beta2,
        adam_epsilon=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.max_gradient_norm,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=recipe.log_updates,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["labels"],
        seed=SEED,
    )
    # group_by_length sorts dev too, so it is scored against the labels as they come.
    trainer = transformers.Trainer(
        TheirClassifier(work.start(), work.sizes, recipe),
        arguments,
        data_collator=collate,
        train_dataset=rows["train"],
        eval_dataset=rows["dev"],
        compute_metrics=lambda output: {"score": work.score(output.predictions, output.label_ids)},
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def compare(work: Work, machine: Machine, rounds: int, folder: str) -> list[list[str]]:
    """Lines of the table: seconds of training and its evaluations, not of what makes the model, and
    dev scores.
    """
    task, recipe = work.task, work.recipe
    train, dev = task.splits["train"], task.splits[task.selection_split]
    batches = updates_in_epoch(len(train), recipe.batch_size, task.name)
    rows = {"train": rows_of(train, batches * recipe.batch_size), "dev": rows_of(dev, len(dev))}
    with torch.no_grad():
        ours, first = work.start(), rows["dev"][:LOGITS_OF]
        theirs = TheirClassifier(ours, work.sizes, recipe).eval()
        expected = ours(pad(dev, np.arange(len(first))).tokens_bkt).logits_bo
        check_equal(expected, theirs(**collate(first))["logits"])
    seconds = {side: list[float]() for side in ("ours", "Trainer")}
    scores = {side: list[float]() for side in seconds}

    def timed(side: str, train: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        outcome = train()
        seconds[side].append(time.perf_counter() - started)
        return outcome

    def our_side() -> None:
        curve = Path(folder, "curve.jsonl")
        run = FinetuningRun(work.start(), recipe, task, SEED, machine, curve, task.name)
        outcome = timed("ours", lambda: finetune_seed(run, lambda *_: None))
        scores["ours"].append(task.score(outcome.logits[f"{task.selection_split}/last"]))

    def their_side() -> None:
        trainer = trainer_of(work, rows, machine, folder)
        timed("Trainer", trainer.train)
        lines = [line for line in trainer.state.log_history if "eval_score" in line]
        scores["Trainer"].append(lines[-1]["eval_score"])

    in_turn({"ours": our_side, "Trainer": their_side}, WARM_UP, rounds)
    seconds = {side: each[WARM_UP:] for side, each in seconds.items()}
    what = f"{task.name}, {len(train):,} rows of {len(train.tokens) / len(train):.0f} tokens"
    return [
        [
            what,
            side,
            spread(seconds[side], 1),
            spread(rates(seconds[side], len(rows["train"]) * recipe.epochs), 1),
            spread(scores[side], 3),
            times_faster(seconds[side], seconds["Trainer"]),
        ]
        for side in seconds
    ]


def main() -> None:
    options = parser(__doc__, rounds=3)
    options.add_argument("--run", type=Path, metavar="FOLDER", required=True)
    options.add_argument("--tasks", nargs="+", default=["rte", "sst2"], help="of one sequence")
    options.add_argument("--train-rows", type=int, help="only the first rows of train")
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    given = options.parse_args()
    machine = prepared_machine()
    transformers.logging.set_verbosity_error()
    os.chdir(given.run)
    print(f"{given.run}, {given.precision}\n")
    rows = []
    for name in given.tasks:
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(work_of(name, given), machine, given.rounds, folder)
    seconds = "seconds: median (least to most)"
    print(table(["task", "side", seconds, "rows/s", "dev score", "times faster"], rows))


if __name__ == "__main__":
    main()
