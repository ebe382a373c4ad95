"""`zero_shot NETWORK SEED`: every snapshot of a pre-training answers the zero-shot sets (paper,
section 5, Figure 2 right).
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.base.files import read_json_file, stage_folder, write_json, writing_folder
from gpt1.inference.zero_shot import answer_sets, read_set
from gpt1.model.networks import describe, make_network
from gpt1.params.recipes import network_and_seed
from gpt1.params.schema import NetworkName, Params, read_params
from gpt1.train import launch
from gpt1.train.schedules import snapshot_updates


def snapshots_of(name: NetworkName, seed: int, params: Params) -> dict[int, Path]:
    """Return {update: file} of a pre-training's snapshots, in order. Raises UserError where it is
    not finished.
    """
    folder = stage_folder("pretrain", name, f"seed-{seed}")
    summary = read_json_file(folder / "summary.json", f"run dvc repro pretrain@{name}-{seed}")
    updates = snapshot_updates(summary["updates"], params.pretrain.snapshots_per_decade)
    return {
        update: folder / "snapshots" / f"{update:08d}.safetensors" for update in sorted(updates)
    }


def main(name: str, number: str) -> None:
    """Let every snapshot answer every set."""
    params, machine = read_params(), launch.read_machine()
    kind, seed = network_and_seed(name, number)
    launch.prepare(machine)
    context = params.model.context
    sets = [read_set(stage_folder("prompt", name)) for name in params.zero_shot]
    snapshots: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    if sets:
        vocabulary = [sets[0].about[f"vocabulary_{fact}"] for fact in ("size", "fingerprint")]
        network = make_network(kind, params, vocabulary[0], torch.Generator()).to(machine.device)
        batch_tokens = machine.micro_batch_for(context) * context
        description, files = describe(kind, params, *vocabulary), snapshots_of(kind, seed, params)
        snapshots, arrays = answer_sets(sets, files, network, description, batch_tokens)
    for snapshot in snapshots:
        snapshot["tokens"] = snapshot["update"] * params.pretrain.batch_size * context
    about_sets = {
        set_.name: {key: set_.about[key] for key in ("title", "metric", "random", "notes")}
        | {"examples": len(set_.scored.labels_n), "split": set_.about["scored_split"]}
        for set_ in sets
    }
    with writing_folder(stage_folder("zero_shot", kind, f"seed-{seed}")) as folder:
        np.savez(folder / "answers.npz", allow_pickle=False, **arrays)
        about = {"network": kind, "snapshots": snapshots, "sets": about_sets}
        write_json(folder / "scores.json", about)
    for name, about in about_sets.items():
        first, last = (snapshots[index]["scores"][name] for index in (0, -1))
        print(
            f"seed {seed}, {name}: {about['metric']} {first:.3f} by the first snapshot,"
            f" {last:.3f} by the last (guessing {about['random']})",
            file=sys.stderr,
        )
