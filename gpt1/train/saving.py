"""Checkpoints while training goes on: training waits for a copy of the state in host memory, which
a thread then writes.
"""

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from gpt1.train import checkpoint
from gpt1.train.checkpoint import Position
from gpt1.train.engine import Engine, on_any

BACKGROUND_NICENESS = 10  # of the thread that writes: training comes first


class Record(Protocol):
    """A curve, or snapshots."""

    def write(self) -> None:
        """Put on disk what waits in memory. Raises OSError where that cannot be."""


class Saver:
    """Checkpoints of one run in `folder`, every so many minutes and at its end; every process has
    one, the first one writes.

    `records` are what must be on disk before a checkpoint is. A checkpoint that cannot be written
    is named on stderr; it never ends a training.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        code: Mapping[str, str],
        machine: Mapping[str, Any],
        minutes: float,
        saved: int,
        records: Sequence[Record],
    ) -> None:
        self.engine, self.folder, self.code = engine, folder, code
        self.machine, self.records = machine, records
        self.seconds, self.main = minutes * 60, engine.rank == 0
        self.saved, self.began = (
            saved,
            time.monotonic(),
        )  # the update of the last checkpoint, when the last was begun
        self.thread = ThreadPoolExecutor(1, "checkpoint", _lower_priority)
        self.writing: tuple[Position, Future[None]] | None = None
        self.copies: dict[str, Tensor] = {}
        self.said = ""  # what was said last of a checkpoint that could not be written in time

    def offer(self, position: Position) -> None:
        """Begin to write a checkpoint where the time has come and the one before is written."""
        if self.writing and self.writing[1].done():
            self._collect()
        late = self.main and time.monotonic() - self.began >= self.seconds
        if late and self.writing:
            self._say(
                f"the checkpoint due at update {position.update} waits: that of update"
                f" {self.writing[0].update} is still being written"
            )
        # all take part in giving the state
        if on_any(self.engine, late and not self.writing):
            self._begin(position)

    def finish(self, position: Position) -> str:
        """Wait for a checkpoint in progress, then write that of `position` if it is not there.
        Returns in words what there is.
        """
        self._collect()
        if on_any(self.engine, self.main and position.update > self.saved):
            weights, moments = self.engine.state()
            if self.main:
                if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
                    return (
                        "no checkpoint of it (weights that are not finite), the last one is of"
                        f" update {self.saved}"
                    )
                try:
                    self._write_records()
                    host = [
                        {name: value.detach().cpu().contiguous() for name, value in state.items()}
                        for state in (weights, moments)
                    ]
                    self._write(position, *host)
                    self.saved = position.update
                except OSError as error:
                    return (
                        f"no checkpoint of it ({_reason(error)}), the last one is of update"
                        f" {self.saved}"
                    )
        return "checkpoint saved" if position.update else "nothing to save yet"

    def close(self) -> None:
        """Wait for a checkpoint in progress; the thread is no more."""
        self._collect()
        self.thread.shutdown()

    def _begin(self, position: Position) -> None:
        weights, moments = self.engine.state()
        if not self.main:
            return
        self.began = time.monotonic()
        try:
            self._write_records()
        except OSError as error:
            self._failed(position, error)
            return
        host = [
            {name: self._copy(f"{kind}/{name}", tensor) for name, tensor in tensors.items()}
            for kind, tensors in (("weights", weights), ("moments", moments))
        ]
        if self.engine.device.type == "cuda":
            torch.cuda.synchronize(self.engine.device)
        self.writing = position, self.thread.submit(self._write, position, *host)

    def _copy(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor's values in memory of this machine that is kept from one checkpoint to the
        next.
        """
        if name not in self.copies:
            self.copies[name] = torch.empty(
                tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda
            )
        return self.copies[name].copy_(tensor.detach(), non_blocking=True)

    def _write_records(self) -> None:
        for record in self.records:
            record.write()

    def _write(
        self, position: Position, weights: dict[str, Tensor], moments: dict[str, Tensor]
    ) -> None:
        checkpoint.write_checkpoint(
            self.folder, position, weights, moments, self.code, self.machine
        )

    def _collect(self) -> None:
        """Wait for the checkpoint in progress, if there is one, and note what became of it."""
        if self.writing is None:
            return
        (position, future), self.writing = self.writing, None
        try:
            future.result()
        except OSError as error:
            self._failed(position, error)
        else:
            self.saved, self.said = position.update, ""

    def _failed(self, position: Position, error: OSError) -> None:
        self._say(
            f"checkpoint of update {position.update} not written: {_reason(error)}; training goes"
            f" on, next try in {self.seconds / 60:g} min"
        )

    def _say(self, line: str) -> None:
        """Say it unless the same kind of thing was said last."""
        kind = line.partition(" update ")[0]
        if self.main and kind != self.said:
            self.said = kind
            print(line, file=sys.stderr, flush=True)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _lower_priority() -> None:
    """Let this thread's work wait for that of others; only Linux gives a thread a priority of its
    own.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)
