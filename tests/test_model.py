"""The network against facts of the paper, section 4.1, and against an independent forward pass in
numpy.
"""

import math

import numpy as np
import pytest
import torch

from gpt1.model import layout
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head, first_extract
from gpt1.model.layout import few, real_places
from gpt1.model.networks import parameters_by_component
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml

TINY = Model(
    context=12,
    width=16,
    layers=2,
    heads=4,
    feed_forward=64,
    embedding_deviation=0.3,
    weight_deviation=0.3,
    layer_norm_epsilon=1e-5,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def decoder(rows=20):
    return Decoder(TINY, rows, seeded())


def test_parameters_at_the_papers_size(root):
    paper = validate(read_yaml(root / "conf/paper.yaml"))
    with torch.device("meta"):
        parts = parameters_by_component(Decoder(paper.model, 40478, torch.Generator()))
    assert parts == {
        "token_embeddings": 31_087_104,
        "position_embeddings": 393_216,
        "attention": 28_348_416,
        "feed_forward": 56_669_184,
        "layer_norms": 36_864,
        "total": 116_534_784,
    }


@pytest.fixture
def root(request):
    return request.config.rootpath


def test_a_block_of_the_paper_has_7_087_872_parameters(root):
    paper = validate(read_yaml(root / "conf/paper.yaml"))
    with torch.device("meta"):
        block = Decoder(paper.model, 1, torch.Generator()).blocks[0]
    assert sum(parameter.numel() for parameter in block.parameters()) == 7_087_872


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


def numpy_forward(model, tokens):
    """Section 2 of the paper's supplement in float64, one sequence, one head at a time."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def norm(x, place):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * weights[f"{place}.weight"] + weights[f"{place}.bias"]

    def linear(x, place):
        return x @ weights[f"{place}.weight"].T + weights[f"{place}.bias"]

    x = weights["tokens"][tokens] + weights["positions"][: len(tokens)]
    d, head = TINY.width, TINY.width // TINY.heads
    for layer in range(TINY.layers):
        block = f"blocks.{layer}"
        qkv, mixed = linear(x, f"{block}.qkv"), []
        for h in range(TINY.heads):
            q, k, v = (qkv[:, part * d + h * head : part * d + (h + 1) * head] for part in range(3))
            scores = np.where(np.tri(len(tokens)) == 1, q @ k.T / math.sqrt(head), -np.inf)
            weights_tt = np.exp(scores - scores.max(1, keepdims=True))
            mixed.append(weights_tt / weights_tt.sum(1, keepdims=True) @ v)
        n = norm(
            x + linear(np.concatenate(mixed, 1), f"{block}.projection"), f"{block}.attention_norm"
        )
        inner = linear(n, f"{block}.expand")
        gelu = 0.5 * inner * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = norm(n + linear(gelu, f"{block}.contract"), f"{block}.feed_forward_norm")
    return x


def test_forward_is_the_papers():
    model = decoder()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and gains other than their start
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=seeded(1)))
    tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    hidden_btd = model(torch.from_numpy(tokens)[None]).hidden_btd
    np.testing.assert_allclose(
        hidden_btd[0].detach().numpy(), numpy_forward(model, tokens), atol=2e-5
    )


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_no_state_depends_on_what_comes_after(rate):
    model, tokens_bt = decoder(), torch.arange(10)[None]
    for position in (0, 4, 8):
        model.zero_grad()
        model(tokens_bt, rate).hidden_btd[0, position].square().sum().backward()
        assert model.positions.grad[position + 1 :].abs().max() == 0
        assert model.tokens.grad[position + 1 :].abs().max() == 0
        assert model.positions.grad[: position + 1].abs().sum(1).min() > 0 or rate


def test_padding_changes_nothing():
    model, tokens_bt = decoder(), torch.arange(6)[None]
    padded_bt = torch.cat([tokens_bt, torch.zeros(1, 5, dtype=torch.long)], 1)
    torch.testing.assert_close(model(padded_bt).hidden_btd[:, :6], model(tokens_bt).hidden_btd)


@pytest.mark.parametrize(("worth", "groups"), [(math.inf, 0), (100, 2)])
def test_little_is_computed_for_padding(worth, groups, monkeypatch):
    """States and gradients of ragged sequences are those of each sequence alone; places are one of
    few numbers, at most an eighth more than real tokens.
    """
    model, lengths = decoder(), (6, 1, 12)
    tokens_bt = torch.arange(3 * 12).view(3, 12) % 20
    monkeypatch.setitem(layout.WORTH_A_GROUP, "cpu", worth)
    real = real_places(torch.tensor(lengths), 12, tokens_bt.device)
    assert len(real.places_m) == 20
    assert len(real.groups) == groups
    assert len({few(m) for m in range(128, 256)}) == 9
    together_btd = model(tokens_bt, 0.0, real).hidden_btd
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


def head(combine, outputs=3):
    return Head(16, outputs, combine, 0.5, seeded())


def test_shapes_of_heads():
    states_bkd = torch.randn(4, 2, 16, generator=seeded())
    assert head("single")(states_bkd[:, :1]).shape == (4, 3)
    assert head("sum")(states_bkd).shape == (4, 3)
    assert head("choose", 2)(states_bkd).shape == (4, 2)
    assert sum(parameter.numel() for parameter in head("choose", 2).parameters()) == 17


def test_similarity_is_symmetric():
    model = Classifier(decoder(), head("sum"))
    a, b = [17, 1, 2, 18, 3, 4, 19], [17, 3, 4, 18, 1, 2, 19]
    one, other = (model(torch.tensor([pair])).logits_bo for pair in ([a, b], [b, a]))
    torch.testing.assert_close(one, other)
    assert not torch.allclose(one, model(torch.tensor([[a, a]])).logits_bo)


def test_classifier_reads_extract_from_the_last_row():
    model = Classifier(decoder(), head("single"))
    tokens_bkt = torch.tensor([[[17, 5, 19, 0, 0]], [[17, 5, 6, 7, 19]]])
    alone = model(tokens_bkt[:1, :, :3]).logits_bo
    torch.testing.assert_close(model(tokens_bkt).logits_bo[:1], alone)
