"""`generate SEED`: a pre-trained Transformer continues prompts and openings of held-out books."""

import sys
from dataclasses import replace

from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.shards import Shards
from gpt1.inference.generation import load_language_model, make_samples
from gpt1.params.schema import read_params
from gpt1.train import launch


def main(seed: str) -> None:
    """Continue every prompt in every way, score, write samples.json."""
    params, machine = read_params(), launch.read_machine()
    launch.prepare(replace(machine, deterministic=False))  # top-p's sum has no such form on a GPU
    weights = stage_folder("pretrain", "transformer", f"seed-{seed}", "weights.safetensors")
    model = load_language_model(weights, stage_folder("bpe"), machine.device)
    samples = make_samples(model, Shards.open(stage_folder("shard")), params.generate)
    with writing_folder(stage_folder("generate")) as folder:
        write_json(folder / "samples.json", samples)
    print(f"samples of {len(samples['prompts'])} prompts", file=sys.stderr)
