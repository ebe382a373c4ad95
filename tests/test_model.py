"""The network against facts of the paper, section 4.1, and against an independent forward pass in
numpy.
"""

import math

import numpy as np
import pytest
import torch
from by_hand import states
from made_data import paper, seeded, tiny_sizes

from gpt1.model import packing
from gpt1.model.gpt import Decoder
from gpt1.model.heads import first_extract
from gpt1.model.networks import parameters_by_component
from gpt1.model.packing import computed_places, round_up

TINY = tiny_sizes(context=12, deviation=0.3)


def decoder(rows=20):
    return Decoder(TINY, rows, seeded())


def test_parameters_at_the_papers_size():
    with torch.device("meta"):
        parts = parameters_by_component(Decoder(paper().model, 40478, torch.Generator()))
    assert parts == {
        "token_embeddings": 31_087_104,
        "position_embeddings": 393_216,
        "attention": 28_348_416,
        "feed_forward": 56_669_184,
        "layer_norms": 36_864,
        "total": 116_534_784,
    }


def test_start_of_training():
    sizes = TINY.model_copy(
        update={
            "width": 128,
            "feed_forward": 512,
            "embedding_deviation": 0.02,
            "weight_deviation": 0.05,
        }
    )
    model = Decoder(sizes, 500, seeded())
    assert model.tokens.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.positions.std().item() == pytest.approx(0.02, rel=0.1)
    for name, parameter in model.blocks.named_parameters():
        if parameter.ndim == 2:
            assert parameter.std().item() == pytest.approx(0.05, rel=0.05)
        else:
            assert torch.equal(
                parameter, torch.full_like(parameter, float(name.endswith("norm.weight")))
            )


@pytest.mark.parametrize("fused_attention", [False, True])
def test_forward_is_the_papers(fused_attention):
    model = decoder()
    model.speed_up(False, fused_attention)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and gains other than their start
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=seeded(1)))
    tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    hidden_btd = model(torch.from_numpy(tokens)[None]).hidden_btd
    np.testing.assert_allclose(hidden_btd[0].detach().numpy(), states(model, tokens), atol=2e-5)


@pytest.mark.parametrize(("worth", "groups"), [(math.inf, 0), (100, 2)])
def test_little_is_computed_for_padding(worth, groups, monkeypatch):
    """States and gradients of ragged sequences are those of each sequence alone; places are one of
    few numbers, at most an eighth more than real tokens.
    """
    model, lengths = decoder(), (6, 1, 12)
    tokens_bt = torch.arange(3 * 12).view(3, 12) % 20
    monkeypatch.setitem(packing.WORTH_A_GROUP, "cpu", worth)
    computed = computed_places(torch.tensor(lengths), 12, tokens_bt.device)
    assert len(computed.places_m) == 20
    assert len(computed.groups) == groups
    assert len({round_up(m) for m in range(128, 256)}) == 9
    together_btd = model(tokens_bt, 0.0, computed).hidden_btd
    sum(together_btd[row, :length].square().sum() for row, length in enumerate(lengths)).backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    for row, length in enumerate(lengths):
        alone_td = model(tokens_bt[row : row + 1, :length]).hidden_btd[0]
        alone_td.square().sum().backward()
        torch.testing.assert_close(together_btd[row, :length], alone_td)
    for together, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(together, parameter.grad, rtol=1e-4, atol=1e-4)


def test_the_first_extract_counts():
    assert first_extract(torch.tensor([[1, 9, 9, 9, 0], [1, 2, 3, 9, 9]]), 9).tolist() == [1, 3]
