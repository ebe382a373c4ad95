"""Pre-train a language model on the shards (paper, sections 3.1 and 4.1): `python -m gpt1.stages
pretrain NETWORK`.
"""

import shutil
from pathlib import Path

import torch

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, sha256_file, stage_folder, write_json, writing_folder
from gpt1.corpus.shards import Shards
from gpt1.model.lstm import Network
from gpt1.model.networks import describe, make_network, parameters_by_component
from gpt1.model.weights import Description, load_weights, save_weights
from gpt1.params.schema import Params, read_params
from gpt1.tracking import live
from gpt1.train import checkpoint, launch
from gpt1.train.imported import heldout_values
from gpt1.train.loop import seed_for, tracked
from gpt1.train.pretraining import Corpus, pretrain

NETWORKS = ("transformer", "lstm")


def number_of_updates(params: Params, shards: Shards) -> int:
    """pretrain.updates, or as many as make pretrain.epochs passes over the training tokens.

    Raises UserError where that is none, where the warm-up is longer, or where no book is longer
    than the context.
    """
    context, recipe = params.model.context, params.pretrain
    for split in ("train", "heldout"):
        longest = max(
            (book["tokens"] for book in shards.index["splits"][split]["books"]), default=0
        )
        if longest <= context:
            raise UserError(
                f"data/shard: expected a {split} book longer than model.context ({context} tokens),"
                f" found at most {longest}; bring longer books or lower model.context in"
                " params.yaml"
            )
    tokens = shards.tokens("train")
    updates = (
        recipe.updates
        if recipe.updates is not None
        else round((recipe.epochs or 0) * tokens / (recipe.batch_size * context))
    )
    if updates < 1:
        raise UserError(
            f"pretrain.epochs: {recipe.epochs} of {tokens} tokens make not one update of"
            f" {recipe.batch_size} x {context}; raise pretrain.epochs or lower pretrain.batch_size"
            " in params.yaml"
        )
    if recipe.warmup_updates > updates:
        raise UserError(
            f"pretrain.warmup_updates: expected at most the {updates} updates of the run, found"
            f" {recipe.warmup_updates}; lower it in params.yaml"
        )
    return updates


def write_outputs(
    folder: Path, network: Network, description: Description, summary: dict[str, object]
) -> None:
    """Put weights, snapshots, curve and summary under data/pretrain/<network> as a whole."""
    with writing_folder(stage_folder("pretrain", description.kind)) as out:
        save_weights(out / "weights.safetensors", network, description)
        shutil.copytree(
            folder / "snapshots", out / "snapshots", copy_function=checkpoint.link_or_copy
        )
        checkpoint.link_or_copy(str(folder / "curve.jsonl"), str(out / "curve.jsonl"))
        write_json(out / "summary.json", summary)


def take_over(name: str, params: Params, shards: Shards, machine: launch.Machine) -> None:
    """Write the outputs from imported weights: no update, an empty curve, no snapshots. For the
    LSTM, of which there are none, no weights.

    Raises UserError where the weights have other sizes, or another vocabulary, than params.yaml.
    """
    summary: dict[str, object] = {
        "network": name,
        "source": "official",
        "updates": 0,
        "tokens": 0,
        "skipped_updates": 0,
        "train_tokens": shards.tokens("train"),
        "heldout_tokens": shards.tokens("heldout"),
    }
    with writing_folder(stage_folder("pretrain", name)) as out:
        (out / "snapshots").mkdir()
        (out / "curve.jsonl").touch()
        if name == "transformer":
            size, path = (
                int(shards.index["vocabulary_size"]),
                stage_folder("acquire", "weights", "official", "weights.safetensors"),
            )
            network = make_network(name, params, size, torch.Generator())
            description = describe(name, params, size, shards.index["vocabulary_fingerprint"])
            load_weights(path, description, network)
            save_weights(out / "weights.safetensors", network, description)
            windows = shards.heldout_windows(params.pretrain.heldout_windows, params.model.context)
            found = heldout_values(
                network, params.pretrain, windows, shards.words_per_token("heldout"), machine
            )
            summary |= {
                "vocabulary_size": size,
                "parameters": parameters_by_component(network),
                **found,
            }
        write_json(out / "summary.json", summary)


def main(name: str) -> None:
    """Read parameters and shards, train (in several processes where the machine says so), write the
    outputs.
    """
    params, machine = read_params(), launch.read_machine(over_hosts=True)
    if name not in NETWORKS:
        raise UserError(f"expected one of the networks {', '.join(NETWORKS)}; found {name}")
    shards = Shards.open(stage_folder("shard"))
    if params.pretrain.source == "official":
        launch.prepare(machine)
        take_over(name, params, shards, machine)
        return
    updates = number_of_updates(params, shards)
    if launch.spread(machine, "gpt1.stages", "pretrain", name):
        return
    launch.prepare(machine)
    recipe, context = params.pretrain, params.model.context
    vocabulary_size = int(shards.index["vocabulary_size"])
    network = make_network(
        name, params, vocabulary_size, torch.Generator().manual_seed(seed_for(recipe.seed))
    )
    description = describe(name, params, vocabulary_size, shards.index["vocabulary_fingerprint"])
    what_matters = [
        description.config,
        recipe.model_dump(exclude={"checkpoint_minutes"}),
        sha256_file(stage_folder("shard", "index.json")),
    ]
    folder = checkpoint.state_folder("pretrain", name, what_matters)
    corpus = Corpus(
        lambda update: shards.windows("train", recipe.seed, update, recipe.batch_size, context),
        shards.heldout_windows(recipe.heldout_windows, context),
        shards.words_per_token("heldout"),
        lambda update: shards.starts("train", recipe.seed, update, recipe.batch_size, context),
    )
    with tracked(live.start("pretrain", name, params, folder.name.rpartition("-")[2])) as report:
        outcome = pretrain(
            network,
            description,
            recipe,
            updates,
            corpus,
            machine,
            folder,
            report,
            checkpoint.code_hashes("pretrain"),
        )
    if machine.rank == 0:
        write_outputs(
            folder,
            network,
            description,
            {
                "network": name,
                "updates": updates,
                "tokens": updates * recipe.batch_size * context,
                "train_tokens": shards.tokens("train"),
                "heldout_tokens": shards.tokens("heldout"),
                "vocabulary_size": vocabulary_size,
                "parameters": parameters_by_component(network),
                "skipped_updates": outcome.skipped_updates,
                **outcome.heldout,
            },
        )
        write_json(
            LOGS / "pretrain" / f"{name}-speed.json",
            launch.facts(machine)
            | outcome.speed
            | {
                "seconds": outcome.seconds,
                "tokens_per_second": outcome.tokens_per_second,
            },
        )
        shutil.rmtree(folder)
