"""What fine-tuning reads, and all seeds of a stage."""

import math
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import (
    LOGS,
    read_json,
    read_json_file,
    sha256_file,
    stage_folder,
    write_json,
    writing,
    writing_folder,
)
from gpt1.model.heads import Classifier, Head
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import (
    Description,
    check_description,
    read_weights,
    save_weights,
    transfer_weights,
)
from gpt1.params.schema import Finetune, NetworkName, Params
from gpt1.tasks import metrics
from gpt1.train import checkpoint, launch
from gpt1.train.batches import Examples, read_examples
from gpt1.train.checkpoint import end_seeds, is_finished, note_finished, put_seeds
from gpt1.train.finetuning import EncodedTask, FinetunedSeed, FinetuningRun, Logits, finetune_seed
from gpt1.train.loop import Report, seed_for

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary
WEIGHTS, RECIPE = "weights.safetensors", "recipe.json"
# of stage, name, params and fingerprint
Tracked = Callable[[str, str, Params, str], AbstractContextManager[Report]]


def read_task(folder: Path, params: Params) -> tuple[dict[str, Any], EncodedTask]:
    """Read an encoded task and its task.json. Raises UserError where they do not fit the model."""
    what_to_do = f"run dvc repro, or python -m gpt1.stages encode {folder.name}"
    about, splits = read_json_file(folder / "task.json", what_to_do), dict[str, Examples]()
    rows = about["vocabulary_size"] + SPECIAL_SYMBOLS
    for name in about["splits"]:
        path = folder / f"{name}.npz"
        splits[name] = examples = read_examples(path, about["sequences"])
        longest = int(examples.lengths(np.arange(len(examples))).max(initial=0))
        largest = examples.tokens.max(initial=0)
        if longest > params.model.context or largest >= rows:
            raise UserError(
                f"{path}: expected sequences of at most {params.model.context} tokens"
                f" (model.context) with ids below {rows}, found {longest} and {largest}; run dvc"
                " repro, which encodes the task anew"
            )
    dev = splits[about["selection_split"]]
    if about["target"] == "class" and (dev.labels < 0).any():
        raise UserError(
            f"{folder}: expected labels for every row of {about['selection_split']}, which selects"
            " the model; found rows without; bring the labelled file and run dvc repro"
        )
    score = partial(_score, about["metric"], about["target"], dev.labels)
    return about, EncodedTask(folder.name, splits, about["selection_split"], score)


def _score(metric: str, target: str, labels: npt.NDArray[Any], logits: Logits) -> float:
    value = metrics.score(metric, labels, metrics.answers_of(logits, target))
    return value if math.isfinite(value) else 0.0  # a correlation with a constant says nothing


def make_classifier(
    params: Params,
    recipe: Finetune,
    about: dict[str, Any],
    description: Description,
    weights: Path,
    seed: int,
) -> Classifier:
    """Make a classifier with pre-trained weights. `seed` draws special symbols and head."""
    # One generator in a fixed order: network, then head; transfer then replaces what it has.
    generator = torch.Generator().manual_seed(seed_for(seed))
    network = make_network(
        description.kind, params, description.vocabulary_size + SPECIAL_SYMBOLS, generator
    )
    head = Head(
        params.model.width,
        about["outputs"],
        about["combine"],
        params.model.weight_deviation,
        generator,
    )
    with torch.no_grad():
        symbols = network.tokens[description.vocabulary_size :]
        symbols *= recipe.symbol_deviation / params.model.embedding_deviation
    transfer_weights(weights, description, network, recipe.transfer)
    return Classifier(network, head)


def keep_seed(
    folder: Path,
    outcome: FinetunedSeed,
    classifier: Classifier,
    description: Description,
    recipe: Finetune | None,
    code: str,
) -> None:
    """Keep a finished seed until its stage ends; with a `recipe` also its weights."""
    with writing_folder(folder) as out:
        if recipe is not None:
            # The weights that answer are those that dev chose, not the last.
            classifier.load_state_dict(outcome.best.weights)
            save_weights(out / WEIGHTS, classifier, description)
            write_json(out / RECIPE, recipe.model_dump(mode="json", exclude={"seeds"}))
        with writing(out / "logits.npz", "wb") as file:
            np.savez(file, allow_pickle=False, **dict(sorted(outcome.logits.items())))
        shutil.copyfile(folder.with_suffix(".jsonl"), out / "curve.jsonl")
        summary = {
            "best_update": outcome.best.update,
            "best_dev_score": outcome.best.score,
            "updates": outcome.updates,
        }
        write_json(out / "summary.json", summary)
        note_finished(out, code)


class FinetuningPlan(NamedTuple):
    """The fine-tunings of one stage."""

    command: tuple[str, ...]  # verb and items, the last of which is the task
    network: NetworkName
    recipes: dict[str, Finetune]  # by part: `layers-3`, or "" for the only one
    starts: dict[int, Path]  # each seed's pre-training
    root: str  # of its outputs, under data/<verb>

    @property
    def subject(self) -> str:
        """Return the name of its runs."""
        return "-".join(self.command[1:])


class FinetuningSeed(NamedTuple):
    """One seed of one part of a plan."""

    name: str  # `<part>/seed-<n>`
    seed: int
    recipe: Finetune
    start: Path
    run: Path  # keeps it until the stage ends

    @property
    def finished(self) -> Path:
        """Return the folder of the finished seed."""
        return self.run / f"seed-{self.seed}"


def run_finetunings(params: Params, plan: FinetuningPlan, tracked: Tracked) -> None:
    """Train the seeds that are not finished, and write the outputs as a whole."""
    # read
    machine, code = launch.read_machine(), checkpoint.code_digest("finetune")
    stage, task_name = plan.command[0], plan.command[-1]
    keep_weights = stage == "finetune"  # the others' would not be used again
    encoded = stage_folder("encode", params.tasks[task_name].group, task_name)
    about, task = read_task(encoded, params)
    vocabulary = about["vocabulary_size"], about["vocabulary_fingerprint"]
    description = describe(plan.network, params, *vocabulary)
    seeds = seeds_of(plan, encoded, task, description)

    # train the seeds that are not finished
    todo = [seed_run for seed_run in seeds if not is_finished(seed_run.finished, code)]
    # Several processes: this one starts them and is done; each of them comes here by itself.
    if todo and launch.run_in_all_processes(machine, *plan.command):
        return
    launch.prepare(machine)
    speeds = {}
    for seed_run in todo:
        name = f"{plan.subject}/{seed_run.name}"
        classifier = make_classifier(
            params, seed_run.recipe, about, description, seed_run.start, seed_run.seed
        )
        curve, what = seed_run.finished.with_suffix(".jsonl"), f"{stage} {name}"
        run = FinetuningRun(classifier, seed_run.recipe, task, seed_run.seed, machine, curve, what)
        with tracked(stage, name, params, seed_run.run.name.rpartition("-")[2]) as report:
            outcome = finetune_seed(run, report)
        speeds[name] = outcome.speed
        if machine.rank == 0:
            kind = replace(description, kind=f"{plan.network} for {task.name}")
            recipe = seed_run.recipe if keep_weights else None
            keep_seed(seed_run.finished, outcome, classifier, kind, recipe, code)

    # write
    if machine.rank == 0:
        out = stage_folder(stage, plan.root)
        put_seeds({seed_run.finished: out / seed_run.name for seed_run in seeds}, out)
        if keep_weights:  # what recipes are chosen by, for DVC
            scores = [read_json(path)["best_dev_score"] for path in out.glob("*/summary.json")]
            write_json(out.with_suffix(".json"), {task.name: round(100 * fmean(scores), 2)})
        log = LOGS / stage / f"{plan.subject}-speed.json"
        write_json(log, launch.facts(machine) | {"seeds": speeds})
        end_seeds([seed_run.finished for seed_run in seeds])


def seeds_of(
    plan: FinetuningPlan,
    encoded: Path,
    task: EncodedTask,
    description: Description,
) -> list[FinetuningSeed]:
    """Return every seed of every part. Raises UserError where weights do not fit."""
    inputs = [encoded / "task.json", *(encoded / f"{split}.npz" for split in sorted(task.splits))]
    hashes, seeds = list(map(sha256_file, inputs)), []

    @cache  # many parts start from one file
    def hash_of_weights(start: Path) -> str:
        check_description(read_weights(start)[0], description, start)
        return sha256_file(start)

    for part, recipe in plan.recipes.items():
        for seed in recipe.seeds:
            start = plan.starts[seed] / WEIGHTS
            read = [*hashes, hash_of_weights(start)] if recipe.transfer != "none" else hashes
            name = "-".join(filter(None, (plan.subject, part, f"seed-{seed}")))
            what_matters = [
                description.config,
                plan.network,
                recipe.model_dump(exclude={"seeds"}),
                read,
            ]
            run = checkpoint.state_folder(plan.command[0], name, what_matters)
            place = f"{part}/seed-{seed}".lstrip("/")
            seeds.append(FinetuningSeed(place, seed, recipe, start, run))
    return seeds
