"""`zero_shot NETWORK SEED`: every snapshot of a pre-training answers the zero-shot sets (paper,
section 5, Figure 2 right): scores.json, answers.npz.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, write_json, writing_folder
from gpt1.inference.zero_shot import answer_sets, in_words, one_vocabulary, read_set
from gpt1.model.networks import describe, make_network
from gpt1.params.recipes import network_and_seed
from gpt1.params.schema import NetworkName, Params, read_params
from gpt1.train import launch
from gpt1.train.schedules import snapshot_updates


def snapshots_of(name: NetworkName, seed: int, params: Params) -> dict[int, Path]:
    """{update: file} of a pre-training's snapshots in order. Raises UserError naming the first that
    is missing.
    """
    folder = stage_folder("pretrain", name, f"seed-{seed}")
    if not (folder / "summary.json").is_file():
        raise UserError(
            f"{folder / 'summary.json'} is not there; run dvc repro pretrain@{name}-{seed}"
        )
    last = read_json(folder / "summary.json")["updates"]
    paths = {
        update: folder / "snapshots" / f"{update:08d}.safetensors"
        for update in sorted(snapshot_updates(last, params.pretrain.snapshots_per_decade))
    }
    if missing := [path for path in paths.values() if not path.is_file()]:
        raise UserError(
            f"{missing[0]}: expected the snapshots of {len(paths)} updates, found"
            f" {len(paths) - len(missing)} of them; run dvc repro -f pretrain@{name}-{seed}"
        )
    return paths


def main(name: str, number: str) -> None:
    """Read sets and snapshots, let every snapshot answer every set, write answers and scores."""
    params, machine = read_params(), launch.read_machine()
    kind, seed = network_and_seed(name, number)
    launch.prepare(machine)
    device, context = torch.device(machine.device), params.model.context
    batch_tokens = machine.micro_batch_for(context) * context
    sets = {one: read_set(stage_folder("prompt", one), batch_tokens) for one in params.zero_shot}
    about: dict[str, Any] = {"network": kind, "snapshots": [], "sets": {}}
    arrays: dict[str, Any] = {}
    if sets:
        wanted = describe(kind, params, *one_vocabulary(sets))
        rows = wanted.vocabulary_size
        network = make_network(kind, params, rows, torch.Generator()).to(device)
        files = snapshots_of(kind, seed, params)
        tokens = params.pretrain.batch_size * context
        about, arrays = answer_sets(sets, files, network, wanted, tokens)
    with writing_folder(stage_folder("zero_shot", kind, f"seed-{seed}")) as folder:
        np.savez(folder / "answers.npz", allow_pickle=False, **arrays)
        write_json(folder / "scores.json", about)
    for line in in_words(about):
        print(f"pre-training seed {seed}: {line}", file=sys.stderr)
