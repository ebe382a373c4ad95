"""What only a GPU can show: `pytest -m gpu tests/test_gpu.py` on a machine that has one. Without one
all is skipped; GPT1_REHEARSE=1 runs it on the CPU, where it shows that the tests run.
"""

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import test_fidelity
import torch
from many_processes import BATCH, ROWS, load, recipe, save
from torch.nn import functional as F

from gpt1.model.gpt import Decoder
from gpt1.params.schema import Model
from gpt1.train import losses, optim, speed
from gpt1.train.engine import DeepSpeedEngine, PlainEngine, make_engine
from gpt1.train.launch import Machine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining

DEVICE = "cpu" if os.environ.get("GPT1_REHEARSE") == "1" else "cuda"
MODEL = Model(
    context=64,
    width=128,
    layers=2,
    heads=2,
    feed_forward=512,
    embedding_deviation=0.02,
    weight_deviation=0.02,
    layer_norm_epsilon=1e-5,
)
UPDATES = 8
CLOSE = {"fp32": 1e-5, "bf16": 1e-2}  # of losses and states, relative, by another order of sums

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no GPU here"),
]


@pytest.fixture(autouse=True)
def exact_float32():
    """Products of float32 numbers in float32, as a training has them."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def machine(device=DEVICE, **changes):
    return replace(Machine(device, 1, 0, 0, 1, None, False, False, compiled=False), **changes)


def engine_of(this, precision="fp32", dropout=0.1, make=make_engine):
    chosen = recipe().model_copy(update={"precision": precision, "dropout": dropout})
    network = Decoder(MODEL, ROWS, torch.Generator().manual_seed(0))
    said = speed.speed_up(network, chosen, this, 10**12)
    objective = Pretraining(network, precision).to(this.device)
    return make(objective, chosen, this), said


def windows(update):
    draw = np.random.default_rng(update)
    return torch.from_numpy(draw.integers(0, ROWS, (BATCH, MODEL.context + 1)) ** 2 // ROWS)


def losses_of(engine, updates):
    """Losses of these updates in two micro-batches."""
    found = []
    for update in updates:
        batch = windows(update).to(engine.device)
        parts = [MicroBatch(0.5, batch[rows]) for rows in np.array_split(np.arange(BATCH), 2)]
        rates = optim.rates(engine.recipe, update, UPDATES, 0.2)
        dropout = engine.recipe.dropout
        found.append(take_update(engine, parts, dropout, 5, update, rates, Stop())["loss"])
    return found


def everything(engine):
    """All weights and moments in one vector."""
    return torch.cat(
        [value.detach().flatten() for part in engine.state() for value in part.values()]
    )


@pytest.mark.parametrize("path", sorted(test_fidelity.GOLDEN.glob("*.npz")), ids=lambda p: p.name)
def test_updates_are_the_authors(path):
    test_fidelity.compare_updates(path, DEVICE)


def test_a_bf16_training_multiplies_bfloat16_numbers():
    engine, said = engine_of(machine(), "bf16")
    seen = []
    for block in engine.objective.decoder.blocks:
        block.qkv.register_forward_hook(lambda module, given, made: seen.append(made.dtype))
    losses_of(engine, [1])
    assert said["arithmetic"] != "bf16" or set(seen) == {torch.bfloat16}
    assert len(seen) == 2 * MODEL.layers


@pytest.mark.parametrize(
    "make", [PlainEngine, partial(DeepSpeedEngine)], ids=["plain", "deepspeed"]
)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_losses_are_the_cpus(precision, make):
    this = machine(reference_attention=True)
    made = (
        (lambda objective, chosen, here: make(objective, chosen)) if make is PlainEngine else make
    )
    found = losses_of(engine_of(this, precision, dropout=0.0, make=made)[0], range(1, UPDATES + 1))
    expected = losses_of(
        engine_of(machine("cpu"), precision, dropout=0.0)[0], range(1, UPDATES + 1)
    )
    np.testing.assert_allclose(found, expected, rtol=CLOSE[precision])
    assert found[-1] < found[0]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_fused_attention_is_the_reference(precision):
    fused, said = engine_of(machine(), precision, dropout=0.0)
    plain, _ = engine_of(machine(reference_attention=True), precision, dropout=0.0)
    assert DEVICE == "cpu" or said["attention"] == speed.FUSED
    updates = range(1, UPDATES + 1)
    np.testing.assert_allclose(
        losses_of(fused, updates), losses_of(plain, updates), rtol=CLOSE[precision]
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_softmax_is_that_of_float64(precision):
    """At the paper's two sizes, neither of them a multiple of 128."""
    draw = torch.Generator().manual_seed(0)
    for rows in (40_478, 40_993):
        hidden, embeddings = (
            torch.randn(2, 40, 768, generator=draw),
            torch.randn(rows, 768, generator=draw) * 0.05,
        )
        targets = torch.randint(rows, (2, 40), generator=draw)
        logits = hidden.double().flatten(0, 1) @ embeddings.double().T
        expected = F.cross_entropy(logits, targets.flatten())
        given = [one.to(DEVICE).requires_grad_() for one in (hidden, embeddings)]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bf16"):
            found = losses.language_model(*given, targets.to(DEVICE)).mean
        found.backward()
        assert found.item() == pytest.approx(expected.item(), rel=CLOSE[precision] / 10)
        probabilities = logits.softmax(1) - F.one_hot(targets.flatten(), rows)
        theirs = probabilities @ embeddings.double() / len(logits)
        off = (given[0].grad.flatten(0, 1).cpu().double() - theirs).norm() / theirs.norm()
        assert off < CLOSE[precision]


def test_compiled_is_eager():
    eager, _ = engine_of(machine(reference_attention=True), "bf16")
    compiled, said = engine_of(machine(reference_attention=True, compiled=True), "bf16")
    assert said["compiled"] != "no", "there is no compiler: a training here runs slowly"
    updates = range(1, UPDATES + 1)
    np.testing.assert_allclose(
        losses_of(compiled, updates), losses_of(eager, updates), rtol=CLOSE["bf16"]
    )


def test_no_update_waits_for_the_gpu():
    """Its losses apart, which are read by way of an event; torch raises at any other wait."""
    engine, _ = engine_of(machine(), "bf16")
    losses_of(engine, [1, 2])
    batch = MicroBatch(1.0, windows(3).to(DEVICE))
    rates = optim.rates(engine.recipe, 3, UPDATES, 0.2)
    if DEVICE == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        take_update(engine, [batch], 0.1, 5, 3, rates, Stop())
    finally:
        if DEVICE == "cuda":
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("attention", ["fused", "reference"])
def test_a_resumed_training_is_the_undisturbed_one(tmp_path, monkeypatch, attention):
    """To the bit where the sums are asked to be in one order, as GPT1_DETERMINISTIC=1 does."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    this = machine(reference_attention=attention == "reference")
    torch.use_deterministic_algorithms(True)
    try:
        whole, _ = engine_of(this, "bf16")
        losses_of(whole, range(1, UPDATES // 2 + 1))
        save(whole, tmp_path / "half.safetensors")
        expected = losses_of(whole, range(UPDATES // 2 + 1, UPDATES + 1))
        resumed, _ = engine_of(this, "bf16")
        load(resumed, tmp_path / "half.safetensors", UPDATES // 2)
        assert losses_of(resumed, range(UPDATES // 2 + 1, UPDATES + 1)) == expected
        assert torch.equal(everything(resumed), everything(whole))
    finally:
        torch.use_deterministic_algorithms(False)
