"""What fine-tuning reads, an encoded task and weights, and all seeds of a stage. Each seed is kept
when it has finished: a killed stage repeats only the one it was in.
"""

import math
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import (
    LOGS,
    read_json,
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
from gpt1.train.finetuning import EncodedTask, FinetunedSeed, FinetuningRun, Logits, finetune_seed
from gpt1.train.finished import finished_seed, note_finished, put_seeds
from gpt1.train.loop import Report, seed_for

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary
WEIGHTS = "weights.safetensors"
Tracked = Callable[[str, str, Params, str], AbstractContextManager[Report]]


def read_task(folder: Path, params: Params) -> tuple[dict[str, Any], EncodedTask]:
    """An encoded task, and what task.json says of it. Raises UserError where it is absent, or its
    sequences do not fit the model.
    """
    if not (folder / "task.json").is_file():
        raise UserError(
            f"{folder}/task.json is not there; run dvc repro, or python -m gpt1.stages encode"
            f" {folder.name}"
        )
    about, splits = read_json(folder / "task.json"), dict[str, Examples]()
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
    value = metrics.score(metric, labels, metrics.predictions(logits, target))
    return value if math.isfinite(value) else 0.0  # a correlation with a constant says nothing


def make_classifier(
    params: Params,
    recipe: Finetune,
    about: dict[str, Any],
    wanted: Description,
    weights: Path,
    seed: int,
) -> Classifier:
    """A classifier with the pre-trained weights in it; special symbols and head are drawn anew for
    each seed.
    """
    generator = torch.Generator().manual_seed(seed_for(seed))
    network = make_network(wanted.kind, params, wanted.vocabulary_size + SPECIAL_SYMBOLS, generator)
    head = Head(
        params.model.width,
        about["outputs"],
        about["combine"],
        params.model.weight_deviation,
        generator,
    )
    transfer_weights(weights, wanted, network, recipe.transfer)
    return Classifier(network, head)


def keep_seed(
    folder: Path,
    outcome: FinetunedSeed,
    classifier: Classifier,
    description: Description,
    with_weights: bool,
    code: dict[str, str],
) -> dict[str, Any]:
    """Keep a finished seed until the stage ends: its outputs, and state.json to know them whole by.
    Returns its summary.
    """
    with writing_folder(folder) as out:
        if with_weights:
            classifier.load_state_dict(outcome.best_weights)
            save_weights(out / WEIGHTS, classifier, description)
        with writing(out / "logits.npz", "wb") as file:
            np.savez(file, allow_pickle=False, **dict(sorted(outcome.logits.items())))
        checkpoint.link_or_copy(str(folder.with_suffix(".jsonl")), str(out / "curve.jsonl"))
        summary: dict[str, Any] = {
            "best_update": outcome.best_update,
            "best_dev_score": outcome.best_dev_score,
            "updates": outcome.updates,
            "skipped_updates": outcome.skipped_updates,
        }
        note_finished(out, summary, code)
    return summary


class FinetuningJob(NamedTuple):
    """What a stage is to do: fine-tune a pre-trained network on a task, by one recipe a part (the
    part "" is the output folder itself). `starts`: the pre-trained weights of each seed.
    """

    stage: str
    name: str
    task: str
    network: NetworkName
    recipes: dict[str, Finetune]
    starts: dict[int, Path]
    out: Path
    keep_weights: bool = False


class RecipeSeeds(NamedTuple):
    """One part of a job: its recipe, the folder of the run of each seed, and the seeds' summaries
    (None: to be done).
    """

    name: str
    recipe: Finetune
    folders: dict[int, Path]
    seeds: dict[int, dict[str, Any] | None]


def finetune_job(params: Params, job: FinetuningJob, tracked: Tracked) -> None:
    """Fine-tune every seed of every part that no earlier run has left finished; write the outputs
    as a whole. `tracked` is given (stage, name, params, fingerprint) of each seed.
    """
    # read
    machine, code = launch.read_machine(), checkpoint.code_hashes("finetune")
    encoded = stage_folder("encode", params.tasks[job.task].group, job.task)
    about, task = read_task(encoded, params)
    inputs = [encoded / "task.json", *(encoded / f"{split}.npz" for split in sorted(task.splits))]
    vocabulary = about["vocabulary_size"], about["vocabulary_fingerprint"]
    wanted = describe(job.network, params, *vocabulary)
    hashes = {path: list(map(sha256_file, inputs)) for path in job.starts.values()}
    if any(recipe.transfer != "none" for recipe in job.recipes.values()):
        for path, of_inputs in hashes.items():
            check_description(read_weights(path)[0], wanted, path)
            of_inputs.append(sha256_file(path))
    parts = []
    for name, recipe in job.recipes.items():
        what_matters = [wanted.config, job.network, recipe.model_dump(exclude={"seeds"})]
        whole_name = f"{job.name}-{name}" if name else job.name
        folders = {
            seed: checkpoint.state_folder(
                job.stage, whole_name, [*what_matters, hashes[job.starts[seed]]]
            )
            for seed in recipe.seeds
        }
        seeds = {
            seed: finished_seed(folder / f"seed-{seed}", code, machine.accept_checkpoint)
            for seed, folder in folders.items()
        }
        parts.append(RecipeSeeds(name, recipe, folders, seeds))

    # train the seeds that are not finished
    todo = [(part, seed) for part in parts for seed, done in part.seeds.items() if done is None]
    if todo and launch.spread(machine, "gpt1.stages", job.stage, job.name):
        return
    launch.prepare(machine)
    speeds = {}
    for part, seed in todo:
        name = "/".join(filter(None, (job.name, part.name, f"seed-{seed}")))
        folder = part.folders[seed] / f"seed-{seed}"
        classifier = make_classifier(params, part.recipe, about, wanted, job.starts[seed], seed)
        curve, what = folder.with_suffix(".jsonl"), f"{job.stage} {name}"
        run = FinetuningRun(classifier, part.recipe, task, seed, machine, curve, what)
        with tracked(job.stage, name, params, part.folders[seed].name.rpartition("-")[2]) as report:
            outcome = finetune_seed(run, report)
        speeds[name] = outcome.speed
        if machine.rank == 0:
            kind = replace(wanted, kind=f"{job.network} for {job.task}")
            part.seeds[seed] = keep_seed(folder, outcome, classifier, kind, job.keep_weights, code)

    # write
    if machine.rank == 0:
        write_outputs(job.out, job.task, parts)
        log = LOGS / job.stage / f"{job.name}-speed.json"
        write_json(log, launch.facts(machine) | {"seeds": speeds})
        for folder in {folder for part in parts for folder in part.folders.values()}:
            shutil.rmtree(folder)


def write_outputs(out: Path, task: str, parts: Iterable[RecipeSeeds]) -> None:
    """Put every seed's files and the summary under a stage's output folder as a whole. Raises
    UserError where a seed is missing.
    """
    with writing_folder(out) as new:
        for part in parts:
            kept = (folder / f"seed-{seed}" for seed, folder in part.folders.items())
            put_seeds(kept, new / part.name)
        summaries = {
            part.name: {str(seed): summary for seed, summary in part.seeds.items()}
            for part in parts
        }
        seeds = {"seeds": summaries[""]} if "" in summaries else {"parts": summaries}
        write_json(new / "summary.json", {"task": task, **seeds})
