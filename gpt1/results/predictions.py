"""The answers of finished stages, example by example, as one long table."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpt1.base.files import fingerprint, read_arrays, read_json, stage_folder
from gpt1.params.recipes import pretraining_seed
from gpt1.params.schema import Params
from gpt1.results.tables import FULL, SEEDS, columns_of
from gpt1.sources.definitions import is_made_up
from gpt1.tasks.definitions import TASKS, scored_split, scored_weights
from gpt1.tasks.metrics import answers_of
from gpt1.tasks.rows import CLUSTERS
from gpt1.tracking.log import reading

TYPES = {
    **dict.fromkeys(("task", "system", "split", "subset"), "string"),
    **dict.fromkeys(("update", *SEEDS, "example", "cluster"), "Int64"),
    **dict.fromkeys(("label", "answer"), "float64"),
}
COLUMNS = [*TYPES, "logits"]
MADE_UP = "made up"


def predictions_of(params: Params, table: str) -> pd.DataFrame:
    """Return the predictions that a table scores: where test labels are public, of test by the
    weights chosen on dev, else of dev by the last weights. Raises UserError.
    """
    wanted = {column.task for column in columns_of(table)}
    if table == "table4":  # the GLUE score is over tasks of Table 2 too
        wanted |= {"mnli", "qnli", "rte"}
    if table == "figure2":
        wanted = set(params.transfer)
    tasks = [task for task in TASKS if task in wanted and task in params.tasks]
    frames = [frame for task in tasks for frame in _task(params, table, task)]
    if table == "figure2":
        frames += [frame for name in params.zero_shot for frame in _zero_shot(params, name)]
    return pd.concat(frames, ignore_index=True) if frames else _typed(pd.DataFrame())


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reindex(columns=COLUMNS).astype(TYPES)


def sources_of(params: Params, tasks: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return each task's source, "made up" or its release, and a fingerprint of its labelled
    rows.
    """
    made_up = [name for name, source in params.sources.items() if is_made_up(source.folder)]
    sources = dict.fromkeys(made_up, (MADE_UP, ""))
    for task in params.tasks.keys() & tasks:
        path = stage_folder("encode", params.tasks[task].group, task, "task.json")
        if path.is_file():
            with reading(path, f"run dvc repro -f encode@{task}"):
                about = read_json(path)
                splits = about["splits"].values()
                digests = [split["sha256"] for split in splits if split["labelled"]]
            source = MADE_UP if task in made_up else str(about.get("release") or "")
            sources[task] = source, fingerprint(digests)
    return sources


def _systems(params: Params, table: str, task: str) -> Iterator[tuple[str, Path, str, bool]]:
    """Yield the systems that answered a task: name, folder of seeds, stage, and whether it starts
    from our pre-training.
    """
    trained_here = params.pretrain.source == "train"
    folder = stage_folder("finetune", params.tasks[task].group, task)
    yield FULL, folder, f"finetune@{task}", trained_here
    if table == "figure2":
        for path in sorted(stage_folder("transfer", task).glob("layers-*")):
            yield path.name, path, f"transfer@{task}", trained_here
        return
    for ablation, row in params.ablations.items():
        if table == "table5" and task in row.tasks:
            moved = row.finetune.get("transfer") != "none"
            folder = stage_folder("ablation", f"{ablation}-{task}")
            yield ablation, folder, f"{ablation}@{task}", trained_here and moved
    for path in sorted(stage_folder("baselines", task).glob("*/")):
        yield path.name, path, "baselines", False


def _task(params: Params, table: str, task: str) -> Iterator[pd.DataFrame]:
    encoded = stage_folder("encode", params.tasks[task].group, task)
    if not encoded.is_dir():
        return
    with reading(encoded, f"run dvc repro -f encode@{task}"):
        about = read_json(encoded / "task.json")
        splits = dict.fromkeys(
            scored_split(column, about["splits"]) for column in TASKS[task].columns
        )
        rows = {split: _rows(encoded, split, about) for split in splits}
    for split, labelled in rows.items():
        weights = f"{split}/{scored_weights(split)}"
        for name, folder, stage, pretrained in _systems(params, table, task):
            for path in sorted(folder.glob("seed-*/logits.npz"), key=_seed):
                with reading(path, f"run dvc repro -f {stage}"):
                    logits = read_arrays(path, [weights])[weights]
                    if len(logits) != len(labelled) or not np.isfinite(logits).all():
                        raise ValueError(f"{weights}: expected {len(labelled)} rows, all finite")
                    seed = _seed(path)
                    frame = labelled.assign(
                        task=task,
                        system=name,
                        split=split,
                        pretraining_seed=pretraining_seed(params, seed) if pretrained else pd.NA,
                        seed=seed,
                        answer=answers_of(logits, about["target"]).astype(np.float64),
                        logits=list(logits.astype(np.float32)),
                    )
                    yield _typed(frame)


def _rows(encoded: Path, split: str, about: dict[str, Any]) -> pd.DataFrame:
    names = list(about.get("subsets") or ())
    arrays = read_arrays(encoded / f"{split}.npz", ["labels", *(["subset"] if names else [])])
    labels = arrays["labels"].astype(np.float64)
    return pd.DataFrame(
        {
            "example": np.arange(len(labels)),
            "cluster": read_arrays(encoded / CLUSTERS, [split])[split],
            "label": np.where(labels < 0, np.nan, labels),
            "subset": [names[number] for number in arrays["subset"]] if names else pd.NA,
        }
    )


def _seed(path: Path) -> int:
    return int(path.parent.name.removeprefix("seed-"))


def _zero_shot(params: Params, name: str) -> Iterator[pd.DataFrame]:
    for path in sorted(stage_folder("zero_shot").glob("*/seed-*/answers.npz")):
        network, seed = path.parents[1].name, _seed(path)
        if network not in params.networks.zero_shot or seed not in params.pretrain.seeds:
            continue  # of an earlier run
        with reading(path.parent, f"run dvc repro -f zero_shot@{network}-{seed}"):
            about = read_json(path.with_name("scores.json"))
            if name not in about["sets"]:
                continue
            split = about["sets"][name]["split"]
            updates = [snapshot["update"] for snapshot in about["snapshots"]]
            arrays = read_arrays(path, [f"{name}/{key}" for key in ("labels", *updates)])
            labels = arrays[f"{name}/labels"].astype(np.float64)
            shared = {
                "task": name,
                "system": network,
                "split": split,
                "label": labels,
                "pretraining_seed": seed,
                "example": np.arange(len(labels)),
                "cluster": read_arrays(stage_folder("prompt", name, CLUSTERS), [split])[split],
            }
            for update in updates:
                answers = arrays[f"{name}/{update}"].astype(np.float64)
                yield _typed(pd.DataFrame(shared | {"update": update, "answer": answers}))
