"""Pilot fine-tunings, judged by the dev score of a task that no claim is decided by: which recipe
suits a system?

    python benchmarks/pilot_finetunings.py FILE.csv none snli learning_rate=5e-4 …
    python benchmarks/pilot_finetunings.py FILE.csv lstm snli learning_rate=3e-3 batch_size=16 …

Systems: all, 0 (the embeddings alone), none (nothing pre-trained), lstm, lstm_equal. In the root of
a checkout whose data/encode has the task and whose data/pretrain has the networks, of the seeds in
params.yaml; a line appended to the file for each seed, and nothing else is kept. What is changed is
of the section `finetune`.
"""

import argparse
import csv
import shutil
import time
from contextlib import nullcontext
from datetime import date
from pathlib import Path

from gpt1.base.cores import cpu_name
from gpt1.base.files import read_json, stage_folder
from gpt1.params.recipes import finetune_recipe, pretraining_of
from gpt1.params.schema import PARAMS, NetworkName, read_params
from gpt1.params.strict import validated
from gpt1.params.yaml import parse_yaml
from gpt1.train.finetuning_data import FinetuningJob, finetune_job

COLUMNS = ("system", "task", "changes", "seed", "dev", "updates", "seconds", "processor", "date")
NETWORKS: dict[str, NetworkName] = {"lstm": "lstm", "lstm_equal": "lstm_equal"}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path)
    options.add_argument("system", choices=("all", "0", "none", *NETWORKS))
    options.add_argument("task")
    options.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    chosen = options.parse_args()
    params, network = read_params(), NETWORKS.get(chosen.system, "transformer")
    changes = {
        name: parse_yaml(value) for name, _, value in (c.partition("=") for c in chosen.changes)
    }
    if network == "transformer":
        changes["transfer"] = parse_yaml(chosen.system)
    recipe = finetune_recipe(params, chosen.task)
    recipe = validated(type(recipe), recipe.model_dump() | changes, "finetune", PARAMS)
    label = f"pilot-{chosen.system}-{chosen.task}"
    root = f"{label}-{'-'.join(chosen.changes).replace('/', '_')}"
    job = FinetuningJob(
        ("ablate", chosen.system, chosen.task),
        root,
        chosen.task,
        network,
        {"": recipe},
        {seed: pretraining_of(params, network, seed) for seed in recipe.seeds},
        root,
    )
    began = time.monotonic()
    finetune_job(params, job, lambda *_: nullcontext(lambda *_: None))
    seconds = (time.monotonic() - began) / len(recipe.seeds)
    fresh = not chosen.file.exists()
    with chosen.file.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        for seed in recipe.seeds:
            found = read_json(stage_folder("ablate", root, f"seed-{seed}") / "summary.json")
            line = {
                "system": chosen.system,
                "task": chosen.task,
                "changes": " ".join(chosen.changes),
                "seed": seed,
                "dev": round(found["best_dev_score"], 4),
                "updates": found["updates"],
                "seconds": round(seconds),
                "processor": cpu_name(),
                "date": date.today().isoformat(),
            }
            writer.writerow(line)
            print(*line.values())
    shutil.rmtree(stage_folder("ablate", root))  # else Table 5 would depend on it


if __name__ == "__main__":
    main()
