"""A line a minute on how the machine does while it trains:
data/logs/<stage>/<name>-machine.jsonl.
"""

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path

import psutil
import torch

EVERY_SECONDS = 60.0


class MachineLog:
    """Appends time, update, tokens a second since the line before, memory and free disk; it never
    fails. Without a path it does nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.since, self.tokens = path, time.monotonic(), 0

    def advance(self, update: int, tokens: int) -> None:
        """Note that `update` is done, on `tokens` tokens."""
        self.tokens += tokens
        seconds = time.monotonic() - self.since
        if self.path is None or seconds < EVERY_SECONDS:
            return
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            line = {
                "time": round(time.time(), 1),
                "update": update,
                "tokens_per_second": round(self.tokens / seconds, 1),
                "resident_bytes": psutil.Process().memory_info().rss,
                "free_disk_bytes": shutil.disk_usage(self.path.parent).free,
            }
            if torch.cuda.is_available():
                line["gpu_bytes"] = torch.cuda.memory_reserved()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self.since, self.tokens = time.monotonic(), 0
