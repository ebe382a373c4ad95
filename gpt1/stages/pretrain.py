"""Pre-train a language model on the shards (paper, sections 3.1 and 4.1): `python -m gpt1.stages
pretrain NETWORK`.
"""

import shutil
from typing import get_args

import torch

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, sha256_file, stage_folder, write_json
from gpt1.corpus.shards import Shards
from gpt1.model.networks import describe, make_network
from gpt1.params.schema import NetworkName, read_params
from gpt1.tracking import live
from gpt1.train import checkpoint, launch, pretraining_data
from gpt1.train.loop import seed_for, tracked
from gpt1.train.pretraining import PretrainingRun, pretrain


def main(name: str) -> None:
    """Read parameters and shards, train (in several processes where the machine says so), write the
    outputs.
    """
    # read
    params, machine = read_params(), launch.read_machine(over_hosts=True)
    if name not in get_args(NetworkName):
        raise UserError(
            f"expected one of the networks {', '.join(get_args(NetworkName))}; found {name}"
        )
    shards, recipe = Shards.open(stage_folder("shard")), params.pretrain
    out, rows = stage_folder("pretrain", name), int(shards.index["vocabulary_size"])
    description = describe(name, params, rows, shards.index["vocabulary_fingerprint"])
    if recipe.source == "official":
        launch.prepare(machine)
        weights = stage_folder("acquire", "weights", "official", "weights.safetensors")
        pretraining_data.take_over(out, weights, params, shards, description, machine)
        return
    updates = pretraining_data.number_of_updates(params, shards)

    # train
    if launch.spread(machine, "gpt1.stages", "pretrain", name):
        return
    launch.prepare(machine)
    network = make_network(name, params, rows, torch.Generator().manual_seed(seed_for(recipe.seed)))
    what_matters = [
        description.config,
        recipe.model_dump(exclude={"checkpoint_minutes"}),
        sha256_file(stage_folder("shard", "index.json")),
    ]
    folder = checkpoint.state_folder("pretrain", name, what_matters)
    corpus = pretraining_data.corpus_of(shards, recipe, params.model.context)
    code = checkpoint.code_hashes("pretrain")
    run = PretrainingRun(network, description, recipe, updates, corpus, machine, folder, code)
    with tracked(live.start("pretrain", name, params, folder.name.rpartition("-")[2])) as report:
        outcome = pretrain(run, report)

    # write
    if machine.rank == 0:
        summary = pretraining_data.summary_of(
            shards,
            description,
            network,
            updates=updates,
            tokens=updates * recipe.batch_size * params.model.context,
            skipped_updates=outcome.skipped_updates,
            **outcome.heldout,
        )
        pretraining_data.write_outputs(out, folder, network, description, summary)
        log = LOGS / "pretrain" / f"{name}-speed.json"
        write_json(log, launch.facts(machine) | outcome.speed)
        shutil.rmtree(folder)
