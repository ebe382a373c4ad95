"""What a training writes as it goes on: its curve and its snapshots, which wait in memory where the
disk has no room, and how far it is.
"""

import json
import os
import sys
import time
from pathlib import Path

from torch import Tensor
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, save_state

QUIET_SECONDS = 10.0  # between lines where stderr is no terminal


class Curve:
    """Appends one JSON object a line to a file; only the first `lines` of what is there already are
    kept. Without a path it only counts.

    Raises UserError where fewer than `lines` lines are there.
    """

    def __init__(self, path: Path | None, lines: int) -> None:
        self.path, self.lines, self.waiting, self.bytes_ = path, lines, "", 0
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
            self.bytes_ = sum(map(len, complete))
            # Points after the checkpoint are of updates that will be taken again.
            os.truncate(path, self.bytes_)

    def add(self, point: dict[str, float]) -> None:
        """Append one point."""
        self.lines += 1
        # Said once: a full disk would fill the screen too.
        already = self.waiting
        self.waiting += json.dumps(point, allow_nan=False) + "\n"
        try:
            self.write()
        except OSError as error:
            if not already:
                _say_waiting(self.path, error)

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be; a part that went there is
        cut off by the next try.
        """
        if self.waiting and self.path is not None:
            with self.path.open("r+b") as file:
                file.truncate(self.bytes_)
                file.seek(self.bytes_)
                written = file.write(self.waiting.encode())
            self.bytes_ += written
        self.waiting = ""


class Snapshots:
    """Writes a network's weights along its pre-training (paper, Figure 2, right) under `folder`:
    outputs, so none may be missing in the end.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        self.folder, self.description = folder, description
        self.waiting: dict[Path, dict[str, Tensor]] = {}

    def take(self, update: int, network: Network) -> None:
        """Write the network's weights as they are after `update`."""
        path = self.folder / f"{update:08d}.safetensors"
        self.waiting[path] = {
            # A copy, for the next update changes the weights in place.
            name: tensor.detach().to("cpu", copy=True)
            for name, tensor in network.state_dict().items()
        }
        try:
            self.write()
        except OSError as error:
            _say_waiting(path, error)

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be."""
        for path, weights in list(self.waiting.items()):
            save_state(path, weights, self.description)
            del self.waiting[path]


def _say_waiting(path: Path | None, error: OSError) -> None:
    line = f"{path} cannot be written ({error.strerror}): it waits in memory, training goes on"
    print(line, file=sys.stderr, flush=True)


class ProgressBar:
    """A bar with loss, speed and time left where stderr is a terminal; elsewhere a line every ten
    seconds. `what`: `<stage> <name>`.
    """

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
        """Note that `update` is done, on `tokens` tokens."""
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
                flush=True,
            )

    def _speed(self) -> str:
        return f"{self.tokens_per_second():,.0f} tokens/s"

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def tokens_per_second(self) -> float:
        """Training tokens a second since the start, evaluation included."""
        return self.tokens / max(self.seconds(), 1e-9)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()
