"""`generate SEED`: the Transformer of a pre-training seed, of dvc.yaml the first, goes on with
prompts and with openings of held-out books; its held-out perplexity.

Writes samples.json, for the report, and samples.md, for reading.
"""

import sys

from gpt1.base.files import stage_folder, write_json, writing, writing_folder
from gpt1.corpus.shards import Shards
from gpt1.inference.loading import load_language_model
from gpt1.inference.samples import as_markdown, make_samples
from gpt1.params.schema import read_params
from gpt1.train import launch


def main(seed: str) -> None:
    """Load weights and vocabulary, measure perplexity, go on with every prompt in every way, score,
    write.
    """
    params, machine = read_params(), launch.read_machine()
    launch.prepare(machine)
    weights = stage_folder("pretrain", "transformer", f"seed-{seed}", "weights.safetensors")
    model = load_language_model(weights, stage_folder("bpe"), machine.device)
    rows_at_once = machine.micro_batch_for(model.network.context)
    about = make_samples(model, Shards.open(stage_folder("shard")), params.generate, rows_at_once)
    with writing_folder(stage_folder("generate")) as folder:
        write_json(folder / "samples.json", about)
        with writing(folder / "samples.md") as file:
            file.write(as_markdown(about))
    perplexity = about["perplexity"]
    print(
        f"held-out perplexity {perplexity['per_token']:.2f} for each token,"
        f" {perplexity['per_word']:.2f} for each word;"
        f" {sum(len(one['samples']) for one in about['prompts'])} samples of"
        f" {len(about['prompts'])} prompts",
        file=sys.stderr,
    )
