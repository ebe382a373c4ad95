"""Pre-train a language model on the shards (paper, sections 3.1 and 4.1): `python -m gpt1.stages
pretrain NETWORK`.
"""

import shutil

from gpt1.base.files import LOGS, stage_folder, write_json
from gpt1.corpus.shards import Shards
from gpt1.model.networks import check_name, describe
from gpt1.params.schema import read_params
from gpt1.results.rules import RULES_RECORD, rules_hash
from gpt1.tracking.live import tracked
from gpt1.train import checkpoint, launch
from gpt1.train.finished import finished_seed
from gpt1.train.pretraining import pretrain, run_name
from gpt1.train.pretraining_data import (
    keep_seed,
    make_run,
    number_of_updates,
    run_folder,
    take_over,
    write_outputs,
)


def main(name: str) -> None:
    """Read parameters and shards, train every seed that no earlier run has left finished (in
    several processes where the machine says so), write the outputs as a whole.
    """
    # read
    params, machine = read_params(), launch.read_machine(over_hosts=True)
    check_name(name)
    shards, out = Shards.open(stage_folder("shard")), stage_folder("pretrain", name)
    vocabulary = shards.index["vocabulary_size"], shards.index["vocabulary_fingerprint"]
    description = describe(name, params, *vocabulary)
    if params.pretrain.source == "official":
        launch.prepare(machine)
        weights = stage_folder("acquire", "weights", "official", "weights.safetensors")
        take_over(out, weights, params, shards, description, machine)
        return
    updates, code = number_of_updates(params, shards), checkpoint.code_hashes("pretrain")
    folders = {
        seed: run_folder(params.pretrain, shards, description, seed)
        for seed in params.pretrain.seeds
    }
    kept = {seed: folder / f"seed-{seed}" for seed, folder in folders.items()}

    # the rules of the verdicts, fixed before there is any result; they change no weight
    noted = {RULES_RECORD: rules_hash()}

    # train the seeds that are not finished
    accept = machine.accept_checkpoint
    todo = [seed for seed, place in kept.items() if finished_seed(place, code, accept) is None]
    if todo and launch.spread(machine, "gpt1.stages", "pretrain", name):
        return
    launch.prepare(machine)
    for seed in todo:
        run = make_run(params, shards, description, seed, updates, machine, code)
        called, digest = run_name(params.pretrain, name, seed), run.folder.name.rpartition("-")[2]
        with tracked("pretrain", called, params, digest) as report:
            trained = pretrain(run, report)
        if machine.rank == 0:
            keep_seed(run, shards, trained, noted)
            log = LOGS / "pretrain" / f"{name}-speed.json"  # of the last seed trained
            write_json(log, launch.facts(machine) | trained.speed)

    # write
    if machine.rank == 0:
        write_outputs(out, kept.values())
        for folder in folders.values():
            shutil.rmtree(folder)
