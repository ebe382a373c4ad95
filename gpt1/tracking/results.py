"""The finished trainings under data/, prepared for MLflow. Reads only."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, parse_json, read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.log import Point, log_path, read_log

PRETRAINING = "(pre-training)"  # stands first among the tasks
Subject = tuple[str, str, str]  # task, system, seed
MEASURED = ("best_dev_score", "heldout_loss", "heldout_perplexity", "heldout_word_perplexity")


class Training(NamedTuple):
    """A training's points with times, the score last; the fingerprint of its parameters and inputs,
    what was `measured` of its weights, and where it ran. `digest` stands for values, not for times.
    """

    points: list[Point]
    fingerprint: str
    digest: str
    measured: dict[str, float]
    facts: dict[str, Any]


def subject(stage: str, name: str) -> Subject:
    """Return what a training is of, from a stage's name like `rte/seed-0`, `lstm-rte/seed-0`,
    `rte/layers-2/seed-0`, or `transformer/seed-0`.
    """
    what, *layers, seed = name.split("/")
    task, system = what, "".join(layers) or "full"
    if stage == "pretrain":
        task, system = PRETRAINING, what
    elif stage == "ablation":
        system, _, task = what.rpartition("-")
    return task, system, seed.removeprefix("seed-")


def finished_trainings(params: Params) -> Iterator[tuple[str, str, Path]]:
    """Yield stage, name and folder of every finished training of these parameters' tasks."""
    for stage in ("pretrain", "finetune", "ablation", "transfer"):
        for path in sorted(stage_folder(stage).rglob("seed-*/summary.json")):
            parts = path.parent.relative_to(stage_folder(stage)).parts
            name = "/".join(parts[stage == "finetune" :])  # without the group
            task, system, _ = subject(stage, name)
            in_params = task in params.tasks and (stage != "ablation" or system in params.ablations)
            if in_params or stage == "pretrain":
                yield stage, name, path.parent


def read_training(stage: str, name: str, folder: Path, score: Point) -> Training:
    """Read a finished training, with the facts of its log where that is of this curve. Raises
    UserError where a file is damaged.
    """
    curve = folder / "curve.jsonl"
    try:
        numbers = read_json(folder / "summary.json")
        values = [parse_json(line) for line in curve.read_text(encoding="utf-8").splitlines()]
        facts, updates = read_log(log_path(stage, name)), numbers["updates"]
        if not values or facts.get("last") != values[-1]:
            facts = {}
        # a point's time: the run's start and its share of the seconds
        seconds = facts.get("seconds", 0.0) / max(updates, 1)
        began = facts.get("time", curve.stat().st_mtime)
        points = [{"time": began + seconds * point["update"], **point} for point in values]
        measured = {key: round(float(numbers[key]), 4) for key in MEASURED if key in numbers}
        end = {"time": began + seconds * updates, "update": updates}
        points += [end | measured | {"seconds": facts.get("seconds")}, end | score]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{folder} cannot be read ({error}); dvc repro makes it again") from None
    mark = facts.get("fingerprint", fingerprint(values))
    scored = f"{score['score']:.4f}" if score else ""
    digest = f"{fingerprint([values, measured])} {scored}"
    return Training(points, mark, digest, measured, facts)


def reported_scores(outdated: Collection[str] = ()) -> dict[Subject, Point]:
    """Return the score of each training, from 0 to 1, in reports that are not outdated, and when it
    was computed; of several columns the one with the most examples.
    """
    paths = sorted(stage_folder("report").glob("*/scores.parquet"))
    every = [
        pd.read_parquet(path).assign(time=path.stat().st_mtime)
        for path in paths
        if path.parent.name not in outdated
    ]
    if not every:
        return {}
    scores = pd.concat(every).query("update.isna() and seed.notna() and score.notna()")
    scores["score"] = (scores["score"] / 100).round(4)
    scores = scores.sort_values("n", ascending=False, kind="stable")
    rows = scores.groupby(["task", "system", "seed"])[["time", "score"]].first().to_dict("index")
    return {(task, system, str(seed)): row for (task, system, seed), row in rows.items()}
