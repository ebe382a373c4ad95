"""The finished results under data/ as curves, last numbers and files: what tracking tells MLflow.
Reads only.
"""

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpt1.base.files import fingerprint, parse_json, read_json, sha256_file, stage_folder
from gpt1.params.recipes import finetune_recipe, transfer_recipe
from gpt1.params.schema import Params
from gpt1.tracking.log import Point, log_path, machine_path, machine_points, read_log, tags

COUNTS = {"final/parameters.total": "parameters"} | {
    f"final/{key}": key
    for key in (
        "updates",
        "tokens",
        "train_tokens",
        "heldout_tokens",
        "vocabulary_size",
        "best_update",
        "skipped_updates",
    )
}


@dataclass(frozen=True)
class Group:
    """What the seeds of a task give together: a point for each number of layers (`update`), else
    one.
    """

    stage: str
    name: str
    digest: str
    points: list[Point]
    folder: Path = Path()


@dataclass(frozen=True)
class Result:
    """One finished run. `final`: its last numbers, at update 0, for MLflow draws bars of such;
    `headline`: the few to compare runs by.
    """

    stage: str
    name: str
    fingerprint: str
    digest: str  # stands for the values, not for the times
    points: list[Point]
    final: Point
    headline: dict[str, float] = field(default_factory=dict)
    artifacts: tuple[Path, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    began: float | None = None  # seconds since 1970


def dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested parameters as {"finetune.lambda_lm": "0.5", …}."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= dotted(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat


def stage_params(params: Params, stage: str, name: str) -> dict[str, str]:
    """The parameters of one run by dotted names; a task's own row is laid over the section
    `finetune`.
    """
    values = params.model_dump(mode="json")
    tasks = values.pop("tasks")
    del values["sources"]
    for rows in ("variants", "ablate", "transfer", "zero_shot"):
        del values[rows]
    task, *parts = name.split("/")
    if stage in ("finetune", "ablate", "transfer"):
        variant = None
        if stage == "ablate":
            task, variant = params.ablate[task].task, params.ablate[task].variant
        recipe = (
            transfer_recipe(params, task)
            if stage == "transfer"
            else finetune_recipe(params, task, variant)
        )
        layers = {"transfer": int(parts[0].removeprefix("layers-"))} if stage == "transfer" else {}
        values |= {"seed": int(parts[-1].removeprefix("seed-"))}
        values |= {
            "finetune": recipe.model_dump(mode="json") | layers,
            "task": tasks[task],
            "network": params.variants[variant].network if variant else "transformer",
        }
    return dotted(values)


def finished_results(params: Params) -> Iterator[Result]:
    """Every finished pre-training, fine-tuning and ablation (one for each seed), zero-shot curve,
    table and figure.

    Broken files raise OSError or ValueError.
    """
    for summary in sorted(stage_folder("pretrain").glob("*/summary.json")):
        numbers = _numbers(read_json(summary))
        name = summary.parent.name
        headline = {
            f"pretrain.{name}.{key}": value
            for key, value in numbers.items()
            if key.startswith("heldout_")
        }
        yield _trained("pretrain", name, summary.parent / "curve.jsonl", numbers, headline)
    for stage, name, folder, parts in _finetuned(params):
        for part, seeds in parts.items():
            for seed, numbers in seeds.items():
                place = "/".join(filter(None, (part, f"seed-{seed}")))
                yield _trained(
                    stage, f"{name}/{place}", folder / place / "curve.jsonl", _numbers(numbers), {}
                )
    for scores in sorted(stage_folder("zero_shot").glob("*/scores.json")):
        if read_json(scores)["sets"]:
            yield _zero_shot(scores)
    for metrics in sorted(stage_folder("report").glob("*/metrics.json")):
        yield _table(params, metrics)


def finished_groups(params: Params) -> Iterator[Group]:
    """The seeds of each finished fine-tuning, ablation and transfer together: mean, deviation and
    best of their scores on dev.
    """
    for stage, name, folder, parts in _finetuned(params):
        points = []
        for part, seeds in parts.items():
            found = [float(numbers["best_dev_score"]) for numbers in seeds.values()]
            layers = int(part.removeprefix("layers-")) if part else 0
            points.append(
                {
                    "time": (folder / "summary.json").stat().st_mtime,
                    "update": layers,
                    "seeds": len(found),
                    "dev_score.mean": statistics.fmean(found),
                    "dev_score.best": max(found),
                    **({"dev_score.sd": statistics.stdev(found)} if len(found) > 1 else {}),
                }
            )
        yield Group(stage, name, fingerprint(parts), points, folder)


def _finetuned(params: Params) -> Iterator[tuple[str, str, Path, dict[str, dict[str, Any]]]]:
    """Stage, name, folder, and {part: {seed: numbers}} of each finished fine-tuning, ablation and
    transfer.
    """
    finetuned = {
        ("finetune", task): stage_folder("finetune", row.group, task)
        for task, row in params.tasks.items()
    }
    finetuned |= {
        (stage, name): stage_folder(stage, name)
        for stage, rows in (("ablate", params.ablate), ("transfer", params.transfer))
        for name in rows
    }
    for (stage, name), folder in finetuned.items():
        if (folder / "summary.json").is_file():
            summary = read_json(folder / "summary.json")
            yield stage, name, folder, summary.get("parts", {"": summary.get("seeds")})


def sizes(final: Point) -> tuple[Point, dict[str, str]]:
    """A run's last numbers in two: what was measured, and counts of what was done, as words: a bar
    of one count tells nobody anything.
    """
    counts = {
        key: value
        for key, value in final.items()
        if key.startswith("final/parameters.") or key in COUNTS
    }
    words = {COUNTS[key]: f"{value:.0f}" for key, value in counts.items() if key in COUNTS}
    return {key: value for key, value in final.items() if key not in counts}, words


def _trained(
    stage: str, name: str, curve: Path, numbers: dict[str, float], headline: dict[str, float]
) -> Result:
    """A run with a curve: with the times of its log where the log tells of this very curve."""
    values = [parse_json(line) for line in curve.read_text(encoding="utf-8").splitlines()]
    digest = fingerprint([values, numbers])
    path = log_path(stage, name)
    header, logged = read_log(path)
    known = {
        (point["update"], key): value
        for point in logged
        for key, value in point.items()
        if key != "time"
    }
    same = [
        _close(known[point["update"], key], value)
        for point in values
        for key, value in point.items()
        if key != "update" and (point["update"], key) in known
    ]
    if not (same and all(same)):
        header, logged, known = {}, [], {}
    time = logged[-1]["time"] if logged else curve.stat().st_mtime
    rest: list[Point] = [
        {
            "time": time,
            **{
                key: value
                for key, value in point.items()
                if key == "update" or (point["update"], key) not in known
            },
        }
        for point in values
    ]
    final: Point = {
        "time": time,
        "update": 0,
        **{f"final/{key}": value for key, value in numbers.items()},
    }
    began = float(header["time"]) if "time" in header else None
    system = (
        []
        if began is None
        else [
            point for point in machine_points(machine_path(stage, name)) if point["time"] >= began
        ]
    )
    return Result(
        stage,
        name,
        header.get("fingerprint", digest),
        digest,
        logged + rest + system,
        final,
        headline,
        tags=tags(path) if logged else {},
        folder=curve.parent,
        began=began,
    )


def _zero_shot(path: Path) -> Result:
    """A network's zero-shot scores over its pre-training, as a curve."""
    scores, network, time = read_json(path), path.parent.name, path.stat().st_mtime
    points: list[Point] = [
        {
            "time": time,
            "update": snapshot["update"],
            "tokens": snapshot["tokens"],
            **snapshot["scores"],
        }
        for snapshot in scores["snapshots"]
    ]
    digest = fingerprint(scores)
    final: Point = {
        "time": time,
        "update": 0,
        **{f"final/{name}": points[-1][name] for name in scores["sets"]},
    }
    headline = {f"zero_shot.{network}.{name}": points[-1][name] for name in scores["sets"]}
    return Result(
        "zero_shot", network, digest, digest, points, final, headline, (path,), folder=path.parent
    )


def _table(params: Params, metrics: Path) -> Result:
    """A table or figure of the report: its numbers by dotted names, its files as artifacts."""
    folder = metrics.parent
    numbers = _numbers(read_json(metrics))
    files = tuple(
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    )
    digest = fingerprint({path.name: sha256_file(path) for path in files})
    mark = fingerprint(
        [params.model_dump(mode="json"), digest]
    )  # a table belongs to one set of parameters
    headline = {
        key.removesuffix(".mean"): value for key, value in numbers.items() if key.endswith(".mean")
    }
    final: Point = {"time": metrics.stat().st_mtime, "update": 0, **numbers}
    return Result("report", folder.name, mark, digest, [], final, headline, files, folder=folder)


def _numbers(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The finite numbers of a JSON object by dotted names."""
    flat: dict[str, float] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _numbers(value, f"{prefix}{key}.")
        elif (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        ):
            flat[prefix + key] = float(value)
    return flat


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)
