"""What a run leaves behind with times on it: data/logs/<stage>/<name>.jsonl, its curve, and
<name>.run.json, where it ran.
"""

import json
import math
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from gpt1.base.cores import cores, cpu_name
from gpt1.base.files import LOGS, parse_json, write_json

RUNS = LOGS / "mlflow.json"  # which of MLflow's runs the last sync brought up to date
FLOW_RUN_URL = "GPT1_FLOW_RUN_URL"  # set by a flow: the address of its page
SYSTEM = {
    "tokens_per_second": ("tokens_per_second", 1.0),
    "resident_bytes": ("resident_memory_megabytes", 1e-6),
    "free_disk_bytes": ("disk_available_megabytes", 1e-6),
    "gpu_bytes": ("gpu_memory_megabytes", 1e-6),
}
Point = dict[str, Any]  # {"time": seconds since 1970, "update": n, <name>: number or None, ...}


def log_path(stage: str, name: str) -> Path:
    """Where the curve of a run lies; a name may hold slashes."""
    return LOGS / stage / f"{name}.jsonl"


def machine_path(stage: str, name: str) -> Path:
    """Where the trainer writes a line a minute on how the machine does."""
    return LOGS / stage / f"{name}-machine.jsonl"


def machine_points(path: Path) -> list[Point]:
    """Those lines as points named as MLflow names a system's metrics; a line cut short by a kill is
    left out.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    return [point for line in lines if (point := machine_point(line))]


def machine_point(line: bytes) -> Point | None:
    """One such line; None where it is cut short."""
    try:
        value = parse_json(line)
        return {
            "time": value["time"],
            "update": value["update"],
            **{
                f"system/{name}": value[key] * scale
                for key, (name, scale) in SYSTEM.items()
                if key in value
            },
        }
    except (ValueError, KeyError, TypeError):
        return None


def tokens_by_update(points: Iterable[Point]) -> dict[int, float]:
    """How many tokens had been trained on at each update that says so: {update: tokens}."""
    return {
        int(point["update"]): float(point["tokens"])
        for point in points
        if isinstance(point.get("tokens"), int | float)
    }


def read_log(path: Path) -> tuple[dict[str, Any], list[Point]]:
    """Header and points of a log; ({}, []) where there is none. A line cut short by a kill ends the
    reading.
    """
    header: dict[str, Any] = {}
    points: list[Point] = []
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        return header, points
    for number, line in enumerate(lines):
        try:
            value = parse_json(line) if line.endswith(b"\n") else None
        except ValueError:
            break
        if (
            not isinstance(value, dict)
            or (number == 0 and "fingerprint" not in value)
            or (number and "update" not in value)
        ):
            break
        if number:
            points.append(value)
        else:
            header = value
    return header, points


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
        self.began = time.time()
        header, points = read_log(self.path)
        before = _read_facts(self.path)
        if header.get("fingerprint") != fingerprint or before.get("status") == "finished":
            header, points = (
                {
                    "stage": stage,
                    "name": name,
                    "fingerprint": fingerprint,
                    "time": self.began,
                    **more,
                },
                [],
            )
        self.last: dict[str, int] = {}
        for point in points:
            self.last.update(dict.fromkeys(point.keys() - {"time", "update"}, int(point["update"])))
        self.facts = header | {"machine": machine(), "checkout": checkout(Path())}
        if url := os.environ.get(FLOW_RUN_URL):
            self.facts["flow_run"] = url
        self.seconds_before = float(before.get("seconds", 0)) if points else 0.0
        kept = "".join(
            json.dumps(value) + "\n" for value in (header, *points)
        )  # without a line that a kill cut short
        if not points or kept.encode() != self.path.read_bytes():
            temporary = self.path.with_name(f".{self.path.name}.partial")
            temporary.write_text(kept, encoding="utf-8")
            temporary.replace(self.path)
        self.file = self.path.open("a", encoding="utf-8")
        self._write_facts("running")

    def append(self, update: int, values: Mapping[str, float]) -> None:
        """Add a point with the time; a value whose name already reached this update is skipped.
        Raises OSError.
        """
        fresh = {
            key: _number(value) for key, value in values.items() if update > self.last.get(key, -1)
        }
        if fresh:
            self.file.write(
                json.dumps({"time": round(time.time(), 3), "update": update, **fresh}) + "\n"
            )
            self.file.flush()
            self.last.update(dict.fromkeys(fresh, update))

    def close(self, status: str) -> None:
        """End the log and say how the run ended. Raises OSError."""
        self.file.close()
        self._write_facts(status)

    def _write_facts(self, status: str) -> None:
        seconds = round(self.seconds_before + time.time() - self.began, 1)
        write_json(
            self.path.with_suffix(".run.json"), self.facts | {"status": status, "seconds": seconds}
        )


def _number(value: float) -> float | None:
    """A plain number for JSON; None for what is not finite, which JSON cannot hold."""
    number = float(value)
    return number if math.isfinite(number) else None


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(path.with_suffix(".run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def tags(path: Path) -> dict[str, str]:
    """How and where the run of a log went, as flat words; empty where that was not written down."""
    facts = _read_facts(path)
    flat = {
        key: str(facts[key]) for key in ("profile", "status", "seconds", "flow_run") if key in facts
    }
    return flat | {
        key: str(value)
        for part in ("machine", "checkout")
        for key, value in facts.get(part, {}).items()
    }


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
    commit = _output("git", "-C", str(folder), "rev-parse", "HEAD")
    dirty = str(
        bool(_output("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"))
    ).lower()
    return {"git_commit": commit or "unknown", "dirty": dirty if commit else "unknown"}


def _output(*command: str) -> str:
    """What a command prints; nothing where it is absent, fails or takes more than five seconds."""
    if not shutil.which(command[0]):
        return ""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
