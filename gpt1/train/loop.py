"""The loop of updates, whatever is trained."""

import math
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from gpt1.base.errors import UserError
from gpt1.model.lstm import Network
from gpt1.params.schema import Optimization
from gpt1.train import optim
from gpt1.train.batches import Batch, Integers, split_batch
from gpt1.train.checkpoint import Checkpoint, restore
from gpt1.train.engine import Engine, make_engine
from gpt1.train.launch import Machine
from gpt1.train.outputs import Curve, ProgressBar
from gpt1.train.speed import rows_that_fit, speed_up

Report = Callable[[int, Mapping[str, float]], None]
Inputs = Callable[[Integers, torch.device], Tensor | Batch]  # of these rows, for the objective
SHOWN_ROWS = 16  # of the batch of an update that went wrong


def seed_for(*parts: int) -> int:
    """Mix whole numbers (a seed, an update, ...) into one 63-bit seed. Count from 1: zeros at the
    end change nothing.
    """
    # SeedSequence mixes: seeds 1 and 2 are as far apart as any two. torch takes 63 bits.
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


class Interrupted(BaseException):
    """Every process knows that the run was asked to end. It is no error."""


class Stop:
    """The signal that asked this process to end; 0 for none."""

    signal = 0

    def check(self, engine: Engine, save: bool = False) -> bool:
        """Raise Interrupted where any process was asked to end; return whether any wants to `save`.
        All must call it equally often.
        """
        # A sum over processes: if one were to end alone, the others would wait for it for ever.
        flags = torch.tensor([float(self.signal), float(save)], device=engine.device)
        stop, save = (flag > 0 for flag in engine.total(flags).tolist())
        if stop:
            raise Interrupted
        return save

    def end(self, engine: Engine, message: str) -> NoReturn:
        """End the process with one line and status 130 or 143, 0 where only another process was
        asked.
        """
        engine.leave()  # together: the launcher ends all once one has ended
        if engine.rank == 0:
            print(message, file=sys.stderr)
        sys.exit(self.signal and 128 + self.signal)


class MicroBatch(NamedTuple):
    """Inputs of the objective, and their share of the global batch."""

    share: float
    inputs: Any


def take_update(
    engine: Engine,
    micro_batches: Sequence[MicroBatch],
    dropout: float,
    seed: int,
    update: int,
    rates: optim.Rates,
    stop: Stop,
) -> dict[str, float]:
    """Take one step on this process's micro-batches. Returns the global batch's losses, learning
    rate, and gradient norm before clipping. Raises Interrupted where the only process is to end.
    """
    sums: dict[str, Tensor] = {}
    for number, (share, inputs) in enumerate(micro_batches, start=1):
        if engine.processes == 1 and stop.signal:
            raise Interrupted
        # Seeded anew for each micro-batch: a resumed run draws the same without a random state.
        torch.manual_seed(seed_for(seed, update, engine.rank, number))
        losses = engine.forward(inputs, dropout)
        engine.backward(losses["loss"], share)
        for name, loss in losses.items():
            # Kept as tensors: to read a number here would make a GPU wait at each micro-batch.
            part = loss.detach() * share
            sums[name] = sums[name] + part if name in sums else part
    norm = engine.step(rates)
    # The one place of an update that waits for the device: all losses in a single exchange.
    values = engine.total(torch.stack(list(sums.values())).double()).tolist()
    return dict(zip(sums, values, strict=True)) | {
        "learning_rate": rates.learning_rate,
        "gradient_norm": norm.item(),
    }


class TakenUpdate(NamedTuple):
    """An update that was taken."""

    update: int  # counted from 1
    rows: Integers  # of the data
    values: dict[str, float]  # losses, learning rate, gradient norm
    save: bool  # whether a checkpoint is due


class Trainer:
    """A training in this process. A micro-batch has GPT1_MICRO_BATCH rows, else those of the
    checkpoint, else what fits.
    """

    def __init__(
        self,
        what: str,  # `<stage> <name>`, for the screen
        objective: nn.Module,
        network: Network,
        recipe: Optimization,
        machine: Machine,
        *,
        seed: int,
        updates: int,
        warmup: float,  # a share of the updates
        row_tokens: int,  # the most of a row
        compiled_tokens: int,  # of all rows, where these have one length
        inputs: Inputs,
        curve: Path,
        report: Report,
        state: Checkpoint | None = None,
    ) -> None:
        self.what, self.recipe, self.seed, self.report = what, recipe, seed, report
        self.updates, self.warmup, self.inputs = updates, warmup, inputs
        self.main, self.stop = machine.rank == 0, Stop()
        self.choices = speed_up(network, recipe, machine, compiled_tokens)
        # Rows of a batch for one process, cut into micro-batches that fit its memory.
        own = len(
            split_batch(np.arange(recipe.batch_size), 0, machine.processes, recipe.batch_size)[0]
        )
        rows = machine.micro_batch or (state and state.micro_batch)
        if not rows and machine.device == "cuda":
            gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
            # of the smallest: all processes take as many micro-batches
            rows = rows_that_fit(network, own, row_tokens, min(gpu.total_memory for gpu in gpus))
        self.micro_batch = min(rows or machine.micro_batch_for(row_tokens), own)
        self.micro_batches = str(self.micro_batch)  # for a log
        self.engine = make_engine(objective, recipe, machine, -(-own // self.micro_batch))
        self.first, self.tokens, lines = 0, 0, 0
        if state is not None:
            restore(state, self.engine)
            self.first, lines = state.position
        self.curve = Curve(curve if self.main else None, lines)
        self.progress = ProgressBar(what, updates, self.first, self.main)

    def halve(self, update: int) -> None:
        """Halve the micro-batch, and drop the gradients of an update that found too little
        memory.
        """
        self.engine.optimizer.zero_grad()
        self.micro_batch = -(-self.micro_batch // 2)
        self.micro_batches += f", {self.micro_batch} from update {update}"
        print(
            f"{self.what}: out of memory at update {update}: {self.micro_batch} rows at a time from"
            " here on, half as many; dropout draws other masks, and sums round otherwise",
            file=sys.stderr,
        )

    def log(self, step: TakenUpdate, tokens: int) -> None:
        """Show an update on so many tokens, and put every log_updates-th on the curve."""
        self.tokens += tokens
        self.progress.advance(step.update, tokens, step.values["loss"])
        # The last update is always a point, so that every curve ends where its run ended.
        if step.update % self.recipe.log_updates == 0 or step.update == self.updates:
            self.note(step.update, step.values)

    def note(self, update: int, values: Mapping[str, float]) -> None:
        """Put a point on the curve and into the report."""
        point = {"tokens": self.tokens, **values}
        self.curve.add({"update": update, **point})
        self.report(update, point)

    def speed(self) -> dict[str, Any]:
        """Return speed and choices."""
        return {
            **self.choices,
            "micro_batch": self.micro_batches,
            "seconds": self.progress.seconds(),
            "tokens_per_second": self.progress.tokens_per_second(),
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note Ctrl-C and termination in `stop`; at the end close progress bar and engine."""

        def ask(number: int, _frame: object) -> None:
            self.stop.signal = number

        # Noted here, answered between two updates, where weights, moments and curve agree.
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.progress.close()
            self.engine.close()


def training_updates(
    training: Trainer, batches: Iterable[Integers], due: Callable[[], bool] = bool
) -> Iterator[TakenUpdate]:
    """Take an update on each global batch of rows; `due` says whether this process wants a
    checkpoint. Raises Interrupted, UserError for a loss that is not finite, torch.OutOfMemoryError
    where rows cannot be halved.
    """
    engine, recipe = training.engine, training.recipe
    for update, rows in enumerate(batches, start=training.first + 1):
        # Before the update, all processes agree whether to stop and whether to save after it.
        save, values = training.stop.check(engine, due()), dict[str, float]()
        rates = optim.rates(recipe, update, training.updates, training.warmup)
        while not values:
            try:
                # this process's share of the batch, in micro-batches
                micro_batches = [
                    MicroBatch(len(part) / len(rows), training.inputs(part, engine.device))
                    for part in split_batch(
                        rows, engine.rank, engine.processes, training.micro_batch
                    )
                ]
                # the step
                values = take_update(
                    engine,
                    micro_batches,
                    recipe.dropout,
                    training.seed,
                    update,
                    rates,
                    training.stop,
                )
            except torch.OutOfMemoryError:
                # a single row has no half, and other processes count on the number of parts
                if engine.processes > 1 or training.micro_batch == 1:
                    raise
                training.halve(update)
        # A loss that is not finite names its rows: with them the update can be repeated by hand.
        shown = ", ".join(map(str, rows[:SHOWN_ROWS].tolist())) + ", …" * (len(rows) > SHOWN_ROWS)
        check_finite(values, f"{training.what}: update {update} (rows {shown} of the data)")
        yield TakenUpdate(update, rows, values, save)


def check_finite(values: Mapping[str, float], place: str) -> None:
    """Raise UserError, naming the place, where a value is not finite."""
    strange = [f"{name} is {value}" for name, value in values.items() if not math.isfinite(value)]
    if strange:
        raise UserError(
            f"{place}: expected finite numbers, found {', '.join(strange)}; lower the learning"
            " rate, lengthen the warm-up, or set precision to fp32 in params.yaml"
        )
