"""The finished trainings under data/, prepared for MLflow. Reads only."""

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, parse_json, read_json, stage_folder
from gpt1.params.profile import compose
from gpt1.params.schema import Params
from gpt1.tracking.log import Point, log_path, read_facts, reading

PRETRAINING = "(pre-training)"  # stands first among the tasks
Subject = tuple[str, str, str]  # task, system, seed
FOLLOWED = ("town", "bpe", "shard", "encode", "model", "pretrain")


class Training(NamedTuple):
    """A training, prepared for MLflow."""

    points: list[Point]  # of its curves
    fingerprint: str  # of parameters and inputs
    last: dict[str, float]  # value of each curve
    measured: dict[str, float]  # after so many updates
    updates: int
    began: float
    facts: dict[str, Any]  # of its log


def subject(stage: str, name: str) -> Subject:
    """Return task, system and seed of a name like `rte/seed-0`, `lstm-rte/seed-0` or
    `rte/layers-2/seed-0`.
    """
    what, *layers, seed = name.split("/")
    task, system = what, "".join(layers) or "full"
    if stage == "pretrain":
        task, system = PRETRAINING, what
    elif stage == "ablation":
        system, _, task = what.rpartition("-")
    return task, system, seed.removeprefix("seed-")


@cache
def _usual(profile: str) -> pd.Series:
    """Return a profile's values by dotted names; composed once for all runs."""
    return pd.json_normalize(compose(profile, [])).iloc[0]


def changes(params: Params, task: str, system: str, network: str) -> str:
    """Return what a training changes in its profile, as key=value, key=value."""
    try:
        others = _usual(params.profile)
    except UserError:
        return ""
    values = pd.json_normalize(params.model_dump(mode="json")).iloc[0]
    sections = {*FOLLOWED, network, "finetune" * (task != PRETRAINING)}
    rows = (["tasks", task], ["ablations", system])
    return ", ".join(
        f"{key}={value}"
        for key, value in values.items()
        if others.get(key) != value and not key.endswith("seeds")
        if key.partition(".")[0] in sections or key.split(".")[:2] in rows
    )


def finished_trainings(
    params: Params, outdated: Collection[str] = ()
) -> Iterator[tuple[str, str, Path]]:
    """Yield stage, name and folder of finished trainings, but those of `outdated` stages."""
    rows = params.ablations.items()
    stages = {
        *(
            f"pretrain@{name}-{seed}"
            for name in params.networks.pretrain
            for seed in params.pretrain.seeds
        ),
        *(f"finetune@{task}" for task in params.tasks),
        *(f"{name}@{task}" for name, row in rows for task in row.tasks),
        *(f"transfer@{task}" for task in params.transfer),
    }.difference(outdated)
    for kind in ("pretrain", "finetune", "ablation", "transfer"):
        for path in sorted(stage_folder(kind).rglob("seed-*/summary.json")):
            parts = path.parent.relative_to(stage_folder(kind)).parts
            name = "/".join(parts[kind == "finetune" :])  # without the group
            task, system, seed = subject(kind, name)
            verb = system if kind == "ablation" else kind
            item = f"{system}-{seed}" if kind == "pretrain" else task
            if f"{verb}@{item}" in stages:
                yield kind, name, path.parent


def read_training(stage: str, name: str, folder: Path) -> Training:
    """Read a training, with its log where that is of this curve. Raises UserError."""
    curve = folder / "curve.jsonl"
    with reading(folder, "dvc repro makes it again"):
        numbers = read_json(folder / "summary.json")
        values = [parse_json(line) for line in curve.read_text(encoding="utf-8").splitlines()]
        facts, updates = read_facts(log_path(stage, name)), numbers["updates"]
        if not values or facts.get("last") != values[-1]:
            facts = {}
        # a point's time: the run's start and its share of the seconds
        seconds = facts.get("seconds", 0.0)
        began = facts.get("time", curve.stat().st_mtime)
        points = [
            {"time": began + seconds * point["update"] / max(updates, 1), **point}
            for point in values
        ]
        # of a pre-training the curve ends with all that is measured
        best = numbers.get("best_dev_score")
        measured = {} if best is None else {"best_dev_score": round(float(best), 4)}
    last = {key: value for point in values for key, value in point.items() if key != "update"}
    measured |= {"seconds": seconds} if facts else {}
    mark = facts.get("fingerprint", fingerprint(values))
    return Training(points, mark, last, measured, updates, began, facts)


def reported_scores(outdated: Collection[str] = ()) -> dict[Subject, dict[str, float]]:
    """Return each training's score, from 0 to 1, in up-to-date reports."""
    paths = sorted(stage_folder("report").glob("*/scores.parquet"))
    with reading("a report", "gpt1 run makes it again"):
        every = [pd.read_parquet(path) for path in paths if path.parent.name not in outdated]
    if not every:
        return {}
    scores = pd.concat(every).query("update.isna() and seed.notna() and score.notna()")
    scores["score"] = (scores["score"] / 100).round(4)
    scores = scores.sort_values("n", ascending=False, kind="stable")
    rows = scores.groupby(["task", "system", "seed"])[["score"]].first().to_dict("index")
    return {(task, system, str(seed)): row for (task, system, seed), row in rows.items()}
