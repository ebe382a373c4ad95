"""How a run was made: code, machine, time, data and licences."""

from pathlib import Path
from typing import Any

import pandas as pd

from gpt1.base.files import LOGS, read_json, sha256_file, stage_folder
from gpt1.base.units import duration, number
from gpt1.results.runs import LOCK, RUN
from gpt1.tracking.log import checkout, machine

PARAMS = Path("params.yaml")
COMPOSED = "# Composed by: "


def trainings() -> pd.DataFrame:
    """Every training that left a log: stage, name, its beginning and length in seconds."""
    found = [read_json(path) for path in sorted(LOGS.glob("*/**/*.run.json"))]
    columns = ["stage", "name", "time", "seconds", "machine", "checkout"]
    return pd.DataFrame(found, columns=columns).dropna()


def busy_seconds(logs: pd.DataFrame) -> float:
    """How long at least one training ran: side by side counts once, pauses not at all."""
    total, reached = 0.0, float("-inf")
    for begin, seconds in sorted(zip(logs["time"], logs["seconds"], strict=True)):
        total += max(0.0, begin + seconds - max(begin, reached))
        reached = max(reached, begin + seconds)
    return total


def duration_in_words() -> str:
    """How long a run's trainings took, of a packed run as it says; "" where that is not known."""
    if Path(RUN).is_file():
        return facts().get("Time", "")
    logs = trainings()
    if logs.empty:
        return ""
    return (
        f"{duration(busy_seconds(logs))} of training on {logs['machine'].iloc[-1]['cores']} cores"
    )


def facts() -> dict[str, str]:
    """Commit, machine, versions and digests, by name; of a packed run as it says."""
    if Path(RUN).is_file():
        return {str(name): str(said) for name, said in read_json(Path(RUN))["facts"].items()}
    here, logs = checkout(Path()), trainings()
    found = {"Commit": _commit(here)}
    where: dict[str, Any] = machine()
    if len(logs):
        last = logs.sort_values("time").iloc[-1]
        where = last["machine"]
        if (then := _commit(last["checkout"])) != found["Commit"]:
            found["Commit of the trainings"] = then
    if time := duration_in_words():
        found["Time"] = time
    found["Machine"] = f"{where['cpu']}, {where['cores']} cores; GPU: {where['gpu']}"
    found["Versions"] = f"Python {where['python']}, torch {where['torch']}"
    digests = [path for path in (PARAMS, Path(LOCK)) if path.is_file()]
    return found | {f"sha256 of {path}": sha256_file(path) for path in digests}


def sources() -> pd.DataFrame:
    """Every acquired source: origin, licence, files, size."""
    rows = {}
    for path in sorted(stage_folder("acquire").glob("*/*/manifest.json")):
        told = read_json(path)
        files = told["files"]
        rows[str(told["source"])] = {
            "origin": str(told["origin"]),
            "licence": str(told["licence"]),
            "files": str(len(files)),
            "bytes": number(sum(int(one["bytes"]) for one in files.values())),
        }
    return pd.DataFrame.from_dict(rows, "index", columns=["origin", "licence", "files", "bytes"])


def commands(commit: str) -> list[str]:
    """What to type, in a clone, for the same results."""
    composed = PARAMS.read_text(encoding="utf-8").partition("\n")[0].removeprefix(COMPOSED)
    start = f"git checkout {commit.partition(',')[0]}"
    return [start, "make setup && . .venv/bin/activate", composed, "gpt1 run", "gpt1 report"]


def _commit(known: dict[str, str]) -> str:
    if known["git_commit"] == "unknown":
        return "not under git"
    return known["git_commit"] + (", with uncommitted changes" if known["dirty"] == "true" else "")
