"""What precision asks for: real bfloat16 products where the processor knows them, the same rounding
in float32 where it does not.
"""

import pytest
import torch
from torch import nn

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml
from gpt1.train import precision, speed
from gpt1.train.launch import Machine
from gpt1.train.objectives import Pretraining

SIZES = Model(
    context=12,
    width=32,
    layers=2,
    heads=2,
    feed_forward=64,
    embedding_deviation=0.3,
    weight_deviation=0.2,
    layer_norm_epsilon=1e-5,
)
CPU = torch.device("cpu")


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def recipe(request):
    return validate(read_yaml(request.config.rootpath / "conf/paper.yaml")).pretrain


def gradients(network, context):
    """Loss and all gradients of one batch."""
    objective, windows_bt = (
        Pretraining(network, "fp32"),
        torch.randint(0, 40, (4, 13), generator=seeded(2)),
    )
    with context:
        loss = objective(windows_bt)["loss"]
    return loss.item(), torch.cat(
        [gradient.flatten() for gradient in torch.autograd.grad(loss, list(objective.parameters()))]
    )


def test_an_emulated_product_is_the_real_one():
    """torch's own bfloat16 product, however slow, and its gradients; sums in another order may
    round differently once.
    """
    results = []
    for context in (precision.Bf16Emulation(), torch.autocast("cpu", dtype=torch.bfloat16)):
        layer, x = nn.Linear(64, 48), torch.randn(20, 64, generator=seeded(1), requires_grad=True)
        with torch.no_grad():
            layer.weight.normal_(generator=seeded(2))
            layer.bias.normal_(generator=seeded(3))
        with context:
            y = layer(x)
        (y.float() * torch.randn(20, 48, generator=seeded(4))).sum().backward()
        results.append([y.detach().float(), x.grad, layer.weight.grad])
    for emulated, real in zip(*results, strict=True):
        assert (emulated == emulated.bfloat16().float()).all(), "it is not rounded"
        torch.testing.assert_close(emulated, real, rtol=2**-7, atol=1e-6)
        assert (emulated == real).float().mean() > 0.9


def test_emulation_is_as_far_from_float32_as_bfloat16_is():
    network = Decoder(SIZES, 40, seeded(0))
    _, exact = gradients(network, precision.nullcontext())
    distances = [
        float((gradients(network, context)[1] - exact).norm() / exact.norm())
        for context in (precision.Bf16Emulation(), torch.autocast("cpu", dtype=torch.bfloat16))
    ]
    assert distances[0] == pytest.approx(distances[1], rel=0.3)
    assert 1e-3 < distances[0] < 3e-2


def test_the_lstm_runs_emulated():
    network = Lstm(SIZES, 48, 40, seeded(0))
    (loss, found), (exact_loss, exact) = (
        gradients(network, context)
        for context in (precision.Bf16Emulation(), precision.nullcontext())
    )
    assert loss == pytest.approx(exact_loss, rel=1e-3)
    assert 1e-3 < float((found - exact).norm() / exact.norm()) < 5e-2


@pytest.mark.parametrize(
    ("wanted", "native", "expected"),
    [
        ("fp32", True, "fp32"),
        ("fp32", False, "fp32"),
        ("bf16", True, "bf16"),
        ("bf16", False, "bf16 emulated"),
    ],
)
def test_the_processor_decides_how_not_what(wanted, native, expected, monkeypatch):
    monkeypatch.setattr(precision, "native_bf16", lambda: native)
    assert precision.arithmetic(CPU, wanted) == expected
    assert precision.arithmetic(torch.device("cuda"), wanted) == wanted


def test_emulation_ends_with_its_block(monkeypatch):
    monkeypatch.setattr(precision, "native_bf16", lambda: False)
    x = torch.full((1, 1), 1.0 + 2**-12)
    with precision.in_precision(CPU, "bf16"):
        assert (x @ torch.ones(1, 1)).item() == 1.0
    assert (x @ torch.ones(1, 1)).item() > 1.0


def test_norms_are_of_float32_sums_where_products_are_of_bfloat16():
    network, seen = Decoder(SIZES, 40, seeded(0)), []
    for block in network.blocks:
        block.qkv.register_forward_hook(lambda _, given, made: seen.append(made.dtype))
        for norm in (block.attention_norm, block.feed_forward_norm):
            norm.register_forward_hook(lambda *call: seen.append(call))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        network(torch.randint(0, 40, (4, 12), generator=seeded(2)))
    assert len(seen) == 3 * SIZES.layers
    assert set(seen[::3]) == {torch.bfloat16}
    for norm, (sums_md,), normed_md in (*seen[1::3], *seen[2::3]):
        assert sums_md.dtype == normed_md.dtype == torch.float32
        torch.testing.assert_close(
            normed_md.double(), norm.double()(sums_md.double()), rtol=1e-5, atol=1e-5
        )
        norm.float()


@pytest.mark.parametrize(
    ("processor", "tokens", "setting", "compiled"),
    [
        ("amx", 10**12, None, "blocks"),
        ("amx", 1000, None, "no"),
        ("amx", 1000, True, "blocks"),
        ("amx", 10**12, False, "no"),
        ("amx", 0, True, "no"),
        ("avx512_bf16", 10**12, None, "no"),
        ("avx512_bf16", 1000, True, "blocks"),
        ("avx2", 10**12, None, "no"),
        ("avx2", 10**12, True, "no"),
        ("avx2", 0, True, "no"),
    ],
)
def test_compiled_where_it_pays(recipe, processor, tokens, setting, compiled, monkeypatch):
    monkeypatch.setattr(speed, "native_amx", lambda: processor == "amx")
    monkeypatch.setattr(precision, "native_bf16", lambda: processor != "avx2")
    monkeypatch.setattr(speed.shutil, "which", lambda _: "c++")
    network = Decoder(SIZES, 40, seeded(0))
    machine = Machine("cpu", 1, compiled=setting)
    assert speed.speed_up(network, recipe, machine, tokens)["compiled"] == compiled
    monkeypatch.setattr(speed.shutil, "which", lambda _: None)
    assert speed.speed_up(network, recipe, machine, tokens)["compiled"] == "no", (
        "without a compiler it runs all the same"
    )
    assert not network.compiled
