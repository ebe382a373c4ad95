"""What every update goes through, whatever is trained: its share of the batch, the step, the guard,
the curve.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gpt1.model.lstm import Network
from gpt1.params.schema import Optimization
from gpt1.train import checkpoint, optim
from gpt1.train.batches import Integers, shares
from gpt1.train.checkpoint import Position, State
from gpt1.train.curve import Curve
from gpt1.train.engine import make_engine
from gpt1.train.guards import Guard, MicroBatchSize, is_out_of_memory
from gpt1.train.launch import Machine
from gpt1.train.loop import MicroBatch, Progress, Report, Stop, take_update
from gpt1.train.speed import speed_up

Select = Callable[[Integers, Integers], Any]  # (batch, places in it) -> what the objective takes


class Trainer:
    """A training of `updates` updates in this process, from a checkpoint's `state` if there is one.

    `what`: `<stage> <name>`, for the screen; `warmup` is a share of the updates, `row_tokens` the
    most tokens of a row, `run_tokens` those of all updates where batches are of one shape, else 0;
    `members` gives the rows of an update's global batch, as places in its data.
    """

    def __init__(
        self,
        what: str,
        network: Network,
        objective: nn.Module,
        recipe: Optimization,
        machine: Machine,
        *,
        seed: int,
        updates: int,
        warmup: float,
        row_tokens: int,
        run_tokens: int,
        members: Callable[[int], Integers],
        curve: Path,
        report: Report,
        state: State | None = None,
    ) -> None:
        self.recipe, self.seed, self.updates, self.warmup = recipe, seed, updates, warmup
        self.report, self.main, self.stop = report, machine.rank == 0, Stop()
        self.micro_batch = MicroBatchSize(
            min(machine.micro_batch_for(row_tokens), recipe.batch_size // machine.processes)
        )
        shares(np.arange(recipe.batch_size), 0, machine.processes, 1)  # or refuse before any work
        # the engine, and in it the state to go on from
        self.choices = speed_up(network, recipe, machine, run_tokens)
        self.engine = make_engine(objective, recipe, machine)
        self.choices["zero_stage"] = str(self.engine.stage)
        if state is not None:
            checkpoint.restore(state, self.engine)
        # what watches and tells
        first = state.position if state else Position(0, 0, 0)
        self.tokens = 0  # of all updates so far
        self.curve = Curve(curve if self.main else None, first.curve_lines)
        self.guard = Guard(what, first.skipped_updates, members, self.main)
        self.progress = Progress(what, updates, first.update, self.main)

    def take_update(self, update: int, batch: Integers, select: Select) -> dict[str, float]:
        """loop.take_update on this process's share of a global batch, taken again from its start
        with half the rows where memory runs out: the same sums.

        Raises UserError where one row is too much already, or where other processes are in the
        midst of the same update.
        """
        rates = optim.rates(self.recipe, update, self.updates, self.warmup, self.guard.skipped)
        while True:
            places = shares(
                np.arange(len(batch)),
                self.engine.rank,
                self.engine.processes,
                self.micro_batch.rows,
            )
            try:
                return take_update(
                    self.engine,
                    [
                        MicroBatch(
                            part, len(part) / len(batch), select(batch, part).to(self.engine.device)
                        )
                        for part in places
                    ],
                    self.recipe.dropout,
                    self.seed,
                    update,
                    rates,
                    self.stop,
                )
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self.micro_batch.halve(self.engine, update, error)
            torch.cuda.empty_cache()  # once the error, which holds the update's tensors, is gone

    def log(self, update: int, tokens: int, values: Mapping[str, float]) -> bool:
        """Show and note an update on so many tokens; returns whether it took its step."""
        self.tokens += tokens
        self.progress.advance(update, tokens, values["loss"])
        stepped = self.guard.passes(update, values)
        if not stepped:
            self.note(update, {"skipped_updates": self.guard.skipped})
        elif update % self.recipe.log_updates == 0 or update == self.updates:
            self.note(update, values)
        return stepped

    def note(self, update: int, values: Mapping[str, float]) -> None:
        """Put a point on the curve and into the report."""
        point = {"tokens": self.tokens, **values}
        self.curve.add({"update": update, **point})
        self.report(update, point)

    def speed(self) -> dict[str, Any]:
        """How fast it went and what was chosen, for a log."""
        return {
            **self.choices,
            "micro_batch": str(self.micro_batch.rows),
            "seconds": self.progress.seconds(),
            "tokens_per_second": self.progress.tokens_per_second(),
        }

    def close(self) -> None:
        """Leave the screen as it is, and the engine's memory to others."""
        self.progress.close()
        self.engine.close()
