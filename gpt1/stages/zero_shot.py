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
from gpt1.model.networks import describe, make_network
from gpt1.params.schema import PARAMS, NetworkName, Params, read_params
from gpt1.train import launch
from gpt1.train.schedules import snapshot_updates


def snapshots_of(name: NetworkName, seed: int, params: Params) -> dict[int, Path]:
    """{update: file} of a pre-training's snapshots in order. Raises UserError naming the first that
    is missing.
    """
    folder = stage_folder("pretrain", name, f"seed-{seed}")
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


def main(name: str) -> None:
    """Read sets and snapshots, let every snapshot of the row's pre-trainings answer every set,
    write answers and scores.
    """
    params, machine = read_params(), launch.read_machine()
    if name not in params.stages.zero_shot:
        raise UserError(
            f"expected one of the rows stages.zero_shot of {PARAMS}:"
            f" {', '.join(params.stages.zero_shot)}; found {name}"
        )
    stage = params.stages.zero_shot[name]
    launch.prepare(machine)
    device, context = torch.device(machine.device), params.model.context
    batch_tokens = machine.micro_batch_for(context) * context
    sets = {one: read_set(stage_folder("prompt", one), batch_tokens) for one in params.zero_shot}
    nothing: dict[str, Any] = {"network": stage.network, "snapshots": [], "sets": {}}
    found: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {
        seed: (nothing, {}) for seed in stage.seeds
    }
    if sets:
        wanted = describe(stage.network, params, *one_vocabulary(sets))
        rows = wanted.vocabulary_size
        network = make_network(stage.network, params, rows, torch.Generator()).to(device)
        tokens = params.pretrain.batch_size * context
        for seed in stage.seeds:
            files = snapshots_of(stage.network, seed, params)
            found[seed] = answer_sets(sets, files, network, wanted, tokens)
    out, root = stage_folder("zero_shot", stage.folder), stage_folder("zero_shot", stage.network)
    with writing_folder(out) as whole:
        for seed, (about, arrays) in found.items():
            folder = whole / (root / f"seed-{seed}").relative_to(out)
            folder.mkdir(exist_ok=True)
            np.savez(folder / "answers.npz", allow_pickle=False, **arrays)
            write_json(folder / "scores.json", about)
    for seed, (about, _) in found.items():
        for line in in_words(about):
            print(f"pre-training seed {seed}: {line}", file=sys.stderr)
