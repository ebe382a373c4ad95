"""One update after another: draw the batch, losses and gradients of its micro-batches, step; with
progress and a way to stop.
"""

import math
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

import numpy as np
import torch
from tqdm import tqdm

from gpt1.base.errors import INTERRUPTED_STATUS
from gpt1.base.files import LOGS
from gpt1.model.dropout import Dropout
from gpt1.train.batches import Integers
from gpt1.train.engine import Engine, on_any, total_floats
from gpt1.train.machine_log import MachineLog
from gpt1.train.optim import Rates

Report = Callable[[int, Mapping[str, float]], None]
Item = TypeVar("Item")
QUIET_SECONDS = 10.0  # between lines where stderr is no terminal


def seed_for(*parts: int) -> int:
    """One 63-bit seed from whole numbers (a run's seed, what it is for, an update, ...); any change
    gives an unrelated seed.

    A 0 at the end counts for nothing, so number from 1 what comes last.
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


class MicroBatch(NamedTuple):
    """Numbers of these rows in the global batch [b], their share of it, and the rows themselves as
    the objective takes them.
    """

    rows_b: Integers
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

    Dropout follows (seed, update) and the rows' numbers in the global batch, whatever the processes
    and micro-batches. Returns the global batch's losses, the gradient's norm before clipping and
    the learning rate; where one of them is not finite no step has been taken. Raises Interrupted
    where the run is to end, before its step.
    """
    engine.begin(len(micro_batches))
    sums: dict[str, torch.Tensor] = {}
    for rows_b, share, inputs in stop.between(engine, micro_batches, len(micro_batches)):
        losses = engine.forward(inputs, Dropout(dropout_rate, seed_for(seed, update), rows_b))
        engine.backward(losses["loss"], share)
        for name, loss in losses.items():
            sums[name] = (
                sums.get(name, torch.zeros((), device=engine.device)) + loss.detach() * share
            )
    values = total_floats(engine, [float(value) for value in sums.values()])
    norm = engine.step(rates) if all(map(math.isfinite, values)) else math.nan
    return dict(zip(sums, values, strict=True)) | {
        "learning_rate": rates.learning_rate,
        "gradient_norm": norm,
    }


class Interrupted(BaseException):
    """The run has been asked to end, and every process knows; no error, as KeyboardInterrupt is
    none.
    """


class Stop:
    """Whether Ctrl-C or a termination has asked the run to end."""

    def __init__(self) -> None:
        self.signal = 0

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
        """End the process: status 130 after Ctrl-C, 143 after a termination, with one line."""
        if self.signal == signal.SIGTERM:
            print(message, file=sys.stderr, flush=True)
            sys.exit(128 + signal.SIGTERM)
        assert INTERRUPTED_STATUS == 128 + signal.SIGINT
        raise KeyboardInterrupt(message)


@contextmanager
def stoppable(stop: Stop) -> Iterator[None]:
    """Inside, Ctrl-C and termination are noted in `stop` instead of ending the process at once."""
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Progress:
    """A bar with loss, speed and time left where stderr is a terminal; elsewhere a line every ten
    seconds. `what`: `<stage> <name>`.
    """

    def __init__(self, what: str, updates: int, done: int, show: bool) -> None:
        self.log = MachineLog(LOGS / f"{what.replace(' ', '/', 1)}-machine.jsonl" if show else None)
        self.what, self.updates, self.show = what, updates, show
        self.first, self.tokens = done, 0
        self.started = self.spoken = time.monotonic()
        self.bar = tqdm(
            total=updates,
            initial=done,
            desc=what,
            unit="update",
            disable=not (show and sys.stderr.isatty()),
        )

    def advance(self, update: int, tokens: int, loss: float) -> None:
        """Note that `update` is done, on `tokens` tokens."""
        self.tokens += tokens
        self.log.advance(update, tokens)
        if not self.bar.disable:
            self.bar.set_postfix_str(
                f"loss {loss:.3f}, {self.tokens_per_second():,.0f} tokens/s", refresh=False
            )
            self.bar.update()
        elif self.show and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.spoken = time.monotonic()
            left = (self.spoken - self.started) / (update - self.first) * (self.updates - update)
            print(
                f"{self.what}: update {update} of {self.updates}, loss {loss:.3f},"
                f" {self.tokens_per_second():,.0f} tokens/s, {left / 60:.1f} min left",
                file=sys.stderr,
                flush=True,
            )

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def tokens_per_second(self) -> float:
        """Training tokens a second since the start, evaluation included."""
        return self.tokens / max(self.seconds(), 1e-9)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


class Tracker(Protocol):
    """Where points of a curve are shown while a run goes on."""

    def log(self, update: int, values: Mapping[str, float]) -> None:
        """Take a point."""

    def close(self, status: str = "finished") -> None:
        """The run is over."""


@contextmanager
def tracked(tracker: Tracker) -> Iterator[Report]:
    """Gives the function that reports points, and tells the tracker how the block ended."""
    try:
        yield tracker.log
    except BaseException as error:
        tracker.close("failed" if isinstance(error, Exception) else "interrupted")
        raise
    tracker.close("finished")
