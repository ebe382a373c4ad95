"""What a run leaves behind with times on it: data/logs/<stage>/<name>.jsonl, its curve, and
<name>.run.json, where it ran.
"""

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from gpt1.base.cores import cores, cpu_name
from gpt1.base.files import LOGS, parse_json, read_json, write_json, writing

RUNS = LOGS / "mlflow.json"  # which of MLflow's runs the last sync brought up to date
FLOW_RUN_URL = "GPT1_FLOW_RUN_URL"  # set by a flow: the address of its page
Point = dict[str, Any]  # {"time": seconds since 1970, "update": n, <name>: number or None, ...}


def log_path(stage: str, name: str) -> Path:
    """Where the curve of a run lies; a name may hold slashes."""
    return LOGS / stage / f"{name}.jsonl"


def machine_path(stage: str, name: str) -> Path:
    """Where the trainer writes a line a minute on how the machine does."""
    return LOGS / stage / f"{name}-machine.jsonl"


def objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of whole lines; a line cut short by a kill is left out."""
    for line in lines:
        with suppress(ValueError):
            if line.endswith(b"\n") and isinstance(value := parse_json(line), dict):
                yield value


def read_objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line; none where there is no such file."""
    try:
        return list(objects(path.read_bytes().splitlines(keepends=True)))
    except OSError:
        return []


def machine_points(lines: Iterable[Mapping[str, Any]], began: float) -> list[Point]:
    """The trainer's lines on the machine since `began` (seconds since 1970) as points, for MLflow's
    tab of system metrics.
    """
    return [
        {key if key in ("time", "update") else f"system/{key}": line[key] for key in line}
        for line in lines
        if line["time"] >= began
    ]


def tokens_by_update(points: Iterable[Point]) -> dict[int, float]:
    """How many tokens had been trained on at each update that says so: {update: tokens}."""
    return {
        int(point["update"]): float(point["tokens"])
        for point in points
        if isinstance(point.get("tokens"), int | float)
    }


def read_log(path: Path) -> tuple[dict[str, Any], list[Point]]:
    """Header and points of a log; ({}, []) where there is none."""
    header, *points = read_objects(path) or [{}]
    return (header, points) if "fingerprint" in header else ({}, [])


class RunLog:
    """A curve on disk. Opened again under the same fingerprint it goes on where it stopped; under
    another it starts anew.
    """

    def __init__(self, stage: str, name: str, fingerprint: str, more: Mapping[str, Any]) -> None:
        """Open or begin the log; `more` goes into the header and the JSON file beside it. Raises
        OSError.
        """
        self.path = log_path(stage, name)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.began, self.started = time.time(), time.monotonic()
        header, points = read_log(self.path)
        before = _read_facts(self.path)
        if header.get("fingerprint") != fingerprint or before.get("status") == "finished":
            header = {"stage": stage, "name": name, "fingerprint": fingerprint, "time": self.began}
            header, points = header | dict(more), []
        self.last: dict[str, int] = {}
        for point in points:
            self.last |= dict.fromkeys(point.keys() - {"time", "update"}, int(point["update"]))
        self.facts = header | {"machine": machine(), "checkout": checkout(Path())}
        if url := os.environ.get(FLOW_RUN_URL):
            self.facts["flow_run"] = url
        self.seconds_before = float(before.get("seconds", 0)) if points else 0.0
        with writing(self.path) as file:  # without a line that a kill cut short
            file.writelines(json.dumps(value) + "\n" for value in (header, *points))
        self.file = self.path.open("a", encoding="utf-8")
        self._write_facts("running")

    def append(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point with the time; a value whose name already reached this update is skipped,
        and None stands for what is not finite. Raises OSError.
        """
        fresh = {
            key: float(value) if math.isfinite(value) else None
            for key, value in values.items()
            if update > self.last.get(key, -1)
        }
        if fresh:
            point = {"time": round(time.time(), 3), "update": update, **fresh}
            self.file.write(json.dumps(point) + "\n")
            self.file.flush()
            self.last |= dict.fromkeys(fresh, update)

    def close(self, status: str) -> None:
        """End the log and say how the run ended. Raises OSError."""
        self.file.close()
        self._write_facts(status)

    def _write_facts(self, status: str) -> None:
        seconds = round(self.seconds_before + time.monotonic() - self.started, 1)
        write_json(
            self.path.with_suffix(".run.json"), self.facts | {"status": status, "seconds": seconds}
        )


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = read_json(path.with_suffix(".run.json"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def tags(path: Path) -> dict[str, str]:
    """How and where the run of a log went, as flat words; empty where that was not written down."""
    facts = _read_facts(path)
    flat = {key: facts[key] for key in ("profile", "status", "seconds", "flow_run") if key in facts}
    flat |= facts.get("machine", {}) | facts.get("checkout", {})
    return {key: str(value) for key, value in flat.items()}


def machine() -> dict[str, str]:
    """CPU, cores, GPU and versions, as words."""
    gpu = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = "none"
    return {
        "cpu": cpu_name(),
        "cores": str(cores()),
        "gpu": ", ".join(gpu.splitlines()) or "none",
        "python": platform.python_version(),
        "torch": torch,
    }


def checkout(folder: Path) -> dict[str, str]:
    """The git commit of a folder and whether tracked files differ from it, as words."""
    git = ("git", "-C", str(folder))
    if not (commit := _output(*git, "rev-parse", "HEAD")):
        return {"git_commit": "unknown", "dirty": "unknown"}
    changes = _output(*git, "status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "dirty": "true" if changes else "false"}


def _output(*command: str) -> str:
    """What a command prints; nothing where it is absent, fails or takes more than five seconds."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
