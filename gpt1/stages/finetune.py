"""Fine-tune on one task, every seed (paper, sections 3.2, 4.1 and 5): `python -m gpt1.stages
finetune TASK`.

`ablate VARIANT-TASK` (Table 5) and `transfer TASK` (Figure 2, left) are the same with another
recipe or network.
"""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, read_json, sha256_file, stage_folder, write_json, writing_folder
from gpt1.model.heads import Classifier, Head
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import Description, check_description, read_weights, transfer_weights
from gpt1.params.recipes import finetune_recipe, transfer_recipe, transferred_layers
from gpt1.params.schema import Finetune, NetworkName, Params, read_params
from gpt1.tasks import metrics
from gpt1.tracking import live
from gpt1.train import checkpoint, launch
from gpt1.train.batches import Examples, read_examples, updates_in_epoch
from gpt1.train.finetuning import Logits, Task, finetune_seed
from gpt1.train.finished_seeds import copy_seeds, finished_seed, keep_seed
from gpt1.train.loop import seed_for, tracked

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary


class Work(NamedTuple):
    """What a stage is to do: a task from a pre-trained network, by one recipe a part (the part ""
    is the output folder itself).
    """

    stage: str
    name: str
    task: str
    network: NetworkName
    recipes: dict[str, Finetune]
    out: Path
    keep_weights: bool


class Part(NamedTuple):
    """One recipe of a stage's work, where its finished seeds are kept, and their summaries (None:
    to be done).
    """

    name: str
    recipe: Finetune
    kept: Path
    seeds: dict[int, dict[str, Any] | None]


def read_task(folder: Path, params: Params) -> tuple[dict[str, Any], Task]:
    """An encoded task. Raises UserError where it is absent, or its sequences do not fit the
    model.
    """
    if not (folder / "task.json").is_file():
        raise UserError(
            f"{folder}/task.json is not there; run dvc repro, or python -m gpt1.stages encode"
            f" {folder.name}"
        )
    about = read_json(folder / "task.json")
    splits = {
        name: read_examples(folder / f"{name}.npz", about["sequences"]) for name in about["splits"]
    }
    for name, examples in splits.items():
        check_fit(
            folder / f"{name}.npz",
            examples,
            params.model.context,
            about["vocabulary_size"] + SPECIAL_SYMBOLS,
        )
    dev = splits[about["selection_split"]]
    if about["target"] == "class" and (dev.labels < 0).any():
        raise UserError(
            f"{folder}: expected labels for every row of {about['selection_split']}, which selects"
            " the model; found rows without; bring the labelled file and run dvc repro"
        )

    def score(logits: Logits) -> float:
        value = metrics.score(
            about["metric"], dev.labels, metrics.predictions(logits, about["target"])
        )
        return value if math.isfinite(value) else 0.0  # a correlation with a constant says nothing

    return about, Task(folder.name, splits, about["selection_split"], score)


def check_fit(path: Path, examples: Examples, context: int, rows: int) -> None:
    """Raise UserError where a sequence is longer than the context or a token has no row in the
    model.
    """
    longest = int(examples.lengths(np.arange(len(examples))).max(initial=0))
    if longest > context or examples.tokens.max(initial=0) >= rows:
        raise UserError(
            f"{path}: expected sequences of at most {context} tokens (model.context) with ids below"
            f" {rows}, found {longest} and {examples.tokens.max(initial=0)}; run dvc repro, which"
            " encodes the task anew"
        )


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


def run(params: Params, work: Work) -> None:
    """Fine-tune every seed of every part that no earlier run has left finished; write the outputs
    as a whole.
    """
    machine = launch.read_machine()
    encoded = stage_folder("encode", params.tasks[work.task].group, work.task)
    weights = stage_folder("pretrain", work.network, "weights.safetensors")
    about, task = read_task(encoded, params)
    wanted = describe(
        work.network, params, about["vocabulary_size"], about["vocabulary_fingerprint"]
    )
    code, inputs = (
        checkpoint.code_hashes("finetune"),
        [encoded / "task.json", *(encoded / f"{split}.npz" for split in sorted(task.splits))],
    )
    if any(recipe.transfer != "none" for recipe in work.recipes.values()):
        check_description(read_weights(weights)[0], wanted, weights)
        inputs.append(weights)
    hashes, parts = [sha256_file(path) for path in inputs], []
    for name, recipe in work.recipes.items():
        what_matters = [wanted.config, work.network, recipe.model_dump(exclude={"seeds"}), hashes]
        kept = checkpoint.state_folder(
            work.stage, f"{work.name}-{name}" if name else work.name, what_matters
        )
        parts.append(
            Part(
                name,
                recipe,
                kept,
                {
                    seed: finished_seed(kept / f"seed-{seed}", code, machine.accept_checkpoint)
                    for seed in recipe.seeds
                },
            )
        )
    if any(None in part.seeds.values() for part in parts) and launch.spread(
        machine, "gpt1.stages", work.stage, work.name
    ):
        return
    launch.prepare(machine)
    times = {}
    todo = [
        (part, seed) for part in parts for seed, summary in part.seeds.items() if summary is None
    ]
    for part, seed in todo:
        in_epoch = updates_in_epoch(len(task.splits["train"]), part.recipe.batch_size, str(encoded))
        classifier = make_classifier(params, part.recipe, about, wanted, weights, seed)
        run_name = "/".join(filter(None, (work.name, part.name, f"seed-{seed}")))
        with tracked(
            live.start(work.stage, run_name, params, part.kept.name.rpartition("-")[2])
        ) as report:
            outcome = finetune_seed(
                classifier,
                part.recipe,
                task,
                seed,
                in_epoch,
                machine,
                part.kept / f"seed-{seed}.jsonl",
                report,
                f"{work.stage} {run_name}",
            )
        times[run_name] = {
            "seconds": outcome.seconds,
            "tokens_per_second": outcome.tokens_per_second,
            **outcome.speed,
        }
        if machine.rank == 0:
            description = replace(wanted, kind=f"{work.network} for {work.task}")
            part.seeds[seed] = keep_seed(
                part.kept / f"seed-{seed}",
                outcome,
                classifier,
                description,
                work.keep_weights,
                code,
            )
    if machine.rank == 0:
        write_outputs(work, parts)
        write_json(
            LOGS / work.stage / f"{work.name}-speed.json", launch.facts(machine) | {"seeds": times}
        )
        for part in parts:
            shutil.rmtree(part.kept)


def write_outputs(work: Work, parts: list[Part]) -> None:
    """Put every seed's files and the summary under the stage's output folder as a whole."""
    summaries = {
        part.name: {str(seed): summary for seed, summary in part.seeds.items()} for part in parts
    }
    with writing_folder(work.out) as out:
        for part in parts:
            copy_seeds(part.kept, part.seeds, out / part.name)
        write_json(
            out / "summary.json",
            {
                "task": work.task,
                **({"seeds": summaries[""]} if "" in summaries else {"parts": summaries}),
            },
        )


def main(name: str) -> None:
    """The ordinary fine-tuning of a task (Tables 2-4)."""
    params = read_params()
    if name not in params.tasks:
        raise UserError(
            f"expected one of the tasks in params.yaml: {', '.join(params.tasks)}; found {name}"
        )
    out = stage_folder("finetune", params.tasks[name].group, name)
    run(
        params,
        Work(
            "finetune",
            name,
            name,
            "transformer",
            {"": finetune_recipe(params, name)},
            out,
            keep_weights=True,
        ),
    )


def ablate(name: str) -> None:
    """A variant on a task (Table 5)."""
    params = read_params()
    if name not in params.ablate:
        raise UserError(
            "expected one of the rows of ablate in params.yaml:"
            f" {', '.join(params.ablate) or 'none'}; found {name}"
        )
    row = params.ablate[name]
    recipe, network = (
        finetune_recipe(params, row.task, row.variant),
        params.variants[row.variant].network,
    )
    run(
        params,
        Work(
            "ablate",
            name,
            row.task,
            network,
            {"": recipe},
            stage_folder("ablate", name),
            keep_weights=False,
        ),
    )


def transfer(name: str) -> None:
    """A task with ever more layers transferred (Figure 2, left); all of them is the ordinary
    fine-tuning, and is not computed again.
    """
    params = read_params()
    if name not in params.transfer:
        raise UserError(
            "expected one of the rows of transfer in params.yaml:"
            f" {', '.join(params.transfer) or 'none'}; found {name}"
        )
    recipe = transfer_recipe(params, name)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in transferred_layers(params, name)
        if layers < params.model.layers
    }
    run(
        params,
        Work(
            "transfer",
            name,
            name,
            "transformer",
            recipes,
            stage_folder("transfer", name),
            keep_weights=False,
        ),
    )
