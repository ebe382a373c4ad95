"""Pre-train a language model on the shards (paper, sections 3.1 and 4.1): `python -m gpt1.stages
pretrain NETWORK`.
"""

import shutil

from gpt1.base.files import LOGS, stage_folder, write_json
from gpt1.corpus.shards import Shards
from gpt1.model.networks import check_name, describe
from gpt1.params.schema import read_params
from gpt1.tracking.live import tracked
from gpt1.train import launch
from gpt1.train.pretraining import pretrain
from gpt1.train.pretraining_data import make_run, number_of_updates, take_over, write_outputs


def main(name: str) -> None:
    """Read parameters and shards, train (in several processes where the machine says so), write the
    outputs.
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
    updates = number_of_updates(params, shards)

    # train
    if launch.spread(machine, "gpt1.stages", "pretrain", name):
        return
    launch.prepare(machine)
    run = make_run(params, shards, description, updates, machine)
    with tracked("pretrain", name, params, run.folder.name.rpartition("-")[2]) as report:
        trained = pretrain(run, report)

    # write
    if machine.rank == 0:
        write_outputs(out, run, shards, trained)
        log = LOGS / "pretrain" / f"{name}-speed.json"
        write_json(log, launch.facts(machine) | trained.speed)
        shutil.rmtree(run.folder)
