"""What a training writes as it goes on: its curve and its snapshots, which wait in memory where the
disk has no room, how far it is, and a log of how the machine does.
"""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import psutil
import torch
from torch import Tensor
from tqdm import tqdm

from gpt1.base.cores import nvidia_smi
from gpt1.base.errors import UserError
from gpt1.base.files import LOGS
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, save_state

FIRST_SECONDS = 10.0  # to the first line of the machine's log
MACHINE_SECONDS = 60.0  # between its lines
GPU = {  # what nvidia-smi is asked for, and what MLflow calls it
    "utilization.gpu": ("utilization_percentage", 1.0),
    "memory.used": ("memory_usage_megabytes", 2**20 / 1e6),
    "power.draw": ("power_usage_watts", 1.0),
}
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
            there = path.read_bytes().splitlines(keepends=True)[:lines]
            kept = [line for line in there if line.endswith(b"\n")]
            if len(kept) < lines:
                raise UserError(
                    f"{path}: expected the {lines} lines up to the last checkpoint, found"
                    f" {len(kept)}; delete the folder {path.parent} to start the run again"
                )
            self.bytes_ = sum(map(len, kept))
            os.truncate(path, self.bytes_)

    def add(self, point: dict[str, float]) -> None:
        """Append one point."""
        self.lines += 1
        if self.path is not None:
            already = self.waiting
            self.waiting += json.dumps(point, allow_nan=False) + "\n"
            try:
                self.write()
            except OSError as error:
                if not already:
                    _say(self.path, error, "its lines wait in memory")

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be; a part that went there is
        cut off by the next try.
        """
        if self.waiting and self.path is not None:
            with self.path.open("r+b") as file:
                file.truncate(self.bytes_)
                file.seek(self.bytes_)
                written = file.write(self.waiting.encode())
            self.bytes_, self.waiting = self.bytes_ + written, ""


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
        self.waiting[path] = weights = network.state_dict()
        try:
            self.write()
        except OSError as error:
            self.waiting[path] = {name: one.cpu().clone() for name, one in weights.items()}
            _say(path, error, "it waits in memory")

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be."""
        for path, weights in list(self.waiting.items()):
            save_state(path, weights, self.description)
            del self.waiting[path]


def _say(path: Path, error: OSError, what_waits: str) -> None:
    line = f"{path} cannot be written ({error.strerror}): {what_waits}, training goes on"
    print(line, file=sys.stderr, flush=True)


class MachineLog:
    """Appends, soon after the start and then once a minute, how the machine does: MLflow's own
    system metrics, by their names (mlflow.system_metrics), tokens a second since the line before,
    and this process's memory. It never fails, and no update waits for it: a thread asks nvidia-smi
    and writes. Without a path it does nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.since, self.tokens = path, time.monotonic(), 0
        self.wait, self.received, self.sent = FIRST_SECONDS, 0.0, 0.0
        with suppress(OSError, RuntimeError, psutil.Error):
            psutil.cpu_percent()  # since the call before, in this thread: the first gives 0
            self.received, self.sent = _network()

    def advance(self, update: int, tokens: int) -> None:
        """Note that `update` is done, on `tokens` tokens."""
        self.tokens += tokens
        seconds = time.monotonic() - self.since
        if self.path is None or seconds < self.wait:
            return
        with suppress(OSError, RuntimeError, psutil.Error):  # RuntimeError: no thread to be had
            memory, (received, sent) = psutil.virtual_memory(), _network()
            line = {
                "tokens_per_second": self.tokens / seconds,
                "process_memory_megabytes": psutil.Process().memory_info().rss / 1e6,
                "cpu_utilization_percentage": psutil.cpu_percent(),
                "system_memory_usage_megabytes": memory.used / 1e6,
                "system_memory_usage_percentage": 100 * memory.used / memory.total,
                "network_receive_megabytes": received - self.received,
                "network_transmit_megabytes": sent - self.sent,
            }
            at = {"time": round(time.time(), 1), "update": update}
            Thread(target=_append, args=(self.path, at, line), daemon=True).start()
        self.since, self.tokens, self.wait = time.monotonic(), 0, MACHINE_SECONDS


def _network() -> tuple[float, float]:
    """Megabytes received and sent since this machine started; none where it has no network."""
    counts = psutil.net_io_counters()
    return (counts.bytes_recv / 1e6, counts.bytes_sent / 1e6) if counts else (0.0, 0.0)


def _append(path: Path, at: dict[str, float], line: dict[str, float]) -> None:
    """Append a line to the machine's log, with the disk that it is on and the GPUs in use."""
    with suppress(OSError, RuntimeError):  # of torch, where a GPU is gone
        path.parent.mkdir(parents=True, exist_ok=True)
        disk = psutil.disk_usage(str(path.parent))
        line["disk_usage_percentage"] = disk.percent
        line["disk_available_megabytes"] = disk.free / 1e6
        gpus = _gpus()
        for field, (name, scale) in GPU.items() if gpus else ():
            for number, value in enumerate(nvidia_smi(field, gpus)):
                line[f"gpu_{number}_{name}"] = scale * value
        rounded = {key: round(value, 1) for key, value in line.items()}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(at | rounded) + "\n")


def _gpus() -> list[str]:
    """Identifiers of the GPUs that this process sees, in its order: nvidia-smi has another. None
    where it trains on the CPU.
    """
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return []
    devices = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [f"GPU-{device.uuid}" for device in devices]


class ProgressBar:
    """A bar with loss, speed and time left where stderr is a terminal; elsewhere a line every ten
    seconds. `what`: `<stage> <name>`; `lacks`: why it is slower than it could be.
    """

    def __init__(self, what: str, updates: int, done: int, show: bool, lacks: str = "") -> None:
        self.log = MachineLog(LOGS / f"{what.replace(' ', '/', 1)}-machine.jsonl" if show else None)
        self.what, self.updates, self.show, self.lacks = what, updates, show, lacks
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
        lacks = f", {self.lacks}" if self.lacks else ""
        return f"{self.tokens_per_second():,.0f} tokens/s{lacks}"

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def tokens_per_second(self) -> float:
        """Training tokens a second since the start, evaluation included."""
        return self.tokens / max(self.seconds(), 1e-9)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()
