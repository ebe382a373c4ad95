"""The finished results under data/ as curves, last numbers and files: what tracking tells MLflow.
Reads only.
"""

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpt1.base.files import fingerprint, parse_json, read_json, sha256_file, stage_folder
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Params
from gpt1.tracking.log import (
    Point,
    log_path,
    machine_path,
    machine_points,
    read_log,
    read_objects,
    tags,
)
from gpt1.tracking.names import pretraining_name, variant_and_task


@dataclass(frozen=True)
class Group:
    """What the seeds of a task give together: a point for each number of layers (`update`), else
    one.
    """

    stage: str
    name: str
    digest: str
    points: list[Point]
    folder: Path


@dataclass(frozen=True)
class FinishedRun:
    """One finished run. `final`: its last numbers, for MLflow draws bars of such; `headline`: the
    few to compare runs by; `time` and `began`: seconds since 1970.
    """

    stage: str
    name: str
    fingerprint: str
    digest: str  # stands for the values, not for the times
    points: list[Point]
    final: dict[str, float]
    time: float
    folder: Path
    headline: dict[str, float] = field(default_factory=dict)
    artifacts: tuple[Path, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    began: float | None = None


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by dotted names; an empty object is a value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def dotted(values: Mapping[str, Any]) -> dict[str, str]:
    """Nested parameters as {"finetune.lambda_lm": "0.5", …}."""
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in flatten(values)
    }


def _numbers(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The finite numbers of a JSON object by dotted names."""
    return {
        key: float(value)
        for key, value in flatten(values, prefix)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def stage_params(params: Params, stage: str, name: str) -> dict[str, str]:
    """The parameters of one run by dotted names; a task's own row is laid over the section
    `finetune`.
    """
    tables = {"tasks", "sources", "variants", "transfer", "zero_shot"}
    values = params.model_dump(mode="json", exclude=tables)
    task, *parts = name.split("/")
    if stage not in ("finetune", "ablate", "transfer"):
        own = {"seed": int(parts[-1].removeprefix("seed-"))} if parts else {}
        return dotted(values | own)
    variant = None
    if stage == "ablate":
        variant, task = variant_and_task(task)
    recipe = finetune_recipe(params, task, variant).model_dump(mode="json")
    if stage == "transfer":
        recipe["transfer"] = int(parts[0].removeprefix("layers-"))
    return dotted(
        values
        | {
            "seed": int(parts[-1].removeprefix("seed-")),
            "finetune": recipe,
            "task": params.tasks[task].model_dump(mode="json"),
            "network": params.variants[variant].network if variant else "transformer",
        }
    )


def finished_results(params: Params) -> Iterator[FinishedRun]:
    """Every finished pre-training, fine-tuning and ablation (one for each seed), zero-shot curve,
    table and figure.

    Broken files raise OSError or ValueError.
    """
    for summary in sorted(stage_folder("pretrain").glob("*/seed-*/summary.json")):
        called = summary.parent.relative_to(stage_folder("pretrain")).as_posix()
        name = pretraining_name(params, called)
        numbers = read_json(summary)
        heldout = {key: value for key, value in numbers.items() if key.startswith("heldout_")}
        yield _trained(
            "pretrain",
            name,
            summary.parent,
            numbers,
            _numbers(heldout, f"pretrain.{name.replace('/', '.')}."),
        )
    for stage, name, folder, parts in _finetuned(params):
        for part, seeds in parts.items():
            for seed, numbers in seeds.items():
                place = Path(part, f"seed-{seed}")
                yield _trained(stage, f"{name}/{place}", folder / place, numbers, {})
    for scores in sorted(stage_folder("zero_shot").glob("*/seed-*/scores.json")):
        if read_json(scores)["sets"]:
            curve = scores.parent.relative_to(stage_folder("zero_shot")).as_posix()
            yield _zero_shot(scores, pretraining_name(params, curve))
    for metrics in sorted(stage_folder("report").glob("*/metrics.json")):
        yield _table(params, metrics)


def finished_groups(params: Params) -> Iterator[Group]:
    """The seeds of each finished fine-tuning, ablation and transfer together: mean, deviation and
    best of their scores on dev.
    """
    for stage, name, folder, parts in _finetuned(params):
        time = max(path.stat().st_mtime for path in folder.rglob("seed-*/summary.json"))
        points = []
        for part, seeds in parts.items():
            scores = [float(numbers["best_dev_score"]) for numbers in seeds.values()]
            point = {
                "time": time,
                "update": int(part.removeprefix("layers-") or 0),
                "seeds": len(scores),
                "dev_score.mean": statistics.fmean(scores),
                "dev_score.best": max(scores),
            }
            if len(scores) > 1:
                point["dev_score.sd"] = statistics.stdev(scores)
            points.append(point)
        yield Group(stage, name, fingerprint(parts), points, folder)


def _finetuned(params: Params) -> Iterator[tuple[str, str, Path, dict[str, dict[str, Any]]]]:
    """Stage, name, folder, and {part: {seed: numbers}} of each finished fine-tuning, ablation and
    transfer.
    """
    folders = [
        ("finetune", task, stage_folder("finetune", row.group, task))
        for task, row in params.tasks.items()
    ]
    ablated = [f"{name}-{task}" for name, row in params.variants.items() for task in row.tasks]
    folders += [("ablate", name, stage_folder("ablate", name)) for name in ablated]
    folders += [("transfer", name, stage_folder("transfer", name)) for name in params.transfer]
    for stage, name, folder in folders:
        parts: dict[str, dict[str, Any]] = {}
        for path in sorted(folder.rglob("seed-*/summary.json"), key=_numbers_in):
            part = path.parents[1].relative_to(folder).as_posix().strip(".")
            parts.setdefault(part, {})[path.parent.name.removeprefix("seed-")] = read_json(path)
        if parts:
            yield stage, name, folder, parts


def _numbers_in(path: Path) -> list[int]:
    """The numbers of layers and seeds in a path, to sort by."""
    return [int(number) for number in re.findall(r"(?:layers|seed)-(\d+)", path.as_posix())]


def _trained(
    stage: str, name: str, folder: Path, numbers: Mapping[str, Any], headline: dict[str, float]
) -> FinishedRun:
    """A run with a curve: with the times of its log where the log tells of this very curve."""
    curve, path = folder / "curve.jsonl", log_path(stage, name)
    values = [parse_json(line) for line in curve.read_text(encoding="utf-8").splitlines()]
    digest = fingerprint([values, _numbers(numbers)])
    header, logged = read_log(path)
    known = {(point["update"], key): value for point in logged for key, value in point.items()}
    pairs = [
        (known[point["update"], key], value)
        for point in values
        for key, value in point.items()
        if key != "update" and (point["update"], key) in known
    ]
    if not pairs or not all(_close(*pair) for pair in pairs):
        header, logged, known = {}, [], {}
    time = logged[-1]["time"] if logged else curve.stat().st_mtime
    unlogged: list[Point] = [
        {"time": time, "update": point["update"]}
        | {key: value for key, value in point.items() if (point["update"], key) not in known}
        for point in values
    ]
    began = float(header["time"]) if header else None
    system = [] if began is None else machine_points(read_objects(machine_path(stage, name)), began)
    return FinishedRun(
        stage,
        name,
        header.get("fingerprint", digest),
        digest,
        logged + unlogged + system,
        _numbers(numbers, "final/"),
        time,
        folder,
        headline,
        tags=tags(path) if logged else {},
        began=began,
    )


def _zero_shot(path: Path, name: str) -> FinishedRun:
    """A network's zero-shot scores over its pre-training, as a curve."""
    scores, time = read_json(path), path.stat().st_mtime
    points: list[Point] = [
        {"time": time, "update": shot["update"], "tokens": shot["tokens"], **shot["scores"]}
        for shot in scores["snapshots"]
    ]
    last = {one: points[-1][one] for one in scores["sets"]}
    return FinishedRun(
        "zero_shot",
        name,
        digest := fingerprint(scores),
        digest,
        points,
        {f"final/{one}": value for one, value in last.items()},
        time,
        path.parent,
        {f"zero_shot.{name.replace('/', '.')}.{one}": value for one, value in last.items()},
        (path,),
    )


def _table(params: Params, metrics: Path) -> FinishedRun:
    """A table or figure of the report: its numbers by dotted names, its files as artifacts."""
    folder = metrics.parent
    found = read_json(metrics)
    words = {key: value for key, value in flatten(found) if isinstance(value, str)}
    numbers = _numbers(found)
    files = tuple(
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    )
    digest = fingerprint({path.name: sha256_file(path) for path in files})
    means = {key: value for key, value in numbers.items() if key.endswith(".mean")}
    return FinishedRun(
        "report",
        folder.name,
        fingerprint([params.model_dump(mode="json"), digest]),  # of one set of parameters
        digest,
        [],
        numbers,
        metrics.stat().st_mtime,
        folder,
        {key.removesuffix(".mean"): value for key, value in means.items()},
        files,
        tags=words,
    )


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return math.isclose(one, other, rel_tol=1e-6) if numbers else bool(one == other)
