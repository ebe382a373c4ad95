"""What a pre-training reads of the shards, how many updates it makes of them, and what it writes;
the same outputs from imported weights, without an update.
"""

import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpt1.base.errors import UserError
from gpt1.base.files import link_or_copy, sha256_file, write_json, writing_folder
from gpt1.corpus.shards import SPLITS, Shards
from gpt1.model.lstm import Network
from gpt1.model.networks import make_network, parameters_by_component
from gpt1.model.weights import Description, load_weights, save_weights
from gpt1.params.schema import Params, Pretrain
from gpt1.train import checkpoint
from gpt1.train.checkpoint import note_finished
from gpt1.train.engine import Engine
from gpt1.train.launch import Machine
from gpt1.train.loop import Stop, seed_for
from gpt1.train.objectives import Pretraining
from gpt1.train.pretraining import (
    Corpus,
    Pretrained,
    PretrainingRun,
    heldout_values,
    named_where_it_goes_on,
)


def corpus_of(shards: Shards, recipe: Pretrain, seed: int, context: int) -> Corpus:
    """The windows of the shards that a recipe draws from a seed."""
    return Corpus(
        partial(shards.starts, "train", seed, batch_size=recipe.batch_size, context=context),
        partial(shards.windows, "train", context=context),
        shards.heldout_windows(recipe.heldout_windows, context),
        shards.words_per_token("heldout"),
    )


def number_of_updates(params: Params, shards: Shards) -> int:
    """pretrain.updates, or as many as make pretrain.epochs passes over the training tokens.

    Raises UserError where that is none, where the warm-up is longer, or where no book is longer
    than the context.
    """
    context, recipe, tokens = params.model.context, params.pretrain, shards.tokens("train")
    for split in SPLITS:
        shards.starts(split, 0, 0, 1, context)  # refuses books that are all shorter
    updates = recipe.updates
    if updates is None:
        # Windows are drawn with replacement, so an epoch is an expectation.
        updates = round((recipe.epochs or 0) * tokens / (recipe.batch_size * context))
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


def run_folder(recipe: Pretrain, shards: Shards, description: Description, seed: int) -> Path:
    """The folder of one seed's checkpoints and, as soon as it is finished, of its outputs."""
    what_matters = [
        description.config,
        recipe.model_dump(exclude={"checkpoint_minutes", "seeds"}) | {"seed": seed},
        sha256_file(shards.folder / "index.json"),
    ]
    return checkpoint.state_folder("pretrain", f"{description.kind}-seed-{seed}", what_matters)


def make_run(
    params: Params,
    shards: Shards,
    description: Description,
    seed: int,
    updates: int,
    machine: Machine,
    code: str,
) -> PretrainingRun:
    """A freshly drawn network, and the folder of the checkpoints that its run may go on from."""
    recipe, name, rows = params.pretrain, description.kind, description.vocabulary_size
    return PretrainingRun(
        make_network(name, params, rows, torch.Generator().manual_seed(seed_for(seed))),
        description,
        recipe,
        seed,
        updates,
        corpus_of(shards, recipe, seed, params.model.context),
        machine,
        run_folder(recipe, shards, description, seed),
        code,
    )


def summary_of(
    shards: Shards, description: Description, network: Network | None, **values: Any
) -> dict[str, Any]:
    """What summary.json says of the corpus, of the network where there is one, and of the run."""
    summary = {
        "network": description.kind,
        "train_tokens": shards.tokens("train"),
        "heldout_tokens": shards.tokens("heldout"),
        **values,
    }
    if network is not None:
        summary["vocabulary_size"] = description.vocabulary_size
        summary["parameters"] = parameters_by_component(network)
    return summary


def keep_seed(run: PretrainingRun, shards: Shards, trained: Pretrained) -> None:
    """Keep a finished seed until the stage ends: weights, summary, snapshots and curve; its
    checkpoints go.
    """
    summary = summary_of(
        shards,
        run.description,
        run.network,
        updates=run.updates,
        tokens=run.updates * run.recipe.batch_size * run.network.context,
        **trained.heldout,
    )
    finished = run.folder / f"seed-{run.seed}"
    whole = named_where_it_goes_on(f"{run.description.kind} {finished.name}", run.folder)
    with whole, writing_folder(finished) as new:
        save_weights(new / "weights.safetensors", run.network, run.description)
        link = link_or_copy
        shutil.copytree(run.folder / "snapshots", new / "snapshots", copy_function=link)
        shutil.copyfile(run.folder / "curve.jsonl", new / "curve.jsonl")
        write_json(new / "summary.json", summary)
        note_finished(new, run.code)
    for path in run.folder.glob("update-*"):
        shutil.rmtree(path)


def take_over(
    out: Path,
    weights: Path,
    seed: int,
    params: Params,
    shards: Shards,
    description: Description,
    machine: Machine,
) -> None:
    """Write the outputs of a seed from imported weights: no update, an empty curve, no snapshots.

    Raises UserError where the weights have other sizes, or another vocabulary, than wanted, or make
    no finite loss of the held-out books.
    """
    recipe = params.pretrain
    with writing_folder(out) as new:
        (new / "snapshots").mkdir(parents=True)
        (new / "curve.jsonl").touch()
        network = make_network(
            description.kind, params, description.vocabulary_size, torch.Generator()
        )
        load_weights(weights, description, network)
        save_weights(new / "weights.safetensors", network, description)
        engine = Engine(Pretraining(network.to(machine.device), recipe.precision), recipe)
        corpus = corpus_of(shards, recipe, seed, network.context)
        rows = machine.micro_batch_for(network.context)
        heldout = heldout_values(engine, corpus, rows, Stop())
        if not all(map(math.isfinite, heldout.values())):
            raise UserError(
                f"{weights.parent}: expected a finite loss on the held-out books, found none; bring"
                " the weights again: gpt1 import FOLDER"
            )
        run = {"source": "official", "updates": 0, "tokens": 0}
        write_json(new / "summary.json", summary_of(shards, description, network, **run, **heldout))
