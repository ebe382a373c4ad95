"""Counter-based dropout: rates, independence, and that a mask follows its sequence wherever that
lies.
"""

import hashlib
import itertools
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from gpt1.model import layout
from gpt1.model.dropout import BLOCKS, NO_DROPOUT, Dropout, cut, keep, scale, threshold
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.layout import real_places
from gpt1.model.lstm import Lstm
from gpt1.params.schema import Model

SIZES = Model(
    context=12,
    width=16,
    layers=2,
    heads=2,
    feed_forward=32,
    embedding_deviation=0.3,
    weight_deviation=0.3,
    layer_norm_epsilon=1e-5,
)
RATE, WIDTH = 0.1, 768


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def mask(key=1, place=BLOCKS, row=0, positions=2048, rate=RATE):
    """[positions, WIDTH] decisions of one sequence."""
    keys = Dropout(rate, key, np.array([row])).keys([place])[0, 1:]
    return keep(
        keys, torch.arange(positions, dtype=torch.int32), WIDTH, WIDTH, threshold(rate)
    ).numpy()


def test_masks_are_those_of_every_earlier_version():
    """Of a place, and in the places of a network: another order would make another training."""
    bits = np.packbits(mask(key=2018, place=7, row=5, positions=64))
    assert hashlib.sha256(bits.tobytes()).hexdigest()[:16] == "c953f00cc5297db3"
    network, rows_b = Decoder(SIZES, 20, seeded(0)), np.array([3, 8])
    hidden_btd = network(torch.arange(14).view(2, 7), Dropout(0.3, 5, rows_b)).hidden_btd
    expected = torch.tensor([[-0.2968, 0.4570, -0.2062], [-0.1944, 0.1391, -0.0826]])
    torch.testing.assert_close(hidden_btd[:, -1, :3].detach(), expected, atol=2e-4, rtol=0)


def correlation(one, other):
    """Correlation of two sets of decisions in standard errors."""
    return abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) * np.sqrt(one.size)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_the_rate_is_met(rate):
    kept = mask(rate=rate)
    expected = 1 - threshold(rate) / 65536
    assert abs(kept.mean() - expected) < 4 * np.sqrt(rate * (1 - rate) / kept.size)
    assert abs(expected - (1 - rate)) < 1e-5
    assert scale(rate) == pytest.approx(1 / expected)
    # No row and no column is favoured: chi-squared of the counts, within five deviations.
    for axis in (0, 1):
        counts = kept.sum(axis)
        variance = kept.shape[axis] * rate * (1 - rate)
        statistic = ((counts - counts.mean()) ** 2 / variance).sum()
        assert abs(statistic - len(counts)) < 5 * np.sqrt(2 * len(counts)), f"axis {axis}"


def test_neighbours_are_independent():
    kept = mask()
    for down, right in [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
        (1, 1),
        (2, 0),
        (4, 0),
        (0, 16),
        (0, 100),
        (16, 0),
        (1, -1),
    ]:
        shifted = np.roll(kept, (down, right), (0, 1))
        assert correlation(kept, shifted) < 4.5, (down, right)


def test_pairs_triples_and_quadruples_of_neighbours_have_their_frequencies():
    kept = mask(rate=0.5)
    patterns = kept.reshape(-1, 8) @ (1 << np.arange(8))
    counts = np.bincount(patterns, minlength=256)
    expected = len(patterns) / 256
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 5 * np.sqrt(2 * 255)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": 2},
        {"key": 1 + (1 << 32)},
        {"key": 1 + (1 << 62)},
        {"row": 1},
        {"row": 63},
        {"place": BLOCKS + 1},
        {"place": BLOCKS + 35},
    ],
)
def test_updates_sequences_and_places_are_independent(changes):
    assert correlation(mask(), mask(**changes)) < 4.5


def test_one_key_is_no_permutation_of_another():
    """A counter under one key alone would give the same masks in another order: sorted rows of bits
    would be equal.
    """
    assert len({mask(key=key, positions=64).sum() for key in range(50)}) > 20


def test_the_embedding_matrix_is_dropped_as_a_whole_and_like_plain_dropout():
    network = Decoder(SIZES, 5000, seeded(0))
    dropout = Dropout(RATE, 3, np.arange(2))
    rows_vd = (
        network(torch.zeros(2, 4, dtype=torch.long), dropout).embeddings.all_rows_vd().detach()
    )
    plain = torch.nn.functional.dropout(
        torch.cat([network.tokens, network.positions]), RATE
    ).detach()
    assert abs(float((rows_vd == 0).float().mean() - (plain == 0).float().mean())) < 4 * np.sqrt(
        2 * 0.09 / rows_vd.numel()
    )
    for found, expected in zip(
        rows_vd.flatten().quantile(torch.linspace(0, 1, 41)),
        plain.flatten().quantile(torch.linspace(0, 1, 41)),
        strict=True,
    ):
        assert (
            float(found) == pytest.approx(float(expected), abs=0.03) or abs(float(expected)) > 0.8
        )  # the tails are few


def test_cut_keeps_the_expectation():
    x = torch.full((2048, WIDTH), 2.0)
    assert cut(x, torch.from_numpy(mask()), RATE).mean().item() == pytest.approx(2.0, abs=0.002)


@pytest.mark.parametrize(
    "network",
    [Decoder(SIZES, 20, seeded(0)), Lstm(SIZES, 16, 20, seeded(0))],
    ids=["transformer", "lstm"],
)
def test_a_sequence_has_its_masks_wherever_it_stands(network, monkeypatch):
    """Alone or among others, in any order, however padded and in whatever group: its number in the
    global batch is what counts.
    """
    tokens_bt = torch.randint(0, 20, (4, 11), generator=seeded(1))
    together = network(tokens_bt, Dropout(0.3, 5, np.arange(4))).hidden_btd
    for row in range(4):
        alone = network(tokens_bt[row : row + 1], Dropout(0.3, 5, np.array([row]))).hidden_btd
        torch.testing.assert_close(alone[0], together[row])
    turned = network(tokens_bt.flip(0), Dropout(0.3, 5, np.arange(4)[::-1].copy())).hidden_btd
    torch.testing.assert_close(turned.flip(0), together)
    monkeypatch.setitem(layout.WORTH_A_GROUP, "cpu", 100)
    for lengths, groups in (([11, 11, 11, 11], 0), ([2, 3, 11, 9], 2)):
        real = real_places(torch.tensor(lengths), 12, tokens_bt.device)
        assert len(real.groups) == groups
        padded_bt = torch.nn.functional.pad(tokens_bt, (0, 1))
        padded = network(padded_bt, Dropout(0.3, 5, np.arange(4)), real).hidden_btd
        for row, length in enumerate(lengths):
            torch.testing.assert_close(padded[row, :length], together[row, :length])
    assert not torch.allclose(
        together, network(tokens_bt, Dropout(0.3, 5, np.arange(1, 5))).hidden_btd
    )
    assert not torch.allclose(
        together, network(tokens_bt, Dropout(0.3, 6, np.arange(4))).hidden_btd
    )


def test_a_mask_has_its_bits_whatever_stands_beside_it():
    """Integers throughout: these are equal to the bit, on any processor."""
    together_btw, alone_btw, wider_btw = (
        keep(
            Dropout(RATE, 5, rows).keys([BLOCKS])[0, 1:, None],
            torch.arange(positions, dtype=torch.int32),
            WIDTH,
            WIDTH,
            threshold(RATE),
        )
        for rows, positions in ((np.arange(8), 33), (np.array([6]), 33), (np.arange(8)[::-1], 70))
    )
    assert torch.equal(alone_btw[0], together_btw[6])
    assert torch.equal(wider_btw[:, :33].flip(0), together_btw)


def test_the_sequences_of_an_example_have_masks_of_their_own_but_one_at_the_classifier():
    """Masks are told apart by products, and equal rows of one product are equal to rounding only: a
    mask that differs moves them a thousand times as far.
    """
    states_bkd = torch.ones(2, 3, 16)
    head = Head(16, 1, "choose", 0.3, seeded(0))
    logits_bk = head(states_bkd, Dropout(0.5, 1, np.arange(2)))
    torch.testing.assert_close(logits_bk, logits_bk[:, :1].expand(-1, 3))
    assert abs(logits_bk[0, 0] - logits_bk[1, 0]) > 0.01
    classifier = Classifier(Decoder(SIZES, 20, seeded(0)), head)
    alike_bkt = torch.tensor([1, 2, 3, 19]).expand(2, 3, 4)
    hidden_ntd = classifier(alike_bkt, Dropout(0.3, 1, np.arange(2)), 0.0).hidden_ntd
    assert all(
        (one - other).abs().max() > 0.01 for one, other in itertools.combinations(hidden_ntd, 2)
    )


def test_the_global_generator_has_no_say_and_stays_as_it_was():
    network, tokens_bt = Decoder(SIZES, 20, seeded(0)), torch.arange(8)[None]
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = network(tokens_bt, Dropout(0.3, 5, np.array([6]))).hidden_btd
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    assert torch.equal(first, network(tokens_bt, Dropout(0.3, 5, np.array([6]))).hidden_btd)


def test_no_dropout_is_none():
    network, tokens_bt = Decoder(SIZES, 20, seeded(0)), torch.arange(8)[None]
    assert torch.equal(
        network(tokens_bt, NO_DROPOUT).hidden_btd,
        network(tokens_bt, Dropout(0.0, 5, np.array([6]))).hidden_btd,
    )


COMPILED = """
import numpy as np, torch
from gpt1.model.dropout import Dropout, keep
keys = Dropout(0.1, 7, np.arange(3)).keys([2])[0, 1:]
arguments = keys[:, None], torch.arange(33, dtype=torch.int32), 30, 31, 6554
assert torch.equal(torch.compile(keep)(*arguments), keep(*arguments)), "the compiled mask has other bits"
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_compiled_mask_has_the_same_bits(tmp_path):
    """In a process of its own: what is compiled stays."""
    if shutil.which("g++") is None:
        pytest.skip("no compiler here")
    subprocess.run(
        [sys.executable, "-c", COMPILED],
        check=True,
        env={"PATH": "/usr/bin:/bin", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
    )
