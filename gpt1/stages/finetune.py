"""Fine-tune on one task, every seed (paper, sections 3.2 and 4.1): `python -m gpt1.stages finetune TASK`."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1 import tracking
from gpt1.config import Finetune, Params, read_params
from gpt1.errors import UserError
from gpt1.files import LOGS, read_json, sha256_file, stage_folder, write_json, writing, writing_folder
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.weights import Description, check_description, describe, read_weights, save_weights, transfer
from gpt1.tasks import metrics
from gpt1.train import checkpoint, launch
from gpt1.train.batches import Examples, read_examples, updates_in_epoch
from gpt1.train.finetuning import Logits, Outcome, Task, finetune
from gpt1.train.loop import seed_for, tracked

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary
WEIGHTS = stage_folder("pretrain", "transformer", "weights.safetensors")


def read_task(folder: Path, params: Params) -> tuple[dict[str, Any], Task]:
    """An encoded task. Raises UserError where it is absent, or its sequences do not fit the model."""
    if not (folder / "task.json").is_file():
        raise UserError(f"{folder}/task.json is not there; run dvc repro, or python -m gpt1.stages encode {folder.name}")
    about = read_json(folder / "task.json")
    splits = {name: read_examples(folder / f"{name}.npz", about["sequences"]) for name in about["splits"]}
    for name, examples in splits.items():
        check_fit(folder / f"{name}.npz", examples, params.model.context, about["vocabulary_size"] + SPECIAL_SYMBOLS)
    dev = splits[about["selection_split"]]
    if about["target"] == "class" and (dev.labels < 0).any():
        raise UserError(f"{folder}: expected labels for every row of {about['selection_split']}, which selects the model; found rows "
                        "without; bring the labelled file and run dvc repro")

    def score(logits: Logits) -> float:
        value = metrics.score(about["metric"], dev.labels, metrics.predictions(logits, about["target"]))
        return value if math.isfinite(value) else 0.0  # a correlation with a constant says nothing

    return about, Task(folder.name, splits, about["selection_split"], score)


def check_fit(path: Path, examples: Examples, context: int, rows: int) -> None:
    """Raise UserError where a sequence is longer than the context or a token has no row in the model."""
    longest = int(examples.lengths(np.arange(len(examples))).max(initial=0))
    if longest > context or examples.tokens.max(initial=0) >= rows:
        raise UserError(f"{path}: expected sequences of at most {context} tokens (model.context) with ids below {rows}, found {longest} "
                        f"and {examples.tokens.max(initial=0)}; run dvc repro, which encodes the task anew")


def make_classifier(params: Params, recipe: Finetune, about: dict[str, Any], wanted: Description, seed: int) -> Classifier:
    """A classifier with the pre-trained weights in it; special symbols and head are drawn anew for each seed."""
    generator = torch.Generator().manual_seed(seed_for(seed))
    decoder = Decoder(params.model, wanted.vocabulary_size + SPECIAL_SYMBOLS, generator)
    head = Head(params.model.width, about["outputs"], about["combine"], params.model.weight_deviation, generator)
    transfer(WEIGHTS, wanted, decoder, recipe.transfer)
    return Classifier(decoder, head)


def keep_seed(folder: Path, outcome: Outcome, classifier: Classifier, description: Description,
              code: dict[str, str]) -> dict[str, Any]:
    """Keep a finished seed until the stage ends: its outputs, and state.json to know them whole by. Returns its summary."""
    with writing_folder(folder) as out:
        classifier.load_state_dict(outcome.best_weights)
        save_weights(out / "weights.safetensors", classifier, description)
        with writing(out / "logits.npz", "wb") as file:
            np.savez(file, allow_pickle=False, **dict(sorted(outcome.logits.items())))
        checkpoint.link_or_copy(str(folder.with_suffix(".jsonl")), str(out / "curve.jsonl"))
        summary: dict[str, Any] = {"best_update": outcome.best_update, "best_dev_score": outcome.best_dev_score, "updates": outcome.updates}
        write_json(out / "state.json", {"code": code, "summary": summary,
                                        "sha256": {path.name: sha256_file(path) for path in sorted(out.iterdir())}})
    return summary


def kept_seed(folder: Path, code: dict[str, str], accept: bool) -> dict[str, Any] | None:
    """Summary of a seed kept by an earlier run, or None. Raises UserError where other code made it."""
    try:
        state = read_json(folder / "state.json")
        if any(sha256_file(folder / name) != digest for name, digest in state["sha256"].items()):
            return None
    except (OSError, ValueError, KeyError):
        return None
    checkpoint.check_code(state["code"], code, folder.parent, accept)
    summary: dict[str, Any] = state["summary"]
    return summary


def write_outputs(out_folder: Path, folder: Path, task: str, seeds: dict[int, dict[str, Any] | None]) -> None:
    """Put every seed's files and the summary under data/finetune/<group>/<task> as a whole."""
    with writing_folder(out_folder) as out:
        for seed in seeds:
            shutil.copytree(folder / f"seed-{seed}", out / f"seed-{seed}", copy_function=checkpoint.link_or_copy,
                            ignore=shutil.ignore_patterns("state.json"))
        write_json(out / "summary.json", {"task": task, "seeds": {str(seed): summary for seed, summary in seeds.items()}})


def main(name: str) -> None:
    """Read parameters, the encoded task and the weights; fine-tune seed after seed; write the outputs."""
    params, machine = read_params(), launch.read_machine()
    if name not in params.tasks:
        raise UserError(f"expected one of the tasks in params.yaml: {', '.join(params.tasks)}; found {name}")
    group, recipe = params.tasks[name].group, params.finetune_for(name)
    encoded = stage_folder("encode", group, name)
    about, task = read_task(encoded, params)
    in_epoch = updates_in_epoch(len(task.splits["train"]), recipe.batch_size, str(encoded))
    wanted = describe("transformer", params.model, about["vocabulary_size"], about["vocabulary_fingerprint"])
    check_description(read_weights(WEIGHTS)[0], wanted, WEIGHTS)
    inputs = [WEIGHTS, encoded / "task.json", *(encoded / f"{split}.npz" for split in sorted(task.splits))]
    what_matters = [params.model.model_dump(), recipe.model_dump(exclude={"seeds"}), [sha256_file(path) for path in inputs]]
    folder, code = checkpoint.state_folder("finetune", name, what_matters), checkpoint.code_hashes("finetune")
    seeds = {seed: kept_seed(folder / f"seed-{seed}", code, machine.accept_checkpoint) for seed in recipe.seeds}
    if None in seeds.values() and launch.spread(machine, "gpt1.stages", "finetune", name):
        return
    launch.prepare(machine)
    times = {}
    for seed in (seed for seed, summary in seeds.items() if summary is None):
        classifier = make_classifier(params, recipe, about, wanted, seed)
        with tracked(tracking.start("finetune", f"{name}/seed-{seed}", params, folder.name.rpartition("-")[2])) as report:
            outcome = finetune(classifier, recipe, task, seed, in_epoch, machine, folder / f"seed-{seed}.jsonl", report)
        times[str(seed)] = {"seconds": outcome.seconds, "tokens_per_second": outcome.tokens_per_second}
        if machine.rank == 0:
            description = describe(f"transformer for {name}", params.model, wanted.vocabulary_size, wanted.vocabulary_fingerprint)
            seeds[seed] = keep_seed(folder / f"seed-{seed}", outcome, classifier, description, code)
    if machine.rank == 0:
        write_outputs(stage_folder("finetune", group, name), folder, name, seeds)
        write_json(LOGS / "finetune" / f"{name}-speed.json", launch.facts(machine) | {"seeds": times})
        shutil.rmtree(folder)
