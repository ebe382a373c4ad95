"""What a training step asks of a GPU, counted without one (fake_cuda.py): kernels launched, copies
and other waits that block the host, operators that mix the CPU's tensors with the GPU's.

    python benchmarks/launches.py [--size 117m] [--names] [--json FILE]

In the root of the checkout. The real trainers take two updates as on one GPU, not compiled, in the
recipe's precision, and the second is counted; fine-tuning on 32 rows of 48 tokens, also by graphs,
of which the third is counted: the second records them; where triton is installed, pre-training by
our kernels too. --names: which operators they were.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from fake_cuda import Count, counting, placed
from made_up_tasks import SPECIAL_SYMBOLS, fresh_classifier
from our_step import PROFILES
from side_by_side import table
from torch import from_numpy, nn

from gpt1.base.files import write_json
from gpt1.model.gpt import Decoder
from gpt1.params.profile import compose
from gpt1.params.schema import Optimization, Params, validate
from gpt1.train import finetuning, loop, pretraining
from gpt1.train.batches import Examples, pad
from gpt1.train.launch import Machine
from gpt1.train.objectives import Finetuning, Pretraining
from gpt1.train.speed import speed_up

ROW_TOKENS = 48
COUNTS = ("launches", "blocking_copies", "waits", "mixes")
ONE_GPU = Machine("cuda", 1, 0, 0, 1, None, False, False, compiled=False)
OUR_KERNELS = replace(ONE_GPU, kernels=True)


def trainer(
    objective: nn.Module,
    network: Decoder,
    recipe: Optimization,
    folder: Path,
    row_tokens: int,
    draw: loop.Draw,
    select: loop.Select,
    machine: Machine = ONE_GPU,
) -> loop.Trainer:
    """A training of a thousand updates on the GPU that is not there."""
    return loop.Trainer(
        "counted",
        placed(objective),
        recipe,
        machine,
        seed=0,
        updates=1000,
        warmup=0.002,
        row_tokens=row_tokens,
        choices=speed_up(network, recipe, machine, 0),
        draw=draw,
        select=select,
        curve=folder / "curve.jsonl",
        report=lambda *_: None,
    )


def last(count: Count, take: Callable[[int], object], updates: int = 2) -> dict[str, Any]:
    """The counts of the last of two updates, or of so many, or of two evaluations."""
    for update in range(1, updates + 1):
        count.clear()
        take(update)
    return count.figures()


def counted(count: Count, size: str, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is done, and its counts: an update of the profile's batch; 64 held-out windows; an
    update on made-up rows; the logits of 64 of them.
    """
    profile, overrides, vocabulary = PROFILES[size]
    params = validate(compose(profile, overrides))
    yield from of_pretraining(count, params, vocabulary, folder)
    if find_spec("triton"):
        for what, row in of_pretraining(count, params, vocabulary, folder, OUR_KERNELS):
            yield f"{what}, our kernels", row
    yield from of_finetuning(count, params, vocabulary, folder)


def of_pretraining(
    count: Count, params: Params, vocabulary: int, folder: Path, machine: Machine = ONE_GPU
) -> Iterator[tuple[str, dict[str, Any]]]:
    recipe, context = params.pretrain, params.model.context
    network = fresh_classifier(params, vocabulary - SPECIAL_SYMBOLS, 2, 0).decoder
    windows_bt = np.zeros((recipe.batch_size, context + 1), np.int64)
    rows = np.arange(len(windows_bt))
    made = trainer(
        Pretraining(network, recipe.precision),
        network,
        recipe,
        folder,
        context,
        lambda _: rows,
        lambda rows: from_numpy(windows_bt[rows]),
        machine,
    )
    yield "pre-training, update", last(count, made.take_update)
    corpus = pretraining.Corpus(lambda _: rows, windows_bt.__getitem__, windows_bt[:64], 1.0)
    yield (
        "pre-training, held-out loss",
        last(count, lambda _: pretraining.heldout_values(made.engine, corpus, 32, made.stop)),
    )


def of_finetuning(
    count: Count, params: Params, vocabulary: int, folder: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    examples = Examples(
        np.zeros(64 * ROW_TOKENS, np.uint16),
        np.arange(65) * ROW_TOKENS,
        np.zeros(64, np.int64),
        1,
    )
    made = finetuning_of(examples, params, vocabulary, folder, False)
    yield "fine-tuning, update", last(count, made.take_update)
    evaluate = partial(finetuning.logits_of, made.engine, made.engine.objective, examples)
    yield "fine-tuning, logits", last(count, lambda _: evaluate(32 * ROW_TOKENS, made.stop))
    made = finetuning_of(examples, params, vocabulary, folder, True)
    yield "fine-tuning, update by graphs", last(count, made.take_update, 3)


def finetuning_of(
    examples: Examples, params: Params, vocabulary: int, folder: Path, graphs: bool
) -> loop.Trainer:
    """A fine-tuning on the first rows of these examples, the same ones at every update."""
    recipe, rows = params.finetune, np.arange(params.finetune.batch_size)
    classifier = fresh_classifier(params, vocabulary, 2, 0)
    objective = Finetuning(
        classifier, recipe.classifier_dropout, recipe.lambda_lm, recipe.precision, graphs
    )
    network = classifier.decoder
    select = partial(pad, examples, few_up_to=network.context if graphs else None)
    machine = replace(ONE_GPU, graphs=graphs)
    return trainer(objective, network, recipe, folder, ROW_TOKENS, lambda _: rows, select, machine)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--names", action="store_true")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name, counting() as count:
        os.environ["GPT1_LOGS"] = name
        found = dict(counted(count, arguments.size, Path(name)))
    print(
        table(
            ["", *(count_.replace("_", " ") for count_ in COUNTS)],
            [[what, *(row[count_] for count_ in COUNTS)] for what, row in found.items()],
        )
    )
    for what, row in found.items() if arguments.names else ():
        for count_, names in row["by_name"].items():
            print(f"{what}: {count_}: {names}")
    if arguments.json:
        write_json(arguments.json, found)


if __name__ == "__main__":
    main()
