"""What a training writes as it goes on."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

from torch import nn
from tqdm import tqdm

from gpt1.base.errors import UserError

QUIET_SECONDS = 10.0  # between lines where stderr is no terminal


def refuse_full_disk(folder: Path, network: nn.Module, copies: int) -> None:
    """Raise UserError where the disk has no room for so many copies of a network."""
    needed = copies * sum(weight.nbytes for weight in network.parameters())
    if (free := shutil.disk_usage(folder).free) < needed:
        raise UserError(
            f"{folder}: expected {needed / 1e9:,.2f} GB free, for a checkpoint and what a training"
            f" leaves, found {free / 1e9:,.2f} GB; make room and run the same command again"
        )


class Curve:
    """Appends JSON lines to a file after its first `lines`; without a path it only counts. Raises
    UserError where fewer are there.
    """

    def __init__(self, path: Path | None, lines: int) -> None:
        self.path, self.lines = path, lines
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            written = path.read_bytes().splitlines(keepends=True)[:lines]
            complete = [line for line in written if line.endswith(b"\n")]
            if len(complete) < lines:
                raise UserError(
                    f"{path}: expected the {lines} lines up to the last checkpoint, found"
                    f" {len(complete)}; delete the folder {path.parent} to start the run again"
                )
            # Points after the checkpoint are of updates that will be taken again.
            os.truncate(path, sum(map(len, complete)))

    def add(self, point: dict[str, float]) -> None:
        """Append one point. Raises OSError."""
        self.lines += 1
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(point, allow_nan=False) + "\n")


class ProgressBar:
    """Shows loss, speed and time left: a bar on a terminal, else a line every ten seconds."""

    def __init__(self, what: str, updates: int, done: int, show: bool) -> None:
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
        """Count `update`, on so many tokens."""
        self.tokens += tokens
        if not self.bar.disable:
            self.bar.set_postfix_str(f"loss {loss:.3f}, {self._speed()}", refresh=False)
            self.bar.update()
        elif self.show and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.spoken = time.monotonic()
            left = (self.spoken - self.started) / (update - self.first) * (self.updates - update)
            print(
                f"{self.what}: update {update} of {self.updates}, loss {loss:.3f},"
                f" {self._speed()}, {left / 60:.1f} min left",
                file=sys.stderr,
            )

    def _speed(self) -> str:
        return f"{self.tokens_per_second():,.0f} tokens/s"

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def tokens_per_second(self) -> float:
        """Return the training tokens a second."""
        return self.tokens / max(self.seconds(), 1e-9)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()
