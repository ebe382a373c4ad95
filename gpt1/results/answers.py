"""What fine-tuning left of a task: labels and logits of its evaluation splits, checked against one
another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, read_json, stage_folder
from gpt1.params.recipes import finetune_recipe, pretraining_seed
from gpt1.params.schema import Finetune, Params
from gpt1.tasks.clusters import CLUSTERS

Array = npt.NDArray[Any]
FULL = "full"
BASELINES = "baselines"  # the stage, and its folder


@dataclass(frozen=True)
class Answers:
    """A task's encoded description, the folders of its labels and logits, its seeds, the stage that
    fine-tuned it, and which system that was.
    """

    task: str
    description: Mapping[str, Any]  # task.json
    encoded: Path
    finetuned: Path
    seeds: tuple[int, ...]
    stage: str  # as dvc names it: finetune@rte
    system: str  # FULL, a variant of params.yaml, layers-<n> transferred, or a baseline
    pretraining_seeds: Mapping[int, int | None]  # by fine-tuning seed; None: not our pre-training
    by_seed: bool = False  # whether dvc has a stage for each seed

    def _examples(self, split: str) -> int:
        if split not in self.description["splits"]:
            raise UserError(
                f"{self.encoded / 'task.json'}: expected the split {split}, found"
                f" {', '.join(self.description['splits'])}; bring it to data/raw/{self.task} and"
                " run dvc repro"
            )
        return int(self.description["splits"][split]["examples"])

    def labels(self, split: str, subset: str | None) -> tuple[Array, Array]:
        """Labels [n] of the rows of `subset` (all for None), and which rows of the split they are
        [n]. Raises UserError.
        """
        path = self.encoded / f"{split}.npz"
        again = f"encode it again with dvc repro -f encode@{self.task}"
        arrays = _arrays(path, ("labels", "subset") if subset else ("labels",), again)
        labels, examples = arrays["labels"], self._examples(split)
        if labels.shape != (examples,):
            raise UserError(
                f"{path}: expected {examples} labels, as task.json says, found"
                f" {' x '.join(map(str, labels.shape))}; {again}"
            )
        limit = self.description["outputs"]
        if (
            labels.dtype.kind not in "iuf"
            or not np.isfinite(labels).all()
            or (examples and (labels.min() < 0 or labels.max() > limit - 1))
        ):
            raise UserError(
                f"{path}: expected a label from 0 to {limit - 1} for every row, found others;"
                f" {again}"
            )
        rows = np.arange(len(labels))
        if subset:
            if arrays["subset"].shape != labels.shape or subset not in self.description.get(
                "subsets", ()
            ):
                raise UserError(
                    f"{path}: expected the subset {subset} and one entry of subsets a row, found"
                    f" others; {again}"
                )
            rows = rows[arrays["subset"] == list(self.description["subsets"]).index(subset)]
        if not len(rows):
            raise UserError(
                f"{path}: expected at least one row{f' of {subset}' if subset else ''} to score,"
                f" found none; {again}"
            )
        return labels[rows], rows

    def clusters(self, split: str) -> Array:
        """Numbers [n] of the rows of a split, equal for those that belong together. Raises
        UserError.
        """
        path = self.encoded / CLUSTERS
        again = f"encode it again with dvc repro -f encode@{self.task}"
        clusters, rows = _arrays(path, (split,), again)[split], self._examples(split)
        if clusters.shape != (rows,):
            raise UserError(
                f"{path}: {split}: expected {rows} numbers, as task.json says, found"
                f" {' x '.join(map(str, clusters.shape))}; {again}"
            )
        return clusters

    def logits(self, seed: int, split: str, weights: str) -> Array:
        """Logits [rows of the split, outputs] of one seed by the weights "best" (on dev) or "last".
        Raises UserError.
        """
        path = self.finetuned / f"seed-{seed}" / "logits.npz"
        verb = "fit" if self.stage == BASELINES else "fine-tune"
        stage = f"{self.stage}-seed-{seed}" if self.by_seed else self.stage
        again = f"{verb} it again with dvc repro -f {stage}"
        logits = _arrays(path, (f"{split}/{weights}",), again)[f"{split}/{weights}"]
        shape = (self._examples(split), self.description["outputs"])
        if logits.shape != shape:
            raise UserError(
                f"{path}: {split}/{weights}: expected {shape[0]} rows x {shape[1]} outputs, as the"
                f" labels have, found {' x '.join(map(str, logits.shape))}; {again}"
            )
        if logits.dtype.kind != "f" or not np.isfinite(logits).all():
            row = int(np.argwhere(~np.isfinite(logits))[0][0])
            raise UserError(
                f"{path}: {split}/{weights}: expected finite logits, found {logits[row].max()} in"
                f" row {row}; lower finetune.learning_rate, or {again}"
            )
        return logits


def read_answers(params: Params, task: str) -> Answers:
    """Find what `encode` and `finetune` wrote of a task. Raises UserError where either is missing
    or broken.
    """
    folder = stage_folder("finetune", params.tasks[task].group, task)
    return _answers(params, task, folder, finetune_recipe(params, task), f"finetune@{task}", FULL)


def ablation_answers(params: Params, variant: str, task: str) -> Answers:
    """What `ablate` wrote of a task by a variant of params.variants (Table 5). Raises UserError
    where it is missing or broken.
    """
    name = f"{variant}-{task}"
    return _answers(
        params,
        task,
        stage_folder("ablate", name),
        finetune_recipe(params, task, variant),
        f"{variant}@{task}",
        variant,
    )


def transfer_answers(params: Params, task: str, layers: int) -> Answers:
    """What `transfer` wrote of a task with so many layers transferred (Figure 2, left), over the
    seeds of the transfer; all layers are the ordinary fine-tuning.

    Raises UserError where it is missing or broken.
    """
    if layers == params.model.layers:
        return replace(read_answers(params, task), seeds=finetune_recipe(params, task).seeds)
    name, recipe = f"layers-{layers}", finetune_recipe(params, task)
    folder = stage_folder("transfer", task, name)
    return _answers(params, task, folder, recipe, f"transfer@{task}", name)


def baseline_answers(params: Params, task: str, system: str) -> Answers:
    """What `baselines` wrote of a task by a system of params.baselines, on the same rows as the
    networks'. It has one fit, as seed 0. Raises UserError where the task's description is missing
    or broken.
    """
    return replace(
        read_answers(params, task),
        finetuned=stage_folder(BASELINES, task, system),
        seeds=(0,),
        stage=BASELINES,
        system=system,
        pretraining_seeds={0: None},
        by_seed=False,
    )


def _answers(
    params: Params, task: str, finetuned: Path, recipe: Finetune, stage: str, system: str
) -> Answers:
    encoded = stage_folder("encode", params.tasks[task].group, task)
    ours = params.pretrain.source == "train" and recipe.transfer != "none"
    starts = {seed: pretraining_seed(params, seed) if ours else None for seed in recipe.seeds}
    told = (encoded, finetuned, recipe.seeds, stage, system, starts, False)
    path = encoded / "task.json"
    try:
        description = read_json(path)
        whole = (
            all(key in description for key in ("outputs", "target", "splits"))
            and type(description["outputs"]) is int
        )
        whole = whole and all(
            {"examples", "labelled"} <= split.keys() for split in description["splits"].values()
        )
    except FileNotFoundError:
        raise UserError(
            f"{path} is not there: {task} stands in params.yaml but was not encoded; run dvc repro"
            f" encode@{task}"
        ) from None
    except (OSError, ValueError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise UserError(
            f"{path}: expected outputs, target and splits, found something else; run dvc repro -f"
            f" encode@{task}"
        )
    return Answers(task, description, *told)


def _arrays(path: Path, names: tuple[str, ...], again: str) -> dict[str, Array]:
    try:
        return dict(read_arrays(path, names))
    except FileNotFoundError:
        raise UserError(f"{path} is not there; {again}") from None
    except KeyError:
        raise UserError(
            f"{path}: expected the arrays {', '.join(names)}, found others; {again}"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); {again}") from None
