"""How a run was made: code, machine, time, data and licences."""

from datetime import timedelta
from pathlib import Path

import pandas as pd

from gpt1.base.files import read_json, stage_folder
from gpt1.base.machine import checkout, machine
from gpt1.params.schema import read_params
from gpt1.results.runs import RUN
from gpt1.tracking.results import finished_trainings, read_training

PARAMS = Path("params.yaml")
COMPOSED = "# Composed by: "


def trainings() -> pd.DataFrame:
    """Return the logs of the trainings that have results."""
    facts = [read_training(*training).facts for training in finished_trainings(read_params())]
    logs = pd.DataFrame(facts, columns=["time", "seconds", "machine", "checkout"]).dropna()
    return logs.sort_values("time", ignore_index=True)


def busy_seconds(logs: pd.DataFrame) -> float:
    """Return for how many seconds at least one training ran."""
    ends = logs["time"] + logs["seconds"]
    before = ends.cummax().shift(fill_value=0)
    return float((ends - before.clip(lower=logs["time"])).clip(lower=0).sum())


def facts() -> dict[str, str]:
    """Return commit, time, machine and versions; a packed run brings its own."""
    if Path(RUN).is_file():
        return {str(name): str(value) for name, value in read_json(Path(RUN))["facts"].items()}
    logs = trainings()
    lines, code, host = {}, checkout(Path()), machine()
    if len(logs):
        code, host = logs["checkout"].iloc[-1], logs["machine"].iloc[-1]
        time = timedelta(seconds=round(busy_seconds(logs)))
        lines["Time"] = f"{time} (h:min:s) of training on {host['cores']} cores"
    dirty = ", with uncommitted changes" if code["dirty"] == "true" else ""
    lines["Commit"] = code["git_commit"] + dirty
    lines["Machine"] = f"{host['cpu']}, {host['cores']} cores; GPU: {host['gpu']}"
    return lines | {"Versions": f"Python {host['python']}, torch {host['torch']}"}


def sources() -> pd.DataFrame:
    """Return origin and licence of every acquired source."""
    paths, named = stage_folder("acquire").glob("*/*/manifest.json"), read_params().sources
    rows = [read_json(path) for path in sorted(paths) if path.parent.name in named]
    manifests = pd.DataFrame(rows, columns=["source", "origin", "licence"])
    return manifests.set_index("source").rename_axis(None)


def commands(commit: str) -> list[str]:
    """Return the commands that give the same results in a clone."""
    composed = PARAMS.read_text(encoding="utf-8").partition("\n")[0].removeprefix(COMPOSED)
    start = f"git checkout {commit.partition(',')[0]}"
    return [
        start,
        "make setup && . .venv/bin/activate",
        composed,
        "# if it was edited: put the params.yaml below in its place",
        "gpt1 run",
        "gpt1 report",
    ]
