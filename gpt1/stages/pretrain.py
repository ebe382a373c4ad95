"""`pretrain NETWORK SEED`: pre-train a language model on the shards (paper, sections 3.1 and
4.1).
"""

from gpt1.base.files import LOGS, stage_folder, write_json
from gpt1.corpus.shards import Shards
from gpt1.model.networks import describe
from gpt1.params.recipes import network_and_seed, pretraining_params
from gpt1.params.schema import read_params
from gpt1.tracking.live import tracked
from gpt1.train import checkpoint, launch
from gpt1.train.checkpoint import end_seeds, is_finished, put_seeds
from gpt1.train.pretraining import (
    keep_seed,
    make_run,
    number_of_updates,
    pretrain,
    run_folder,
    write_imported,
)


def main(name: str, number: str) -> None:
    """Train the network unless it is finished, in several processes where the machine says so."""
    # read
    params, machine = read_params(), launch.read_machine()
    network, seed = network_and_seed(name, number)
    out = stage_folder("pretrain", network, f"seed-{seed}")
    params, shards = pretraining_params(params, network), Shards.open(stage_folder("shard"))
    vocabulary = shards.index["vocabulary_size"], shards.index["vocabulary_fingerprint"]
    description = describe(network, params, *vocabulary)
    if params.pretrain.source == "official":
        launch.prepare(machine)
        weights = stage_folder("acquire", "weights", "official", "weights.safetensors")
        write_imported(out, weights, seed, params, shards, description, machine)
        return
    updates, code = number_of_updates(params, shards), checkpoint.code_digest("pretrain")
    folder = run_folder(params.pretrain, shards, description, seed)
    finished = folder / out.name

    # train, if it is not finished
    if not is_finished(finished, code):
        if launch.run_in_all_processes(machine, "pretrain", network, number):
            return
        launch.prepare(machine)
        run = make_run(params, shards, description, seed, updates, machine, code)
        digest = folder.name.rpartition("-")[2]
        with tracked("pretrain", f"{network}/{out.name}", params, digest) as report:
            trained = pretrain(run, report)
        if machine.rank == 0:
            keep_seed(run, shards, trained)
            log = LOGS / "pretrain" / f"{network}-{seed}-speed.json"
            write_json(log, launch.facts(machine) | trained.speed)

    # write
    if machine.rank == 0:
        put_seeds({finished: out}, out)
        end_seeds([finished])
