"""Pilot pre-trainings, judged by held-out text alone: how far do so many tokens bring a network of
such sizes at such a rate?

    python benchmarks/pilots.py FILE.csv transformer model.width=192 pretrain.updates=1000 …
    python benchmarks/pilots.py FILE.csv lstm lstm.units=244 lstm.learning_rate=5e-3 …

In the root of a checkout whose params.yaml is a profile's and whose data/shard is made (`gpt1 run
shard`); the parameters named change for this pilot alone, and nothing is kept of it but a line
appended to the file: what was changed, sizes, tokens, held-out nats a token at the end and on the
way (whose learning rate was not low yet), nats a word, by which vocabularies compare, seconds, of
the clock and of processor time, which other work on the machine lengthens less, the arithmetic and
the processor. The same words again are not run again.
"""

import argparse
import csv
import json
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from gpt1.base.cores import cpu_name
from gpt1.base.files import stage_folder
from gpt1.corpus.shards import Shards
from gpt1.model.networks import describe, parameters_by_component
from gpt1.params.recipes import pretraining_params
from gpt1.params.schema import PARAMS, NetworkName, Params, validate
from gpt1.params.yaml import parse_yaml
from gpt1.train import launch
from gpt1.train.precision import arithmetic
from gpt1.train.pretraining import pretrain
from gpt1.train.pretraining_data import make_run, number_of_updates

COLUMNS = (
    "network",
    "changes",
    "parameters",
    "embeddings",
    "tokens",
    "nats_a_token",
    "nats_a_word",
    "on_the_way",
    "seconds",
    "processor_seconds",
    "tokens_a_second",
    "threads",
    "arithmetic",
    "processor",
    "date",
)


def changed(changes: list[str]) -> Params:
    """params.yaml with parameters changed by dotted names; values are YAML."""
    tree = parse_yaml(Path(PARAMS).read_text(encoding="utf-8"))
    for change in changes:
        name, _, value = change.partition("=")
        *sections, key = name.split(".")
        place = tree
        for section in sections:
            place = place[section]
        if key not in place:
            raise SystemExit(f"expected a parameter of {PARAMS}; found {name}")
        place[key] = parse_yaml(value)
    return validate(tree)


def pilot(network: NetworkName, params: Params) -> dict[str, Any]:
    """Pre-train the first seed, in a folder that goes with it; a line of the file."""
    params, shards = pretraining_params(params, network), Shards.open(stage_folder("shard"))
    vocabulary = shards.index["vocabulary_size"], shards.index["vocabulary_fingerprint"]
    machine, updates = launch.read_machine(), number_of_updates(params, shards)
    launch.prepare(machine)
    seed, per_update = params.pretrain.seeds[0], params.pretrain.batch_size * params.model.context
    way: dict[int, float] = {}

    def note(update: int, values: Any) -> None:
        if "heldout_loss" in values:
            way[update * per_update] = round(values["heldout_loss"], 4)

    with TemporaryDirectory() as folder:
        description = describe(network, params, *vocabulary)
        run = make_run(params, shards, description, seed, updates, machine, {})
        sizes, began = parameters_by_component(run.network), time.monotonic()
        began_at_work = time.process_time()
        trained = pretrain(replace(run, folder=Path(folder)), note)
    seconds, nats = time.monotonic() - began, trained.heldout["heldout_loss"]
    return {
        "parameters": sizes["total"],
        "embeddings": sum(count for name, count in sizes.items() if "embedding" in name),
        "tokens": updates * per_update,
        "nats_a_token": round(nats, 4),
        "nats_a_word": round(nats / run.corpus.heldout_words_per_token, 4),
        "on_the_way": json.dumps(way),
        "seconds": round(seconds),
        "processor_seconds": round(time.process_time() - began_at_work),
        "tokens_a_second": round(updates * per_update / seconds),
        "threads": machine.threads,
        "arithmetic": arithmetic(torch.device(machine.device), params.pretrain.precision),
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path)
    options.add_argument("network", choices=("transformer", "lstm", "lstm_equal"))
    options.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    chosen = options.parse_args()
    line = {"network": chosen.network, "changes": " ".join(chosen.changes)}
    if chosen.file.exists():
        with chosen.file.open(newline="", encoding="utf-8") as file:
            done = [row for row in csv.DictReader(file) if line.items() <= row.items()]
        if done:
            print(f"done on {done[0]['date']}: {done[0]['nats_a_token']} nats a token")
            return
    found = pilot(chosen.network, changed(chosen.changes))
    line |= found | {"processor": cpu_name(), "date": date.today().isoformat()}
    fresh = not chosen.file.exists()
    with chosen.file.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerow(line)
    print(f"{line['network']} {line['changes']}: {line['nats_a_token']} nats a token")


if __name__ == "__main__":
    main()
