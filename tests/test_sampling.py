"""Temperature, top-k, top-p and the draw: transformers' definitions, hand-made cases, and the
distributions that come out.
"""

import math

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from gpt1.inference.decode import draws, filtered, pick, top_k, top_p, without

LOGITS = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625]).log()[
    None
]  # probabilities that sum to 1 exactly


def kept(logits_bv):
    return [row.isfinite().nonzero().flatten().tolist() for row in logits_bv]


def test_top_k_keeps_the_k_likeliest_and_what_equals_the_last():
    assert kept(top_k(LOGITS, 1)) == [[0]]
    assert kept(top_k(LOGITS, 3)) == [[0, 1, 2]]
    assert kept(top_k(LOGITS, 4)) == [[0, 1, 2, 3, 4]]
    assert kept(top_k(LOGITS, 99)) == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("p", "wanted"),
    [
        (0.01, [0]),
        (0.49, [0]),
        (0.51, [0, 1]),
        (0.74, [0, 1]),
        (0.76, [0, 1, 2]),
        (1.0, [0, 1, 2, 3, 4]),
    ],
)
def test_top_p_keeps_the_smallest_set_that_holds_p(p, wanted):
    shuffled = torch.tensor([3, 0, 4, 2, 1])
    assert kept(top_p(LOGITS, p)) == [wanted]
    assert sorted(shuffled[kept(top_p(LOGITS[:, shuffled], p))[0]].tolist()) == wanted


def test_forbidden_tokens_are_out_before_all_else():
    assert kept(filtered(without(LOGITS, (0, 1)), 1.0, 1, 1.0)) == [[2]]
    assert without(LOGITS, ()) is LOGITS


@pytest.mark.slow
def test_filters_are_those_of_transformers():
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits_bv = 3 * torch.randn(40, 300, generator=torch.Generator().manual_seed(0))
    logits_bv[:, 7] = logits_bv[:, 9]  # ties
    for temperature, k, p in ((0.7, 20, 0.9), (1.3, 300, 0.5), (1.0, 1, 0.99), (2.0, 50, 0.05)):
        theirs_bv = TemperatureLogitsWarper(temperature)(None, logits_bv)
        theirs_bv = TopPLogitsWarper(p)(None, TopKLogitsWarper(k)(None, theirs_bv))
        assert torch.equal(filtered(logits_bv, temperature, k, p), theirs_bv)


@pytest.mark.parametrize(
    ("temperature", "k", "p"),
    [(1.0, None, 1.0), (0.7, None, 1.0), (1.0, 5, 1.0), (1.0, None, 0.8), (1.6, 12, 0.7)],
)
def test_what_is_drawn_is_distributed_so(temperature, k, p):
    """20,000 draws against probabilities computed by hand in float64, by chi-square; what is
    filtered out never comes.
    """
    logits = np.random.default_rng(1).normal(0, 1.5, size=30)
    wanted = np.exp(logits / temperature)
    order = np.argsort(-wanted)
    keep = order[:k]
    shares = wanted[keep] / wanted[keep].sum()
    keep = keep[: int((np.cumsum(shares) < p).sum()) + 1] if p < 1 else keep
    wanted = np.where(np.isin(np.arange(30), keep), wanted, 0)
    wanted /= wanted.sum()
    uniform = np.concatenate(
        [draws(0, prompt, sample, 100) for prompt in range(10) for sample in range(20)]
    )
    logits_bv = filtered(
        torch.tensor(logits, dtype=torch.float32).expand(len(uniform), -1), temperature, k, p
    )
    counts = np.bincount(pick(logits_bv, torch.from_numpy(uniform)).numpy(), minlength=30)
    assert (counts[wanted == 0] == 0).all()
    often = wanted * len(uniform) >= 5
    found, expected = (
        np.append(one[often], one[~often].sum()) for one in (counts, wanted * len(uniform))
    )
    found, expected = found[expected > 0], expected[expected > 0]
    assert chisquare(found, expected * found.sum() / expected.sum()).pvalue > 0.001


def test_a_draw_is_the_place_in_the_cumulative_distribution():
    uniform = torch.tensor([0.0, 0.49, 0.51, 0.74, 0.76, 1 - 1e-12], dtype=torch.float64)
    assert pick(LOGITS.expand(6, -1), uniform).tolist() == [0, 0, 1, 1, 2, 4]
    holes = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]).expand(4, -1)
    assert pick(
        holes, torch.tensor([0.0, 0.4999, 0.5, 1 - 2**-53], dtype=torch.float64)
    ).tolist() == [1, 1, 3, 3]


def test_draws_differ_by_seed_prompt_and_sample_and_by_nothing_else():
    assert np.array_equal(draws(3, 2, 1, 50)[:20], draws(3, 2, 1, 20)), (
        "more tokens change none before"
    )
    firsts = {
        tuple(draws(seed, prompt, sample, 3))
        for seed in range(4)
        for prompt in range(4)
        for sample in range(4)
    }
    assert len(firsts) == 64
    assert all(0 <= one < 1 for row in firsts for one in row)
