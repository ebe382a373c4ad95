"""`zero_shot`: every snapshot of every pre-training answers the zero-shot sets (paper, section 5,
Figure 2 right): seed-<n>/scores.json, answers.npz.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, write_json, writing_folder
from gpt1.inference.zero_shot import answer_sets, in_words, one_vocabulary, read_set
from gpt1.model.networks import check_name, describe, make_network
from gpt1.params.recipes import pretraining_of
from gpt1.params.schema import NetworkName, Params, read_params
from gpt1.train import launch
from gpt1.train.schedules import snapshot_updates


def snapshots_of(name: NetworkName, seed: int, params: Params) -> dict[int, Path]:
    """{update: file} of a pre-training's snapshots in order. Raises UserError naming the first that
    is missing.
    """
    folder = pretraining_of(params, name, seed)
    if not (folder / "summary.json").is_file():
        raise UserError(f"{folder / 'summary.json'} is not there; run dvc repro pretrain@{name}")
    last = read_json(folder / "summary.json")["updates"]
    paths = {
        update: folder / "snapshots" / f"{update:08d}.safetensors"
        for update in sorted(snapshot_updates(last, params.pretrain.snapshots_per_decade))
    }
    if missing := [path for path in paths.values() if not path.is_file()]:
        raise UserError(
            f"{missing[0]}: expected the snapshots of {len(paths)} updates, found"
            f" {len(paths) - len(missing)} of them; run dvc repro -f pretrain@{name}"
        )
    return paths


def main(name: NetworkName) -> None:
    """Read sets and snapshots, let every snapshot of every pre-training answer every set, write
    answers and scores.
    """
    params, machine = read_params(), launch.read_machine()
    check_name(name)
    launch.prepare(machine)
    device, context = torch.device(machine.device), params.model.context
    batch_tokens = machine.micro_batch_for(context) * context
    sets = {one: read_set(stage_folder("prompt", one), batch_tokens) for one in params.zero_shot}
    found: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {
        seed: ({"network": name, "snapshots": [], "sets": {}}, {}) for seed in params.pretrain.seeds
    }
    if sets:
        wanted = describe(name, params, *one_vocabulary(sets))
        network = make_network(name, params, wanted.vocabulary_size, torch.Generator()).to(device)
        tokens = params.pretrain.batch_size * context
        for seed in params.pretrain.seeds:
            files = snapshots_of(name, seed, params)
            found[seed] = answer_sets(sets, files, network, wanted, tokens)
    with writing_folder(stage_folder("zero_shot", name)) as whole:
        for seed, (about, arrays) in found.items():
            folder = whole / f"seed-{seed}"
            folder.mkdir()
            np.savez(folder / "answers.npz", allow_pickle=False, **arrays)
            write_json(folder / "scores.json", about)
    for seed, (about, _) in found.items():
        several = f"pre-training seed {seed}: " if len(found) > 1 else ""
        for line in in_words(about):
            print(f"{several}{line}", file=sys.stderr)
