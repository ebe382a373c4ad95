"""Fine-tune on one task, every seed (paper, sections 3.2, 4.1 and 5): `python -m gpt1.stages
finetune TASK`.

`ablate VARIANT-TASK` (Table 5) and `transfer TASK` (Figure 2, left) are the same with another
recipe or network.
"""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, sha256_file, stage_folder, write_json
from gpt1.model.networks import describe
from gpt1.model.weights import check_description, read_weights
from gpt1.params.recipes import finetune_recipe, transfer_recipe, transferred_layers
from gpt1.params.schema import Finetune, NetworkName, Params, read_params
from gpt1.tracking import live
from gpt1.train import checkpoint, launch
from gpt1.train.finetuning import FinetuningRun, finetune_seed
from gpt1.train.finished_seeds import find_part, keep_seed, write_outputs
from gpt1.train.loop import tracked
from gpt1.train.task_inputs import make_classifier, read_task


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
    keep_weights: bool = False


def run(params: Params, work: Work) -> None:
    """Fine-tune every seed of every part that no earlier run has left finished; write the outputs
    as a whole.
    """
    # read
    machine, stage, code = launch.read_machine(), work.stage, checkpoint.code_hashes("finetune")
    encoded = stage_folder("encode", params.tasks[work.task].group, work.task)
    about, task = read_task(encoded, params)
    inputs = [encoded / "task.json", *(encoded / f"{split}.npz" for split in sorted(task.splits))]
    weights = stage_folder("pretrain", work.network, "weights.safetensors")
    wanted = describe(
        work.network, params, about["vocabulary_size"], about["vocabulary_fingerprint"]
    )
    if any(recipe.transfer != "none" for recipe in work.recipes.values()):
        check_description(read_weights(weights)[0], wanted, weights)
        inputs.append(weights)
    hashes, parts = [sha256_file(path) for path in inputs], []
    for name, recipe in work.recipes.items():
        what_matters = [wanted.config, work.network, recipe.model_dump(exclude={"seeds"}), hashes]
        folder = checkpoint.state_folder(
            stage, f"{work.name}-{name}" if name else work.name, what_matters
        )
        parts.append(find_part(name, recipe, folder, code, machine.accept_checkpoint))

    # train the seeds that are not finished
    todo = [(part, seed) for part in parts for seed, done in part.seeds.items() if done is None]
    if todo and launch.spread(machine, "gpt1.stages", stage, work.name):
        return
    launch.prepare(machine)
    speeds = {}
    for part, seed in todo:
        name = "/".join(filter(None, (work.name, part.name, f"seed-{seed}")))
        folder = part.folder / f"seed-{seed}"
        classifier = make_classifier(params, part.recipe, about, wanted, weights, seed)
        training = FinetuningRun(
            classifier,
            part.recipe,
            task,
            seed,
            machine,
            folder.with_suffix(".jsonl"),
            f"{stage} {name}",
        )
        fingerprint = part.folder.name.rpartition("-")[2]
        with tracked(live.start(stage, name, params, fingerprint)) as report:
            outcome = finetune_seed(training, report)
        speeds[name] = outcome.speed
        if machine.rank == 0:
            kind = replace(wanted, kind=f"{work.network} for {work.task}")
            part.seeds[seed] = keep_seed(folder, outcome, classifier, kind, work.keep_weights, code)

    # write
    if machine.rank == 0:
        write_outputs(work.out, work.task, parts)
        log = LOGS / stage / f"{work.name}-speed.json"
        write_json(log, launch.facts(machine) | {"seeds": speeds})
        for part in parts:
            shutil.rmtree(part.folder)


def main(name: str) -> None:
    """The ordinary fine-tuning of a task (Tables 2-4)."""
    params = read_params()
    _check_row(name, params.tasks, "tasks")
    out, recipes = (
        stage_folder("finetune", params.tasks[name].group, name),
        {"": finetune_recipe(params, name)},
    )
    run(params, Work("finetune", name, name, "transformer", recipes, out, keep_weights=True))


def ablate(name: str) -> None:
    """A variant on a task (Table 5)."""
    params = read_params()
    _check_row(name, params.ablate, "rows of ablate")
    row = params.ablate[name]
    network = params.variants[row.variant].network
    recipes = {"": finetune_recipe(params, row.task, row.variant)}
    run(params, Work("ablate", name, row.task, network, recipes, stage_folder("ablate", name)))


def transfer(name: str) -> None:
    """A task with ever more layers transferred (Figure 2, left); all of them is the ordinary
    fine-tuning, and is not computed again.
    """
    params = read_params()
    _check_row(name, params.transfer, "rows of transfer")
    recipe = transfer_recipe(params, name)
    recipes = {
        f"layers-{layers}": recipe.model_copy(update={"transfer": layers})
        for layers in transferred_layers(params, name)
        if layers < params.model.layers
    }
    out = stage_folder("transfer", name)
    run(params, Work("transfer", name, name, "transformer", recipes, out))


def _check_row(name: str, rows: Iterable[str], what: str) -> None:
    if name not in rows:
        raise UserError(
            f"expected one of the {what} in params.yaml: {', '.join(rows) or 'none'}; found {name}"
        )
