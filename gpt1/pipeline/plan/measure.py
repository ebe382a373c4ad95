"""A short measurement: the real training functions on made-up tokens, at the run's sizes, timed by
the points that they report.

`python -m gpt1.pipeline.plan.measure` reads a job from stdin and writes what it found to stdout,
both JSON, in a process with a stage's threads.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gpt1.model.heads import Classifier, Combine, Head
from gpt1.model.networks import describe, make_network
from gpt1.params.schema import Params, validate
from gpt1.train import launch
from gpt1.train.batches import Examples
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.precision import native_bf16
from gpt1.train.pretraining import Corpus, PretrainingRun, pretrain

STEADY_SECONDS = 3.0  # of updates after the first
LEAST_UPDATES = 2  # the first has its own cost: memory, compilation
EVALUATE_AFTER = 2


class Shape(NamedTuple):
    """What one update takes: examples, sequences of each, tokens of a sequence."""

    rows: int
    sequences: int
    length: float

    @property
    def tokens(self) -> float:
        """Tokens of the update."""
        return self.rows * self.sequences * self.length


class Timed(NamedTuple):
    """Seconds of the first update beyond a later one's, of a later one (median), of an evaluation
    of as many rows as `evaluated`.
    """

    first: float
    update: float
    evaluation: float
    evaluated: int


class _EnoughError(BaseException):
    """Enough was seen; no error, but nothing in training may catch it."""


class _Clock:
    """Takes the points of a curve and ends the run when enough have come."""

    def __init__(self, evaluated: int) -> None:
        self.evaluated, self.last = evaluated, time.perf_counter()
        self.updates, self.evaluations = list[float](), list[float]()

    def report(self, _update: int, values: Mapping[str, float]) -> None:
        """Note how long this point took; raises _EnoughError."""
        now = time.perf_counter()
        (self.updates if "learning_rate" in values else self.evaluations).append(now - self.last)
        self.last = now
        if (
            self.evaluations
            and len(self.updates) >= LEAST_UPDATES
            and sum(self.updates[1:]) + sum(self.evaluations) > STEADY_SECONDS
        ):
            raise _EnoughError

    def timed(self) -> Timed:
        """What was seen."""
        later = statistics.median(self.updates[1:] or self.updates)
        return Timed(
            max(0.0, self.updates[0] - later), later, min(self.evaluations), self.evaluated
        )


def clocked(evaluated: int, train: Callable[[Path, Any], object]) -> Timed:
    """Run `train` in a folder of its own until the clock has seen enough."""
    with tempfile.TemporaryDirectory() as folder:
        clock = _Clock(evaluated)
        with suppress(_EnoughError):
            train(Path(folder), clock.report)
    return clock.timed()


def time_pretraining(
    name: str, params: Params, rows: int, shape: Shape, tokens: float, machine: launch.Machine
) -> Timed:
    """Updates of `shape.rows` windows of `shape.length` tokens, out of a run on `tokens`, and
    held-out evaluations of one micro-batch.
    """
    length = round(shape.length)
    heldout = min(machine.micro_batch_for(length), shape.rows)
    sizes = params.model.model_copy(update={"context": length})
    params = params.model_copy(update={"model": sizes})
    recipe = params.pretrain.model_copy(
        update={
            "batch_size": shape.rows,
            "log_updates": 1,
            "heldout_updates": EVALUATE_AFTER,
            "snapshots_per_decade": 1,
            "checkpoint_minutes": 1e6,
        }
    )
    draw = np.random.default_rng(0)
    corpus = Corpus(
        lambda _: draw.integers(0, rows, (shape.rows, length + 1)),
        draw.integers(0, rows, (heldout, length + 1)),
        1.0,
    )
    network = make_network(name, params, rows, torch.Generator().manual_seed(0))
    updates, description = (
        max(LEAST_UPDATES, round(tokens / shape.tokens)),
        describe(name, params, rows, ""),
    )
    return clocked(
        heldout,
        lambda folder, report: pretrain(
            PretrainingRun(network, description, recipe, updates, corpus, machine, folder), report
        ),
    )


def made_examples(count: int, shape: Shape, rows: int, context: int) -> Examples:
    """Examples of random tokens that end with the extract symbol (the last row), of lengths around
    the shape's.
    """
    draw = np.random.default_rng(0)
    lengths = draw.uniform(0.7, 1.3, count * shape.sequences) * shape.length
    offsets = np.concatenate(
        [[0], np.cumsum(np.clip(lengths.round().astype(np.int64), 2, context))]
    )
    tokens = draw.integers(0, rows - 1, offsets[-1])
    tokens[offsets[1:] - 1] = rows - 1
    return Examples(
        tokens.astype(np.uint32), offsets, np.zeros(count, dtype=np.int64), shape.sequences
    )


def time_finetuning(
    name: str, params: Params, rows: int, shape: Shape, _tokens: float, machine: launch.Machine
) -> Timed:
    """Updates of `shape.rows` examples, and evaluations of twice as many."""
    recipe = params.finetune.model_copy(
        update={
            "batch_size": shape.rows,
            "log_updates": 1,
            "epochs": 1000,
            "evaluation_updates": (),
        }
    )
    draw = torch.Generator().manual_seed(0)
    by_sequences: dict[int, Combine] = {1: "single", 2: "sum"}
    combine = by_sequences.get(shape.sequences, "choose")
    network = make_network(name, params, rows, draw)
    classifier = Classifier(
        network, Head(params.model.width, 2, combine, params.model.weight_deviation, draw)
    )
    train = made_examples(EVALUATE_AFTER * shape.rows, shape, rows, params.model.context)
    dev = made_examples(2 * shape.rows, shape, rows, params.model.context)
    task = EncodedTask("made", {"train": train, "dev": dev}, "dev", lambda _: 0.0)
    return clocked(
        len(dev),
        lambda folder, report: finetune_seed(
            FinetuningRun(classifier, recipe, task, 0, machine, folder / "curve.jsonl", "plan"),
            report,
        ),
    )


def matmul_flops(device: str, precision: str, size: int, seconds: float) -> float:
    """Operations a second of a large matrix product in the type that training multiplies in: the
    most that a training could reach.
    """
    low = precision == "bf16" and (device == "cuda" or native_bf16())
    one = torch.randn(size, size, dtype=torch.bfloat16 if low else torch.float32, device=device)
    best, end = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        began = time.perf_counter()
        (one @ one).sum().item()
        best = min(best, time.perf_counter() - began)
    return 2.0 * size**3 / best


TIMERS = {"pretrain": time_pretraining, "finetune": time_finetuning}


def main() -> None:
    """Do the job on stdin: a matrix product (`limit`), or the updates of `shapes` of one kind of
    training of one network.
    """
    job, answer = json.load(sys.stdin), sys.stdout
    sys.stdout = sys.stderr
    machine = launch.read_machine()
    launch.prepare(machine)
    found: dict[str, Any] = {"device": launch.facts(machine)["device"]}
    if "limit" in job:
        found["matmul_flops"] = matmul_flops(
            machine.device, job["limit"], 256 if machine.device == "cpu" else 8192, 0.3
        )
        if (
            found["matmul_flops"] > 2e10
        ):  # below that the larger one takes too long, and the small one is as good
            found["matmul_flops"] = matmul_flops(
                machine.device, job["limit"], 2048 if machine.device == "cpu" else 8192, 0.7
            )
    else:
        params = validate(job["params"])
        timed = [
            TIMERS[job["kind"]](
                job["network"], params, job["rows"], Shape(*shape), job["tokens"], machine
            )
            for shape in job["shapes"]
        ]
        found["timed"] = [one._asdict() for one in timed]
    found["peak_bytes"] = (
        torch.cuda.max_memory_reserved() if machine.device == "cuda" else launch.peak_memory_bytes()
    )
    json.dump(found, answer)


if __name__ == "__main__":
    main()
