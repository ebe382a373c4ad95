"""One update after another, whatever is trained: losses and gradients of a batch's micro-batches,
the step, the curve; with progress and a way to stop.
"""

import math
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from gpt1.base.errors import UserError
from gpt1.model.device import to_device
from gpt1.params.schema import Optimization
from gpt1.train import checkpoint, optim
from gpt1.train.ahead import Ahead
from gpt1.train.batches import Batch, Integers, moved, shares
from gpt1.train.checkpoint import Checkpoint, Position
from gpt1.train.engine import Engine, make_engine, on_any
from gpt1.train.launch import Machine
from gpt1.train.optim import Rates
from gpt1.train.outputs import Curve, ProgressBar
from gpt1.train.speed import NOT_COMPILED

Report = Callable[[int, Mapping[str, float]], None]
Draw = Callable[[int], Integers]  # the global batch of an update, a number a row
Select = Callable[[Integers], Tensor | Batch]  # what the objective takes of some of these rows
Item = TypeVar("Item")
SHOWN_ROWS = 16  # of the batch of an update that went wrong


def seed_for(*parts: int) -> int:
    """One 63-bit seed from whole numbers (a run's seed, what it is for, an update, ...); any change
    gives an unrelated seed.

    A 0 at the end counts for nothing, so number from 1 what comes last.
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


class MicroBatch(NamedTuple):
    """Rows of the global batch as the objective takes them, and their share of it."""

    share: float
    inputs: Any


def take_update(
    engine: Engine,
    micro_batches: Sequence[MicroBatch],
    dropout_rate: float,
    seed: int,
    update: int,
    rates: Rates,
    stop: "Stop",
) -> dict[str, float]:
    """One step on this process's micro-batches.

    Dropout is drawn by torch's generator, seeded by (seed, update, rank, number of the
    micro-batch): a resumed run draws the same, other processes or micro-batches draw other masks.
    Returns the global batch's losses, the gradient's norm before clipping and the learning rate;
    where one of them is not finite no step has been taken. Raises Interrupted where the run is to
    end, before its step.
    """
    engine.begin(len(micro_batches))
    sums: dict[str, torch.Tensor] = {}
    for number, (share, inputs) in enumerate(micro_batches, start=1):
        if stop.asked if engine.processes > 1 else stop.signal:
            raise Interrupted
        torch.manual_seed(seed_for(seed, update, engine.rank, number))
        losses = engine.forward(inputs, dropout_rate)
        engine.backward(losses["loss"], share)
        for name, loss in losses.items():
            sums[name] = (
                sums.get(name, torch.zeros((), device=engine.device)) + loss.detach() * share
            )
    flags = to_device(torch.tensor([bool(stop.signal), stop.due]), engine.device)
    told = engine.step(rates, torch.cat([torch.stack(list(sums.values())).double(), flags])).read()
    values, (asked, due, norm) = told[:-3], told[-3:]
    stop.asked, stop.due = asked > 0, due > 0
    if not all(map(math.isfinite, values)):
        norm = math.nan
    return dict(zip(sums, values, strict=True)) | {
        "learning_rate": rates.learning_rate,
        "gradient_norm": norm,
    }


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a GPU or this machine has no memory left."""
    return isinstance(
        error, torch.OutOfMemoryError | MemoryError
    ) or "DefaultCPUAllocator: can't allocate memory" in str(error)


class Interrupted(BaseException):
    """The run has been asked to end, and every process knows; no error, as KeyboardInterrupt is
    none.
    """


class Stop:
    """Whether Ctrl-C or a termination has asked the run to end: by `signal` this process, `asked`
    any process up to its last update; or an `error` of this process, of which the others learn
    alike.

    `due`: whether this process wants a checkpoint after the coming update, and then whether one
    does.
    """

    def __init__(self) -> None:
        self.signal, self.asked, self.due = 0, False, False
        self.error: UserError | None = None

    def fail(self, error: UserError) -> None:
        """End the run for an error, in all processes."""
        self.error, self.signal = error, self.signal or signal.SIGTERM

    def ask(self, number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        self.signal = number

    def between(self, engine: Engine, items: Iterable[Item], most: int) -> Iterator[Item]:
        """This process's items one after another. Raises Interrupted before the next one where any
        process has been asked to end.

        `most` is how many the process with the most has: all must ask each other equally often, or
        one would wait for ever.
        """
        own = iter(items)
        for _ in range(most):
            if on_any(engine, bool(self.signal)):
                raise Interrupted
            yield from islice(own, 1)

    def end(self, message: str) -> NoReturn:
        """End the process with one line: status 130 after Ctrl-C, 143 after a termination, 0 where
        it is another process that was asked and has the status; or with this one's error.
        """
        if self.error:
            raise self.error
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt(message)
        print(message, file=sys.stderr, flush=True)
        sys.exit(self.signal and 128 + signal.SIGTERM)


@contextmanager
def stoppable(stop: Stop) -> Iterator[None]:
    """Inside, Ctrl-C and termination are noted in `stop` instead of ending the process at once."""
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Trainer:
    """A training of `updates` updates in this process, from checkpoint `state` if there is one.

    `what`: `<stage> <name>`, for the screen; `warmup` is a share of the updates, `row_tokens` the
    most tokens of a row, `choices` what `speed_up` has chosen for the network.
    """

    def __init__(
        self,
        what: str,
        objective: nn.Module,
        recipe: Optimization,
        machine: Machine,
        *,
        seed: int,
        updates: int,
        warmup: float,
        row_tokens: int,
        choices: Mapping[str, str],
        draw: Draw,
        select: Select,
        curve: Path,
        report: Report,
        state: Checkpoint | None = None,
    ) -> None:
        self.recipe, self.seed, self.updates, self.warmup = recipe, seed, updates, warmup
        self.report, self.main, self.stop = report, machine.rank == 0, Stop()
        self.rows = min(machine.micro_batch_for(row_tokens), recipe.batch_size // machine.processes)
        shares(np.arange(recipe.batch_size), 0, machine.processes, 1)  # or refuse before any work
        # the engine, and in it the state to go on from
        self.engine = make_engine(objective, recipe, machine)
        self.choices = {**choices, "zero_stage": str(self.engine.stage)}
        self.draw, self.select, self.folder = draw, select, curve.parent
        self.ahead = Ahead(self._micro_batches, self.engine.device, updates)
        if state is not None:
            checkpoint.restore(state, self.engine)
        # what watches and tells
        first = state.position if state else Position(0, 0)
        self.tokens = 0  # of all updates so far
        self.curve = Curve(curve if self.main else None, first.curve_lines)
        self.what = what
        lacks = NOT_COMPILED if choices.get("compiled") == NOT_COMPILED else ""
        self.progress = ProgressBar(what, updates, first.update, self.main, lacks)

    def take_update(self, update: int) -> dict[str, float]:
        """The function above on this process's share of a global batch. Raises UserError where
        there is too little memory for it.
        """
        rates = optim.rates(self.recipe, update, self.updates, self.warmup)
        batches, recipe = self.ahead.take(update), self.recipe
        try:
            return take_update(
                self.engine, batches, recipe.dropout, self.seed, update, rates, self.stop
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(
                f"{self.what}: update {update}: {self.rows} rows at a time take more memory than"
                f" process {self.engine.rank} has ({type(error).__name__}: {str(error)[:120]}); set"
                f" GPT1_MICRO_BATCH={max(1, self.rows // 2)}, or have fewer stages side by side"
            ) from None

    def _micro_batches(self, update: int) -> list[MicroBatch]:
        """This process's share of an update's batch, on its device."""
        batch, engine = self.draw(update), self.engine
        places = np.arange(len(batch))
        parts = shares(places, engine.rank, engine.processes, self.rows)
        return [
            MicroBatch(len(part) / len(batch), moved(self.select(batch[part]), engine.device))
            for part in parts
        ]

    def log(
        self, update: int, tokens: int, values: Mapping[str, float], saved: Callable[[], str]
    ) -> None:
        """Show and note an update on so many tokens. Raises UserError, with what `saved` says, at
        the first that is not finite: it has taken no step, and the next would not be either.
        """
        strange = [f"{name} is {one}" for name, one in values.items() if not math.isfinite(one)]
        if strange:
            rows = self.draw(update).tolist()
            raise UserError(
                f"{self.what}: expected finite numbers at update {update}, found"
                f" {', '.join(strange)}, on the rows {', '.join(map(str, rows[:SHOWN_ROWS]))}"
                f"{', …' if len(rows) > SHOWN_ROWS else ''} of its data; {saved()}; lower the"
                " learning rate, lengthen the warm-up, or set precision to fp32 in params.yaml"
            )
        self.tokens += tokens
        self.progress.advance(update, tokens, values["loss"])
        if update % self.recipe.log_updates == 0 or update == self.updates:
            self.note(update, values)

    def note(self, update: int, values: Mapping[str, float]) -> None:
        """Put a point on the curve and into the report."""
        point = {"tokens": self.tokens, **values}
        self.curve.add({"update": update, **point})
        self.report(update, point)

    def speed(self) -> dict[str, Any]:
        """How fast it went and what was chosen, for a log."""
        return {
            **self.choices,
            "micro_batch": str(self.rows),
            "seconds": self.progress.seconds(),
            "tokens_per_second": self.progress.tokens_per_second(),
        }

    def close(self) -> None:
        """Leave the screen as it is, and the engine's memory to others."""
        self.ahead.close()
        self.progress.close()
        self.engine.close()
