"""From log-probabilities to the next token: temperature, top-k, top-p (Holtzman et al. 2020), and a
draw; pure functions.

Definitions, ties among them, are those of transformers. Shape letters: b rows, v vocabulary.
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def without(log_probabilities_bv: Tensor, forbidden: tuple[int, ...]) -> Tensor:
    """The same with -inf for the forbidden ids."""
    if not forbidden:
        return log_probabilities_bv
    return log_probabilities_bv.index_fill(
        1, torch.tensor(forbidden, device=log_probabilities_bv.device), -math.inf
    )


def top_k(logits_bv: Tensor, k: int) -> Tensor:
    """-inf for all below the k-th largest of a row; what equals the k-th stays."""
    kth_b1 = logits_bv.topk(min(k, logits_bv.shape[1]), dim=1).values[:, -1:]
    return logits_bv.masked_fill(logits_bv < kth_b1, -math.inf)


def top_p(logits_bv: Tensor, p: float) -> Tensor:
    """-inf for all but the smallest set of likeliest tokens whose probabilities sum to p or more;
    the likeliest always stays.
    """
    ascending_bv, order_bv = logits_bv.sort(dim=1)
    gone_bv = ascending_bv.softmax(dim=1).cumsum(dim=1) <= 1 - p
    gone_bv[:, -1] = False
    return logits_bv.masked_fill(torch.zeros_like(gone_bv).scatter(1, order_bv, gone_bv), -math.inf)


def filtered(logits_bv: Tensor, temperature: float, k: int | None, p: float) -> Tensor:
    """Logits / temperature, then the k likeliest of them (None: all), then the top-p of those."""
    logits_bv = logits_bv / temperature
    if k is not None:
        logits_bv = top_k(logits_bv, k)
    return top_p(logits_bv, p) if p < 1 else logits_bv


def draws(seed: int, prompt: int, sample: int, count: int) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) for the tokens of one sample of one prompt, in order: fixed by
    these three numbers alone.
    """
    key = np.array([seed, prompt << 32 | sample], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def pick(logits_bv: Tensor, uniform_b: Tensor) -> Tensor:
    """The token of each row at its uniform number in the cumulative distribution (in float64); one
    of probability 0 never.
    """
    cumulative_bv = logits_bv.double().softmax(dim=1).cumsum(dim=1)
    cumulative_bv = (
        cumulative_bv / cumulative_bv[:, -1:]
    )  # ends in 1, which no uniform number reaches
    return torch.searchsorted(cumulative_bv, uniform_b.double()[:, None], right=True).squeeze(1)
