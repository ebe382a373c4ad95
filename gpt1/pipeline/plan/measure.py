"""A short measurement: the real training functions on made-up tokens, at the run's sizes, timed by
the points that they report.

`python -m gpt1.pipeline.plan.measure` reads jobs from stdin and writes what it found of each to
stdout, a line of JSON each; a process of its own, with a stage's threads, does each job, so that
its memory is that of nothing else, and torch is imported once.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.model.heads import Classifier, Combine, Head
from gpt1.model.networks import describe, make_network
from gpt1.params.schema import Params, validate
from gpt1.pipeline.plan.work import UpdateShape
from gpt1.train import launch
from gpt1.train.batches import Examples
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.precision import native_bf16
from gpt1.train.pretraining import Corpus, PretrainingRun, pretrain

UPDATES_AN_EPOCH = 8
SLOW_FLOPS = 2e10  # below, a larger product takes too long, and the small one tells as much
LEAST_UPDATES = 2  # the first has its own cost: memory, compilation


class _EnoughError(BaseException):
    """Enough was seen; no error, but nothing in training may catch it."""


class _Clock:
    """Takes the points of a curve and ends the run after so many seconds of updates."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.last, self.updates = time.perf_counter(), list[float]()

    def report(self, _update: int, values: Mapping[str, float]) -> None:
        """Note how long this point took; raises _EnoughError."""
        now = time.perf_counter()
        if "learning_rate" in values:  # an update; an evaluation's time is not counted
            self.updates.append(now - self.last)
        self.last = now
        if len(self.updates) >= LEAST_UPDATES and sum(self.updates) > self.seconds:
            raise _EnoughError


def clocked(train: Callable[[Path, Any], object], seconds: float) -> tuple[float, float]:
    """Run `train` in a folder of its own for so many seconds of updates: seconds of a later update
    (median), and those of the first beyond it.
    """
    clock = _Clock(seconds)
    with tempfile.TemporaryDirectory() as folder, suppress(_EnoughError):
        train(Path(folder), clock.report)
    later = statistics.median(clock.updates[1:] or clock.updates)
    return later, max(0.0, clock.updates[0] - later)


def time_pretraining(
    name: str,
    params: Params,
    rows: int,
    shape: UpdateShape,
    tokens: float,
    machine: launch.Machine,
    seconds: float,
) -> tuple[float, float]:
    """Updates of `shape.rows` windows of `shape.length` tokens, out of a run on `tokens`."""
    length = round(shape.length)
    sizes = params.model.model_copy(update={"context": length})
    params = params.model_copy(update={"model": sizes})
    recipe = params.pretrain.model_copy(
        update={
            "batch_size": shape.rows,
            "log_updates": 1,
            "heldout_updates": 10**9,
            "snapshots_per_decade": 1,
            "checkpoint_minutes": 1e6,
        }
    )
    draw = np.random.default_rng(0)
    corpus = Corpus(
        lambda _: np.arange(shape.rows),
        lambda starts: draw.integers(0, rows, (len(starts), length + 1)),
        draw.integers(0, rows, (1, length + 1)),
        1.0,
    )
    network = make_network(name, params, rows, torch.Generator().manual_seed(0))
    description = describe(name, params, rows, "")
    updates = max(LEAST_UPDATES, round(tokens / (shape.rows * shape.length)))
    return clocked(
        lambda folder, report: pretrain(
            PretrainingRun(
                network, description, recipe, recipe.seeds[0], updates, corpus, machine, folder
            ),
            report,
        ),
        seconds,
    )


def made_examples(count: int, shape: UpdateShape, rows: int, context: int) -> Examples:
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
    name: str,
    params: Params,
    rows: int,
    shape: UpdateShape,
    _tokens: float,
    machine: launch.Machine,
    seconds: float,
) -> tuple[float, float]:
    """Updates of `shape.rows` examples."""
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
    train = made_examples(UPDATES_AN_EPOCH * shape.rows, shape, rows, params.model.context)
    dev = made_examples(1, shape, rows, params.model.context)
    task = EncodedTask("made", {"train": train, "dev": dev}, "dev", lambda _: 0.0)
    return clocked(
        lambda folder, report: finetune_seed(
            FinetuningRun(classifier, recipe, task, 0, machine, folder / "curve.jsonl", "plan"),
            report,
        ),
        seconds,
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


def measured(job: Mapping[str, Any]) -> dict[str, Any]:
    """What a job finds: of a matrix product (`limit`), or of the updates of `shapes` of one kind of
    training of one network, in about so many `seconds`.
    """
    machine = launch.read_machine()
    launch.prepare(machine)
    found: dict[str, Any] = {}
    if "limit" in job:
        small, large = (256, 2048) if machine.device == "cpu" else (8192, 8192)
        flops = matmul_flops(machine.device, job["limit"], small, 0.3)
        if flops > SLOW_FLOPS:
            flops = matmul_flops(machine.device, job["limit"], large, 0.7)
        found["matmul_flops"] = flops
    else:
        params, time_training = validate(job["params"]), TIMERS[job["kind"]]
        sizes, seconds = (job["network"], params, job["rows"]), job["seconds"] / len(job["shapes"])
        timed = [
            time_training(*sizes, shape, job["tokens"], machine, seconds)
            for shape in starmap(UpdateShape, job["shapes"])
        ]
        found |= {"updates": [update for update, _ in timed], "first": timed[0][1]}
    found["peak_bytes"] = (
        torch.cuda.max_memory_reserved() if machine.device == "cuda" else launch.peak_memory_bytes()
    )
    return found


def main() -> None:
    """Do the jobs on stdin one after the other, each with the variables of its `environment`; end
    with the status of one that fails.
    """
    import_module("gpt1.base.ended_with_parent")  # nor does a job outlive gpt1 plan
    for line in sys.stdin:
        sys.stdout.flush()
        if not (child := os.fork()):
            answer, sys.stdout = sys.stdout, sys.stderr
            job = json.loads(line)
            os.environ.update(job["environment"])
            print(json.dumps(measured(job)), file=answer, flush=True)
            return
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            sys.exit(abs(status))


if __name__ == "__main__":
    main()
