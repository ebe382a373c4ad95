"""Pre-train a language model on the shards (paper, sections 3.1 and 4.1): `python -m gpt1.stages
pretrain ROW`.
"""

import shutil

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, stage_folder, write_json
from gpt1.corpus.shards import Shards
from gpt1.model.networks import describe
from gpt1.params.recipes import pretraining_params
from gpt1.params.schema import PARAMS, read_params
from gpt1.results.rules import RULES_RECORD, rules_hash
from gpt1.tracking.live import tracked
from gpt1.train import checkpoint, launch
from gpt1.train.finished import finished_seed, put_seeds
from gpt1.train.pretraining import pretrain
from gpt1.train.pretraining_data import (
    keep_seed,
    make_run,
    number_of_updates,
    run_folder,
    take_over,
)


def main(name: str) -> None:
    """Read parameters and shards, train every seed of the row that no earlier run has left finished
    (in several processes where the machine says so), write the outputs as a whole.
    """
    # read
    params, machine = read_params(), launch.read_machine(over_hosts=True)
    if name not in params.stages.pretrain:
        raise UserError(
            f"expected one of the rows stages.pretrain of {PARAMS}:"
            f" {', '.join(params.stages.pretrain)}; found {name}"
        )
    stage = params.stages.pretrain[name]
    network, root = stage.network, stage_folder("pretrain", stage.network)
    params = pretraining_params(params, network)
    shards, out = Shards.open(stage_folder("shard")), stage_folder("pretrain", stage.folder)
    vocabulary = shards.index["vocabulary_size"], shards.index["vocabulary_fingerprint"]
    description = describe(network, params, *vocabulary)
    if params.pretrain.source == "official":
        launch.prepare(machine)
        weights = stage_folder("acquire", "weights", "official", "weights.safetensors")
        place, [seed] = root / f"seed-{stage.seeds[0]}", stage.seeds
        take_over(place, weights, seed, params, shards, description, machine)
        return
    updates, code = number_of_updates(params, shards), checkpoint.code_hashes("pretrain")
    folders = {seed: run_folder(params.pretrain, shards, description, seed) for seed in stage.seeds}
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
        called, digest = f"{network}/seed-{seed}", run.folder.name.rpartition("-")[2]
        with tracked("pretrain", called, params, digest) as report:
            trained = pretrain(run, report)
        if machine.rank == 0:
            keep_seed(run, shards, trained, noted)
            log = LOGS / "pretrain" / f"{name}-speed.json"  # of the last seed trained
            write_json(log, launch.facts(machine) | trained.speed)

    # write
    if machine.rank == 0:
        put_seeds({place: root / place.name for place in kept.values()}, out)
        for folder in folders.values():
            shutil.rmtree(folder)
