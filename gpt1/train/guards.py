"""What may go wrong with an update, and what is done about it: numbers that are not finite, spikes
of the loss, memory that runs out.
"""

import math
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from gpt1.base.errors import UserError
from gpt1.base.files import write_json
from gpt1.train.batches import Integers
from gpt1.train.engine import Engine

MOST_SKIPPED_IN_A_ROW = 5
SPIKE_UPDATES, SPIKE_DEVIATIONS, SPIKE_NATS = 100, 6.0, 1.0
SECONDS_BETWEEN_NOTES = 60.0
LETTERS_OF_AN_ERROR = 120


def is_spike(loss: float, before: Sequence[float]) -> bool:
    """Whether a loss lies more than six standard deviations, and a nat, above the mean of the last
    hundred before it.
    """
    if len(before) < SPIKE_UPDATES:
        return False
    mean = statistics.fmean(before)
    return loss > mean + max(SPIKE_NATS, SPIKE_DEVIATIONS * statistics.pstdev(before, mean))


class Guard:
    """Looks at the values of each update. One that is not finite took no step: it is counted, and
    the run stops after five in a row.

    The authors have no such guard. A skipped update is as though its batch had not been: weights,
    running averages and Adam's count of steps stay; the schedule and the data go on.
    """

    def __init__(self, what: str, skipped: int, show: bool) -> None:
        self.what, self.skipped, self.show = what, skipped, show
        # the updates just skipped, one after another
        self.row: list[tuple[int, dict[str, float]]] = []
        self.losses: deque[float] = deque(maxlen=SPIKE_UPDATES)
        self.spoken = -math.inf

    def passes(self, update: int, values: Mapping[str, float]) -> bool:
        """Whether the update took its step."""
        strange = {name: value for name, value in values.items() if not math.isfinite(value)}
        if strange:
            self.skipped += 1
            self.row.append((update, strange))
            self._say(
                f"{self.what}: update {update} skipped, its {_listed(strange)} ({self.skipped}"
                " skipped so far)"
            )
            return False
        self.row.clear()
        if (
            is_spike(values["loss"], self.losses)
            and time.monotonic() - self.spoken > SECONDS_BETWEEN_NOTES
        ):
            self.spoken = time.monotonic()
            self._say(
                f"{self.what}: the loss of update {update} is {values['loss']:.3f}, a spike: the"
                f" {SPIKE_UPDATES} before it have {statistics.fmean(self.losses):.3f} on average"
            )
        self.losses.append(values["loss"])
        return True

    def hopeless(self) -> bool:
        """Whether so many updates were skipped in a row that the next would be too."""
        return len(self.row) >= MOST_SKIPPED_IN_A_ROW

    def stop(self, path: Path, saved: str, members: Callable[[int], Integers]) -> UserError:
        """Write down in `path` which batches they were, of `members`, the rows of an update's
        global batch as places in its data; the error to raise. `saved` says which checkpoint there
        is.
        """
        updates = [
            {
                "update": update,
                "not_finite": {name: str(value) for name, value in strange.items()},
                "batch": members(update).tolist(),
            }
            for update, strange in self.row
        ]
        if self.show:
            with suppress(OSError):
                write_json(path, {"updates": updates})
        first, (last, strange) = self.row[0][0], self.row[-1]
        return UserError(
            f"{self.what}: updates {first} to {last} were skipped one after another, expected"
            f" finite numbers, found {_listed(strange)} at update {last}; {saved}; the rows of"
            f" their batches are in {path}: look at them and at the curve before, lower the"
            " learning rate, lengthen the warm-up, or set precision to fp32 in params.yaml"
        )

    def _say(self, line: str) -> None:
        if self.show:
            print(line, file=sys.stderr, flush=True)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} is {value}" for name, value in values.items())


class MicroBatchSize:
    """How many rows of a batch go through the network at once: `rows`; half as many once memory has
    run out.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def halve(self, engine: Engine, update: int, error: BaseException) -> None:
        """Half the rows from this update on, after an error of memory. Raises UserError where one
        row is too much already, or where other processes are in the midst of the same update.
        """
        found = f"{type(error).__name__}: {str(error)[:LETTERS_OF_AN_ERROR]}"
        if self.rows == 1:
            raise UserError(
                f"update {update}: one row at a time already takes more memory than there is"
                f" ({found}); fewer stages side by side leave it more"
            )
        if engine.processes > 1:
            raise UserError(
                f"update {update}: {self.rows} rows at a time take more memory than process"
                f" {engine.rank} has ({found}); set GPT1_MICRO_BATCH={self.rows // 2} or lower, and"
                " run the same command again"
            )
        self.rows //= 2
        print(
            f"update {update}: memory ran out; it is taken again with {self.rows} rows at a time,"
            f" as are those to come (GPT1_MICRO_BATCH={self.rows} does so from the start)",
            file=sys.stderr,
            flush=True,
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a GPU or this machine has no memory left."""
    return isinstance(
        error, torch.OutOfMemoryError | MemoryError
    ) or "DefaultCPUAllocator: can't allocate memory" in str(error)
