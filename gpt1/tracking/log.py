"""The log of a run, with times: data/logs/<stage>/<name>.jsonl holds its curve, <name>.run.json
what it is, where it ran and how it ended.
"""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpt1.base.files import LOGS, parse_json, read_json, write_json, writing
from gpt1.base.machine import checkout, machine

RUNS = LOGS / "mlflow.json"  # which of MLflow's runs the last sync brought up to date
Point = dict[str, Any]  # {"time": seconds since 1970, "update": n, <name>: number or None, ...}


def log_path(stage: str, name: str) -> Path:
    """Return where the curve of a run lies; a name may hold slashes."""
    return LOGS / stage / f"{name}.jsonl"


def read_log(path: Path) -> tuple[dict[str, Any], list[Point]]:
    """Return facts and points of a log, without a line that a kill cut short; ({}, []) where there
    is no log.
    """
    try:
        facts = read_json(path.with_suffix(".run.json"))
        lines = path.read_bytes().splitlines(keepends=True)
        return facts, [parse_json(line) for line in lines if line.endswith(b"\n")]
    except (OSError, ValueError):
        return {}, []


class RunLog:
    """A curve on disk. Opened again with the same fingerprint it continues; with another it starts
    anew.
    """

    def __init__(self, stage: str, name: str, fingerprint: str) -> None:
        """Open or begin the log. Raises OSError."""
        self.path, self.started = log_path(stage, name), time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        before, self.points = read_log(self.path)
        if before.get("fingerprint") != fingerprint or before.get("status") == "FINISHED":
            before, self.points = {"time": time.time()}, []
        self.there = {(point["update"], key) for point in self.points for key in point}
        self.seconds_before = before.get("seconds", 0.0)
        self.facts: dict[str, Any] = {"stage": stage, "name": name, "fingerprint": fingerprint}
        self.facts |= {"time": before["time"], "machine": machine(), "checkout": checkout(Path())}
        with writing(self.path) as file:  # without a line that a kill cut short
            file.writelines(json.dumps(point) + "\n" for point in self.points)
        self.file = self.path.open("a", encoding="utf-8")
        self._write_facts("RUNNING")

    def append(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point with the time. A value that this update has already is skipped; None replaces
        what is not finite. Raises OSError.
        """
        fresh = {
            key: float(value) if math.isfinite(value) else None
            for key, value in values.items()
            if (update, key) not in self.there
        }
        if fresh:
            point = {"time": round(time.time(), 3), "update": update, **fresh}
            self.file.write(json.dumps(point) + "\n")
            self.file.flush()
            self.points.append(point)
            self.there |= {(update, key) for key in fresh}

    def close(self, status: str) -> None:
        """End the log and record how the run ended. Raises OSError."""
        self.file.close()
        self._write_facts(status)

    def _write_facts(self, status: str) -> None:
        seconds = round(self.seconds_before + time.monotonic() - self.started, 1)
        facts = self.facts | {"status": status, "seconds": seconds}
        write_json(self.path.with_suffix(".run.json"), facts)
