"""Our kernels for a GPU (gpt1/model/kernels) against their plain twins in float64: by Triton's
interpreter, which runs them on a CPU, or on the GPU where there is one.
"""

import csv
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import many_processes
import numpy as np
import pytest
import torch

from gpt1.base.errors import UserError
from gpt1.model.dropout import BLOCKS, Dropout, keep, threshold
from gpt1.model.gpt import Decoder
from gpt1.model.kernels import switch
from gpt1.model.layout import places_of
from gpt1.params.schema import Model
from gpt1.train import speed
from gpt1.train.launch import Machine, decide
from gpt1.train.losses import language_model
from gpt1.train.precision import in_precision

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = {"TRITON_INTERPRET": "1"} if DEVICE == "cpu" else {}
WANTED = "triton is not installed: pip install --no-deps triton==3.7.1"
with patch.dict(os.environ, INTERPRETED):  # how a kernel runs is settled where it is defined
    pytest.importorskip("triton", reason=WANTED)
    attention, backward, norm, softmax = (
        import_module(f"gpt1.model.kernels.{name}")
        for name in ("attention", "attention_backward", "dropout_residual_norm", "softmax")
    )


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton and our switch look again; other tests of this process are not to."""
    for name, value in INTERPRETED.items():
        monkeypatch.setenv(name, value)


SIZES = Model(
    context=12,
    width=20,
    layers=2,
    heads=2,
    feed_forward=24,
    embedding_deviation=0.3,
    weight_deviation=0.3,
    layer_norm_epsilon=1e-5,
)
VOCABULARY, RATE = 40, 0.1


def drawn(*shape, seed=0, dtype=torch.float32):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(dtype).to(DEVICE).requires_grad_()


def doubles(tensors):
    return [one.detach().double().requires_grad_() for one in tensors]


def assert_close(found, expected, share=2e-6):
    """To a share of the greatest number."""
    for one, other in zip(found, expected, strict=True):
        off = (one.double() - other.double()).abs().max()
        assert off <= share * other.double().abs().max()


def keys_of(rows, place=BLOCKS, key=2**63 + 2018):
    return Dropout(RATE, key, np.array(rows)).keys([place])[0, 1:].to(DEVICE)


@pytest.mark.parametrize("width", [3, 37, 768])
@pytest.mark.parametrize("rate", [0.1, 0.99])
def test_dropout_residual_and_norm_are_those_of_float64_with_the_cpus_masks(
    width, rate, monkeypatch
):
    """At more rows than a program of the backward pass takes, of sequences in any order."""
    monkeypatch.setattr(norm, "ROWS_A_PROGRAM", 4)
    rows = 11
    sequences = torch.arange(rows, device=DEVICE) * 5 % 3
    positions = (torch.arange(rows, device=DEVICE) * 7 % 512).int()
    given = [drawn(rows, width), drawn(rows, width, seed=1), drawn(width, seed=2)]
    given.append(drawn(width, seed=3))
    masks = keys_of([5, 0, 63]), sequences, positions
    found, rounded = norm.dropout_residual_norm(*given[:2], *masks, *given[2:], rate, 1e-5)
    assert not len(rounded)
    twins = doubles(given)
    expected = norm.plain(*twins[:2], *masks, *twins[2:], rate, 1e-5)
    towards = drawn(rows, width, seed=4).detach()
    found.backward(towards)
    expected.backward(towards.double())
    assert_close([found], [expected])
    assert_close([one.grad for one in given], [one.grad for one in twins])
    keeps = keep(masks[0].cpu()[sequences.cpu()], positions.cpu(), width, width, threshold(rate))
    assert torch.equal(given[1].grad.cpu() != 0, keeps)


def test_a_sublayer_in_bfloat16_is_summed_in_float32_and_rounded_for_the_next_product():
    masks = keys_of([1]), torch.zeros(4, dtype=torch.int64), torch.arange(4, dtype=torch.int32)
    masks = tuple(one.to(DEVICE) for one in masks)
    given = [drawn(4, 37), drawn(4, 37, seed=1, dtype=torch.bfloat16)]
    given += [drawn(37, seed=2), drawn(37, seed=3)]
    found, rounded = norm.dropout_residual_norm(*given[:2], *masks, *given[2:], RATE, 1e-5)
    twins = doubles(given)
    expected = norm.plain(*twins[:2], *masks, *twins[2:], RATE, 1e-5)
    assert (found.dtype, rounded.dtype) == (torch.float32, torch.bfloat16)
    # a GPU rounds to the nearest, the interpreter towards 0
    torch.testing.assert_close(rounded.float(), found, rtol=2**-7, atol=0)
    assert_close([found], [expected])
    one, other = drawn(4, 37, seed=4).detach(), drawn(4, 37, seed=5, dtype=torch.bfloat16).detach()
    torch.autograd.backward([found, rounded], [one, other])
    expected.backward(one.double() + other.double())
    assert given[1].grad.dtype == torch.bfloat16
    assert_close([one.grad for one in given], [one.grad for one in twins], 5e-3)


@pytest.fixture
def small_tiles(monkeypatch):
    """Many tiles of few positions: on a GPU 16 are the fewest of a product."""
    fewest = {"num_warps": 4, "num_stages": 1}
    monkeypatch.setattr(attention, "FORWARD", {"OWN": 32, "STEP": 16, **fewest})
    monkeypatch.setattr(backward, "OF_QUERIES", {"OWN": 32, "STEP": 16, **fewest})
    monkeypatch.setattr(backward, "OF_KEYS", {"OWN": 16, "STEP": 16, **fewest})


@pytest.fixture(autouse=True)
def products_of_bfloat16(monkeypatch):
    """The interpreter keeps such numbers as integers, and multiplies those."""
    if DEVICE == "cuda":
        return
    from triton import language as tl
    from triton.runtime import interpreter

    multiply = interpreter.InterpreterBuilder.create_dot

    def wide(one):
        if one.dtype.scalar != tl.bfloat16:
            return one
        numbers = interpreter._convert_float(one.data, tl.bfloat16, tl.float32, None)
        return interpreter.TensorHandle(numbers.view(np.float32), tl.float32)

    monkeypatch.setattr(
        interpreter.InterpreterBuilder,
        "create_dot",
        lambda self, a, b, *more: multiply(self, wide(a), wide(b), *more),
    )


@pytest.mark.parametrize(
    ("b", "heads", "width", "t", "context"), [(2, 3, 10, 37, 41), (1, 2, 64, 70, 512)]
)
@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)])
@pytest.mark.usefixtures("small_tiles")
def test_attention_is_that_of_float64_with_the_cpus_masks(
    b, heads, width, t, context, dtype, share
):
    qkv, keys = drawn(b * t, 3 * heads * width, dtype=dtype), keys_of([7, 2][:b])
    found = attention.attention(qkv, keys, heads, t, context, RATE)
    [twin] = doubles([qkv])
    expected = attention.plain(twin, keys, heads, t, context, RATE)
    towards = drawn(*found.shape, seed=1, dtype=dtype).detach()
    found.backward(towards)
    expected.backward(towards.double())
    of_each = [one.grad.view(b * t, 3, -1).unbind(1) for one in (qkv, twin)]
    assert_close([found, *of_each[0]], [expected, *of_each[1]], share)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.usefixtures("small_tiles")
def test_attention_drops_what_the_cpu_does(rate):
    """Value j is 1 in column j alone: what a position mixes are its probabilities."""
    b, heads, t, context = 2, 2, 48, 512
    qkv, keys = drawn(b * t, 3 * heads * t).detach() / 10, keys_of([3, 9])
    qkv.view(b, t, 3, heads, t)[:, :, 2] = torch.eye(t, device=DEVICE)[:, None]
    found = attention.attention(qkv, keys, heads, t, context, rate)
    found = found.view(b, t, heads, t).transpose(1, 2)
    places = torch.arange(heads, dtype=torch.int32)[:, None] * context
    places = places + torch.arange(t, dtype=torch.int32)
    keeps = keep(keys.cpu()[:, None, None], places, t, context, threshold(rate))
    assert torch.equal(found.cpu() != 0, keeps.tril())


def test_attention_in_tiles_as_on_a_gpu():
    qkv, keys = drawn(200, 3 * 16, dtype=torch.bfloat16), keys_of([7])
    found = attention.attention(qkv, keys, 1, 200, 512, RATE)
    [twin] = doubles([qkv])
    expected = attention.plain(twin, keys, 1, 200, 512, RATE)
    found.sum().backward()
    expected.sum().backward()
    assert_close([found, qkv.grad], [expected, twin.grad], 2e-2)


@pytest.mark.parametrize(("columns", "width"), [(5, 5), (40, 48), (700, 768)])
def test_the_softmaxs_losses_and_gradient_are_those_of_float64(columns, width, monkeypatch):
    """Rows longer and shorter than what a program reads at a time, the columns beyond the real ones
    full of what must not count; the first and the last column are targets.
    """
    monkeypatch.setattr(softmax, "BLOCK", 64)
    logits = 3 * drawn(5, width).detach()
    logits[0, 0], logits[1, 3] = 80.0, -200.0
    logits[:, columns:] = 1e4
    targets = torch.tensor([0, 3, columns - 1, 1, 0], device=DEVICE)
    weights = drawn(5, seed=1).detach().abs()
    twin = logits.double()
    expected = softmax.plain(twin, targets, weights.double(), columns, True)
    assert_close(
        [softmax.softmax_losses(logits.clone(), targets, weights, columns, False)], [expected]
    )
    found = softmax.softmax_losses(logits, targets, weights, columns, True)
    assert_close([found, logits], [expected, twin])
    assert not logits[:, columns:].any()
    tight = torch.tensor([0.0, 1e-3, 1e-6], device=DEVICE)[:, None] * drawn(3, columns, seed=2)
    losses = softmax.softmax_losses(tight.detach(), targets[:3], weights[:3], columns, False)
    torch.testing.assert_close(
        losses, torch.full_like(losses, math.log(columns)), rtol=1e-3, atol=0
    )


def recipe(precision):
    return many_processes.recipe().model_copy(update={"precision": precision})


def gradients(kernels, batches, precision="fp32", **machine):
    """The loss and all gradients of a decoder on these batches of (numbers of sequences, token ids
    [b, t], lengths of sequences [b] or None), which add up.
    """
    this = Machine(DEVICE, 1, 0, 0, 1, None, False, False, kernels=kernels, **machine)
    network = Decoder(SIZES, VOCABULARY, torch.Generator().manual_seed(0)).to(DEVICE)
    chosen = speed.speed_up(network, recipe(precision), this, 0)
    assert chosen["kernels"] == ("ours" if kernels else "torch's")
    assert chosen["attention"] == (speed.OURS if kernels else "plain")
    total = 0.0
    for rows, tokens, lengths in batches:
        real = None
        if lengths is not None:
            real = places_of(torch.tensor(lengths), tokens.shape[1], torch.device(DEVICE)).real
        dropout = Dropout(RATE, 2018, np.array(rows))
        with in_precision(torch.device(DEVICE), precision):
            hidden, embeddings = network(tokens.to(DEVICE), dropout, real)
            targets = tokens.to(DEVICE).roll(-1, 1)
            loss = language_model(
                hidden, embeddings.tokens_vd, targets, kernels=network.kernels
            ).mean * len(rows)
        loss.backward()
        total += loss.item()
    return [torch.tensor(total), *(parameter.grad for parameter in network.parameters())]


TOKENS = torch.arange(27).view(3, 9) * 7 % VOCABULARY


@pytest.mark.parametrize(("precision", "share"), [("fp32", 1e-5), ("bf16", 0.04)])
def test_a_training_with_our_kernels_is_the_one_without(precision, share):
    batch = ([4, 9, 2], TOKENS, None)
    plain = gradients(False, [batch], precision, reference_attention=True)
    assert_close(gradients(True, [batch], precision), plain, share)


def test_no_mask_depends_on_micro_batches_or_padding():
    """Two of the three sequences are shorter: alone they are not padded, or to another length."""
    together = [([4, 9, 2], TOKENS, [9, 6, 4])]
    apart = [([2], TOKENS[2:, :4], None), ([4, 9], TOKENS[:2], [9, 6])]
    places = places_of(torch.tensor([9, 6, 4]), 9, torch.device("cpu")).real.places_m
    assert len(places) < 27

    def hidden(batches):
        network = Decoder(SIZES, VOCABULARY, torch.Generator().manual_seed(0)).to(DEVICE)
        network.speed_up("no", True, kernels=switch.kernels())
        found = {}
        for rows, tokens, lengths in batches:
            real = None
            if lengths is not None:
                real = places_of(torch.tensor(lengths), tokens.shape[1], torch.device(DEVICE)).real
            states = network(tokens.to(DEVICE), Dropout(RATE, 5, np.array(rows)), real).hidden_btd
            for row, state, length in zip(rows, states, lengths or [tokens.shape[1]], strict=True):
                found[row] = state[:length]
        return [found[row] for row in sorted(found)]

    assert_close(hidden(apart), hidden(together))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler here")
def test_compiled_blocks_take_our_kernels():
    torch.compiler.reset()
    network = Decoder(SIZES, VOCABULARY, torch.Generator().manual_seed(0)).to(DEVICE)
    states = []
    for compiled in ("no", "blocks and masks"):
        network.speed_up(compiled, True, kernels=switch.kernels())
        states.append(network(TOKENS.to(DEVICE), Dropout(RATE, 5, np.arange(3))).hidden_btd)
        states[-1].sum().backward()
    assert_close(states[1:], states[:1])


@pytest.mark.slow
@pytest.mark.skipif(DEVICE == "cuda", reason="its figures are those of Triton's interpreter")
def test_no_register_spills_and_no_more_bytes_are_moved_than_there_were(tmp_path):
    """As benchmarks/our_kernels.csv has it, but for the last decimals of the numbers themselves."""
    root, made = Path(__file__).parents[1], tmp_path / "kernels.csv"
    subprocess.run(
        [sys.executable, "benchmarks/our_kernels.py", "--csv", str(made)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=280,
    )
    committed, found = (
        list(csv.DictReader(path.read_text().splitlines()))
        for path in (root / "benchmarks/our_kernels.csv", made)
    )
    for row, other in zip(committed, found, strict=True):
        assert float(other.pop("off float64")) < 2e-6
        del row["off float64"]
        assert other == row
        assert {row[f"bytes spilled, sm_{capability}"] for capability in (80, 90)} == {"0"}


def test_the_setting_asks_for_what_there_is(monkeypatch):
    def asked(value):
        return decide({"GPT1_KERNELS": value}, {}, "cpu", 1, 1).kernels

    assert (asked(None), asked("0"), asked("1")) == (False, False, True)
    with pytest.raises(UserError, match="GPT1_KERNELS: expected 0 or 1, found 'yes'"):
        asked("yes")
    network = Decoder(SIZES, VOCABULARY, torch.Generator())
    machine = replace(Machine("cpu", 1, 0, 0, 1, None, False, False), kernels=True)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(UserError, match="GPT1_KERNELS: our kernels need an NVIDIA GPU, found none"):
        speed.speed_up(network, recipe("fp32"), machine, 0)
    monkeypatch.setattr(switch, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="GPT1_KERNELS: our kernels need the package triton"):
        speed.speed_up(network, recipe("fp32"), machine, 0)
