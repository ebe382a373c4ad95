"""The paper's dropouts: rates and scales at every place, one mask where the authors' code has one,
and masks that follow seed, update, process and micro-batch alone.
"""

import numpy as np
import pytest
import torch
from made_data import paper, seeded, tiny_sizes

from gpt1.model.gpt import Decoder, dropped
from gpt1.model.heads import Classifier, Head
from gpt1.model.lstm import Lstm
from gpt1.train import optim
from gpt1.train.engine import Engine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining

SIZES = tiny_sizes(context=12, heads=2, feed_forward=32, deviation=0.3)
ROWS = 20


def network_of(kind):
    if kind == "lstm":
        return Lstm(SIZES, 16, ROWS, seeded(0))
    return Decoder(SIZES, ROWS, seeded(0))


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_rate_and_scale(rate):
    torch.manual_seed(0)
    found = dropped(torch.full((2000, 768), 2.0), rate)
    share = float((found == 0).float().mean())
    assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / found.numel())
    assert torch.allclose(found[found != 0], torch.tensor(2 / (1 - rate)))
    assert found.mean().item() == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_the_embedding_matrix_is_dropped_once_for_inputs_and_softmax(kind):
    """One mask over tokens and positions, as in the authors' code."""
    network, tokens_bt = network_of(kind), torch.arange(12)[None]
    torch.manual_seed(1)
    embeddings = network(tokens_bt, 0.5).embeddings
    whole = [network.tokens] + ([network.positions] if kind == "transformer" else [])
    rows_vd, plain_vd = embeddings.all_rows_vd(), torch.cat(whole)
    kept = rows_vd != 0
    assert 0.3 < 1 - kept.float().mean() < 0.7
    torch.testing.assert_close(rows_vd[kept], 2 * plain_vd[kept])


def test_every_place_of_a_block_has_a_mask_of_its_own(monkeypatch):
    masks, hidden = [], []

    def watched(x, rate):
        masks.append(dropped(torch.ones_like(x), rate))
        return x * masks[-1]

    monkeypatch.setattr("gpt1.model.gpt.dropped", watched)
    network, tokens_bt = Decoder(SIZES, ROWS, seeded(0)), torch.zeros(1, 12, dtype=torch.long)
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        hidden.append(network(tokens_bt, 0.4).hidden_btd)
    assert torch.equal(hidden[0], hidden[1])
    assert not torch.equal(hidden[0], hidden[2])
    places = len(masks) // 3
    each = "the embeddings; of each block attention, its projection, the feed-forward part"
    assert places == 1 + 3 * SIZES.layers, each
    assert len({tuple(mask.flatten().tolist()) for mask in masks[:places]}) == places


def test_the_sequences_of_an_example_have_masks_of_their_own_but_one_at_the_classifier():
    torch.manual_seed(5)
    head = Head(16, 1, "choose", 0.3, seeded(0))
    logits_bk = head(torch.ones(64, 4, 16), 0.5)
    torch.testing.assert_close(logits_bk, logits_bk[:, :1].expand(-1, 4))
    assert logits_bk[:, 0].round(decimals=3).unique().numel() > 32, "each example has its own"
    classifier = Classifier(Decoder(SIZES, ROWS, seeded(0)), head)
    hidden_ntd = classifier(torch.tensor([1, 2, 3, 19]).expand(2, 3, 4), 0.3).hidden_ntd
    assert (hidden_ntd[0] - hidden_ntd[1]).abs().max() > 0.01


def test_classifier_dropout_is_applied_once_and_scaled():
    torch.manual_seed(6)
    classifier = Head(16, 3, "single", 0.5, seeded(0))
    logits = classifier(torch.ones(10_000, 1, 16), 0.3)
    torch.testing.assert_close(logits.mean(0), classifier.linear.weight.sum(1), atol=0.05, rtol=0)


def first_loss(rank=0, seed=5, update=3, micro_batches=1):
    """The loss of an update with dropout, of the batch [0, 1, …] in so many equal micro-batches;
    whatever was drawn before has no say.
    """
    recipe = paper().pretrain
    recipe = recipe.model_copy(update={"dropout": 0.3, "precision": "fp32"})
    engine = Engine(Pretraining(Decoder(SIZES, ROWS, seeded(0)), "fp32"), recipe)
    engine.rank = rank
    windows = torch.arange(4 * 10).view(4, 10) % ROWS
    parts = [MicroBatch(1 / micro_batches, part) for part in windows.chunk(micro_batches)]
    torch.manual_seed(np.random.default_rng().integers(2**31))
    rates = optim.rates(recipe, update, 100, 0.2)
    return take_update(engine, parts, 0.3, seed, update, rates, Stop())["loss"]


def test_masks_follow_seed_update_process_and_micro_batch():
    assert first_loss() == first_loss(), "a resumed run draws the same"
    losses = [
        first_loss(),
        first_loss(seed=6),
        first_loss(update=4),
        first_loss(rank=1),
        first_loss(micro_batches=2),
    ]
    assert len(set(losses)) == len(losses)


def test_the_micro_batches_of_an_update_have_masks_of_their_own():
    """Of two equal halves each with its mask, the mean loss is no half's."""
    recipe = paper().pretrain.model_copy(update={"dropout": 0.3, "precision": "fp32"})
    engine = Engine(Pretraining(Decoder(SIZES, ROWS, seeded(0)), "fp32"), recipe)
    seen = []
    forward = engine.forward
    engine.forward = lambda *given: seen.append(forward(*given)) or seen[-1]
    half = MicroBatch(0.5, torch.arange(20).view(2, 10) % ROWS)
    take_update(engine, [half, half], 0.3, 5, 3, optim.rates(recipe, 3, 100, 0.2), Stop())
    assert seen[0]["loss"] != seen[1]["loss"]
