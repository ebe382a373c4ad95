"""Profile `official`: imported weights in the place of a pre-training."""

import json
import math
from pathlib import Path

import pytest
import torch
from made_data import CONTEXT, VOCABULARY, WORDS, paper, tiny_sizes, write_params, write_shards

from gpt1.corpus.shards import Shards
from gpt1.model.gpt import Decoder
from gpt1.model.weights import Description, read_weights, save_weights, transfer_weights
from gpt1.params.data import on_data
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.stages import pretrain

SIZES = tiny_sizes(CONTEXT, heads=2, feed_forward=32)
TASKS = {"cola", "mnli", "rte"}
OFFICIAL = Path("data/acquire/weights/official/weights.safetensors")


@pytest.fixture
def imported(elsewhere, monkeypatch):
    """Shards, parameters and imported weights in the current directory; the weights'
    description.
    """
    monkeypatch.setenv("GPT1_DEVICE", "cpu")
    write_params(elsewhere, pretrain__source="official", pretrain__precision="fp32")
    write_shards(Path("data/shard"))
    description = Description("transformer", SIZES.model_dump(), VOCABULARY, "f" * 16)
    save_weights(
        OFFICIAL,
        Decoder(SIZES, VOCABULARY, torch.Generator().manual_seed(5)),
        description,
    )
    return description


def test_the_stage_takes_the_weights_over_and_measures_them(imported):
    pretrain.main("transformer", "0")
    out = Path("data/pretrain/transformer/seed-0")
    assert (out / "weights.safetensors").read_bytes() == OFFICIAL.read_bytes()
    assert (out / "curve.jsonl").read_text() == ""
    assert list((out / "snapshots").iterdir()) == []
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["updates"], summary["tokens"], summary["source"]) == (0, 0, "official")
    assert summary["parameters"]["total"] == sum(
        tensor.numel() for tensor in read_weights(OFFICIAL)[1].values()
    )
    decoder = Decoder(SIZES, VOCABULARY, torch.Generator())
    transfer_weights(OFFICIAL, imported, decoder, "all")
    nats = []
    for window in torch.from_numpy(Shards.open(Path("data/shard")).heldout_windows(6, CONTEXT)):
        with torch.inference_mode():
            hidden_btd, embeddings = decoder(window[None, :-1])
            logits_tv = (hidden_btd @ embeddings.tokens_vd.T)[0].double()
        nats += [
            float(logits_tv[place].logsumexp(0) - logits_tv[place, token])
            for place, token in enumerate(window[1:].tolist())
        ]
    mean = math.fsum(nats) / len(nats)
    assert summary["heldout_loss"] == pytest.approx(mean, abs=1e-5)
    assert summary["heldout_word_perplexity"] == pytest.approx(math.exp(mean / WORDS), rel=1e-4)


def test_the_profile_leaves_out_what_only_a_pretraining_gives():
    values = on_data(compose("official", []), {"books", "official", *TASKS})
    params = validate(values)
    assert params.pretrain.source == params.bpe.source == "official"
    assert (set(params.sources), set(params.tasks)) == ({"books", "official", *TASKS}, TASKS)
    assert (params.networks.pretrain, params.networks.zero_shot) == (("transformer",), ())
    assert params.zero_shot == {}
    assert params.model == paper().model
    assert params.finetune == paper().finetune
    assert params.finetune.seeds == (0, 1, 2, 3, 4)
