"""What checkpoints cost: the share of training time that one a minute takes, and how long a
training lives on after SIGTERM.

    python benchmarks/stall.py [--size 117m] [--batch 4] [--rounds 5] [--block-seconds 60] [--terminations 3] [--folder DIR] [--json FILE]

One process takes the same number of updates in turn without a checkpoint and with one, which is
begun before the first of them and written meanwhile; a block is as many updates as fill a minute.
Then trainings that write checkpoints without a pause (the worst case: what is being written is
waited for) are ended by SIGTERM at random moments. --folder is where checkpoints are written
(default: a temporary one).
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from our_step import PROFILES, Size, corpus_of, named_size, windows_of
from side_by_side import machine_facts, parser, shown, spread, table

from gpt1.base.files import write_json
from gpt1.model.weights import Description
from gpt1.train import optim
from gpt1.train.batches import shares
from gpt1.train.checkpoint import Position, Saver
from gpt1.train.engine import make_engine
from gpt1.train.launch import Machine, prepare, read_machine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.pretraining import PretrainingRun, pretrain

NEVER = 1_000_000
POLL_SECONDS = 0.005
CHILD = "--train"  # how this script calls itself for a training that is to be ended


class Blocks:
    """Updates of one network, in blocks that may have a checkpoint written beside them."""

    def __init__(self, size: Size, machine: Machine, folder: Path) -> None:
        import torch

        self.torch, self.size, self.machine, self.updates, self.windows = (
            torch,
            size,
            machine,
            count(1),
            windows_of(size),
        )
        self.rows = min(machine.micro_batch_for(size.model.context), size.recipe.batch_size)
        self.engine = make_engine(
            Pretraining(size.network(), size.recipe.precision),
            size.recipe,
            machine,
        )
        self.saver = Saver(self.engine, folder, {}, {}, 0.0, 0, ())
        self.copies, self.writes, self.update = list[float](), list[float](), 0

    def take(self) -> None:
        """One update."""
        self.update = update = next(self.updates)
        recipe, windows = self.size.recipe, self.windows(update)
        batches = [
            MicroBatch(
                len(part) / len(windows),
                self.torch.from_numpy(windows[part]).to(self.engine.device),
            )
            for part in shares(np.arange(len(windows)), 0, 1, self.rows)
        ]
        rates = optim.rates(recipe, update, NEVER, recipe.warmup_updates / NEVER)
        take_update(self.engine, batches, recipe.dropout, recipe.seeds[0], update, rates, Stop())

    def block(self, updates: int, with_checkpoint: bool) -> float:
        """Seconds of a block; a checkpoint that is not yet written at its end is waited for,
        outside of the time, and noted.
        """
        began = time.monotonic()
        if with_checkpoint:
            self.saver.begin(Position(self.update, 0))
            self.copies.append(time.monotonic() - began)
            assert self.saver.writing
            self.saver.writing[1].add_done_callback(
                lambda _: self.writes.append(time.monotonic() - began)
            )
        for _ in range(updates):
            self.take()
        seconds = time.monotonic() - began
        self.saver.finish(Position(0, 0))
        return seconds


def measure_stall(
    size: Size, machine: Machine, folder: Path, rounds: int, block_seconds: float
) -> dict[str, Any]:
    """Blocks with and without a checkpoint in turn: the share lost in each round, the copy's and
    the write's seconds.
    """
    blocks = Blocks(size, machine, folder)
    blocks.block(2, False)
    blocks.block(1, True)  # memory for the copies is taken now
    blocks.copies.clear()
    blocks.writes.clear()
    began = time.monotonic()
    blocks.block(2, False)
    updates = max(2, round(block_seconds / ((time.monotonic() - began) / 2)))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for with_checkpoint in (False, True) if number % 2 == 0 else (True, False):
            seconds[with_checkpoint].append(blocks.block(updates, with_checkpoint))
        print(
            f"round {number + 1}: {updates} updates, {seconds[False][-1]:.2f} s without,"
            f" {seconds[True][-1]:.2f} s with",
            flush=True,
        )
    blocks.saver.close()
    bytes_ = sum(path.stat().st_size for path in max(folder.glob("update-*")).iterdir())
    lost = [
        (with_ - without) / without
        for with_, without in zip(seconds[True], seconds[False], strict=True)
    ]
    return {
        "updates": updates,
        "without_seconds": seconds[False],
        "with_seconds": seconds[True],
        "share_lost": spread(lost),
        "share_lost_of_medians": (
            statistics.median(seconds[True]) / statistics.median(seconds[False]) - 1
        ),
        "copy_seconds": spread(blocks.copies),
        "write_seconds": spread(blocks.writes),
        "checkpoint_bytes": bytes_,
    }


def train(size: Size, machine: Machine, folder: Path) -> None:
    """A training without an end that writes one checkpoint after another."""
    recipe = size.recipe.model_copy(
        update={
            "checkpoint_minutes": 0.0,
            "log_updates": 1,
            "heldout_updates": NEVER,
            "snapshots_per_decade": 1,
        }
    )
    run = PretrainingRun(
        size.network(),
        Description("transformer", {}, size.vocabulary, ""),
        recipe,
        recipe.seeds[0],
        NEVER,
        corpus_of(size),
        machine,
        folder,
    )
    pretrain(run, lambda update, values: None)


def measure_termination(name: str, batch: int, folder: Path) -> dict[str, float]:
    """Seconds from SIGTERM at a random moment to the process's end, and seconds of an update before
    it.
    """
    process = subprocess.Popen(
        [sys.executable, __file__, CHILD, name, str(batch), str(folder)], stderr=subprocess.DEVNULL
    )
    seen: list[float] = []
    curve = folder / "curve.jsonl"
    while len(seen) < 4 or not list(folder.glob("update-*")):  # the first update warms up
        assert process.poll() is None, "the training ended by itself"
        lines = len(curve.read_bytes().splitlines()) if curve.exists() else 0
        if lines > len(seen):
            seen.append(time.monotonic())
        time.sleep(POLL_SECONDS)
    update_seconds = (seen[-1] - seen[0]) / (len(seen) - 1)
    time.sleep(random.uniform(0, update_seconds))
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    status = process.wait()
    assert status == 128 + signal.SIGTERM, f"ended with {status}"
    return {"seconds": time.monotonic() - asked, "update_seconds": update_seconds}


def main() -> None:
    """Print both tables."""
    arguments = parser(__doc__ or "", 5)
    arguments.add_argument("--size", choices=sorted(PROFILES), default="117m")
    arguments.add_argument("--batch", type=int, default=4, help="windows in an update (default 4)")
    arguments.add_argument(
        "--block-seconds", type=float, default=60.0, help="between checkpoints (default 60)"
    )
    arguments.add_argument("--terminations", type=int, default=3)
    arguments.add_argument(
        "--folder", type=Path, help="where checkpoints are written (default: a temporary folder)"
    )
    chosen = arguments.parse_args()
    if chosen.threads:
        os.environ["GPT1_THREADS"] = str(chosen.threads)
    machine = read_machine()
    prepare(machine)
    size = named_size(chosen.size, chosen.batch, None, "bf16", 0.1)
    found: dict[str, Any] = {"size": chosen.size, "batch": chosen.batch, "machine": machine_facts()}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as temporary:
        (stall := Path(temporary, "stall")).mkdir()
        found["stall"] = measure_stall(size, machine, stall, chosen.rounds, chosen.block_seconds)
        ends = []
        for number in range(chosen.terminations):
            (folder := Path(temporary, f"ended-{number}")).mkdir()
            ends.append(measure_termination(chosen.size, chosen.batch, folder))
        found["terminations"] = ends
    result = found["stall"]
    print(
        table(
            ["checkpoint", "figure"],
            [
                [
                    "share of training time lost, round by round",
                    shown({key: 100 * value for key, value in result["share_lost"].items()}, 2)
                    + " %",
                ],
                ["the same of the medians", f"{100 * result['share_lost_of_medians']:.2f} %"],
                ["copy, for which training waits", shown(result["copy_seconds"], 3) + " s"],
                ["write beside the training", shown(result["write_seconds"], 1) + " s"],
                ["size", f"{result['checkpoint_bytes'] / 1e6:,.0f} MB"],
            ],
        )
    )
    print(
        table(
            ["SIGTERM to the end", "an update", "more than an update"],
            [
                [
                    f"{end['seconds']:.1f} s",
                    f"{end['update_seconds']:.1f} s",
                    f"{end['seconds'] - end['update_seconds']:.1f} s",
                ]
                for end in ends
            ],
        )
    )
    print(json.dumps(found["machine"]))
    if chosen.json:
        write_json(chosen.json, found)


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        machine_ = read_machine()
        prepare(machine_)
        train(
            named_size(sys.argv[2], int(sys.argv[3]), None, "bf16", 0.1),
            machine_,
            Path(sys.argv[4]),
        )
    else:
        main()
