"""Going on with texts, the likeliest token each time or drawn, many prompts at a time, each token
over the vocabulary's rows only; temperature, top-k and top-p (Holtzman et al. 2020) as
transformers defines them, ties among them.

A prompt's result does not depend on the prompts beside it, but for rounding in the last bits of a
sum. Shape letters as in gpt.py.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpt1.inference.cache import Reading, Texts, read
from gpt1.model.lstm import Network

ROWS_AT_ONCE = 16  # texts that grow together: 0.6 GB of keys and values at the paper's size
Choose = Callable[[Tensor, Sequence[int], int], Tensor]


class Limits(NamedTuple):
    """What every decoding keeps to: at most so many new tokens; ends after one of the `stops` (runs
    of ids), which are part of the text.

    Only ids below `vocabulary_size` that are not `forbidden` are ever chosen: no special symbols,
    positions or padding.
    """

    tokens: int
    stops: tuple[tuple[int, ...], ...]
    forbidden: tuple[int, ...]
    vocabulary_size: int

    def ended(self, new: Sequence[int]) -> bool:
        """Whether new tokens end in a stop."""
        return any(tuple(new[-len(stop) :]) == stop for stop in self.stops)


class Draw(NamedTuple):
    """How samples are drawn: temperature, then the k likeliest (None: all), then top-p."""

    temperature: float
    top_k: int | None
    top_p: float
    seed: int
    samples: int


class Sample(NamedTuple):
    """New tokens, the sum of their log-probabilities (nats, before temperature and filters), and
    whether a stop ended them.
    """

    ids: tuple[int, ...]
    log_probability: float
    stopped: bool


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


def next_log_probabilities(network: Network, reading: Reading, limits: Limits) -> Tensor:
    """Log-probabilities [b, v] of each text's next token by the softmax over the vocabulary's rows,
    -inf for forbidden ones.
    """
    logits_bv = reading.hidden_bd @ network.tokens[: limits.vocabulary_size].T
    return without(logits_bv.float().log_softmax(dim=1), limits.forbidden)


def read_prompts(network: Network, texts: Texts, limits: Limits) -> Reading:
    """Prompts, read, with room for all new tokens."""
    return read(network, texts, max(map(len, texts)) + limits.tokens)


def by_length(prompts: Texts) -> list[int]:
    """The prompts' numbers, shortest first, so that texts of like length stand together."""
    return sorted(range(len(prompts)), key=lambda prompt: len(prompts[prompt]))


def greedy(network: Network, prompts: Texts, limits: Limits) -> list[Sample]:
    """For each prompt (one token or more) the likeliest token each time."""

    def likeliest(log_probabilities_bv: Tensor, _rows: Sequence[int], _step: int) -> Tensor:
        return log_probabilities_bv.argmax(dim=1)

    return [samples[0] for samples in _each(network, prompts, limits, 1, lambda _: likeliest)]


def sampled(network: Network, prompts: Texts, limits: Limits, draw: Draw) -> list[list[Sample]]:
    """For each prompt (one token or more) several samples, drawn by (seed, number of the prompt,
    number of the sample) alone.
    """

    def chooser(members: list[tuple[int, int]]) -> Choose:
        uniform_bt = torch.from_numpy(
            np.stack(
                [draws(draw.seed, prompt, sample, limits.tokens) for prompt, sample in members]
            )
        )

        def choose(log_probabilities_bv: Tensor, rows: Sequence[int], step: int) -> Tensor:
            kept_bv = filtered(log_probabilities_bv, draw.temperature, draw.top_k, draw.top_p)
            return pick(kept_bv, uniform_bt[list(rows), step].to(kept_bv.device))

        return choose

    return _each(network, prompts, limits, draw.samples, chooser)


@torch.inference_mode()
def _each(
    network: Network,
    prompts: Texts,
    limits: Limits,
    samples: int,
    chooser: Callable[[list[tuple[int, int]]], Choose],
) -> list[list[Sample]]:
    """Samples of every prompt, in batches of about ROWS_AT_ONCE texts of like length."""
    found: list[list[Sample]] = [[] for _ in prompts]
    pairs = [(prompt, sample) for prompt in by_length(prompts) for sample in range(samples)]
    for start in range(0, len(pairs), ROWS_AT_ONCE):
        members = pairs[start : start + ROWS_AT_ONCE]
        own = list(dict.fromkeys(prompt for prompt, _ in members))
        reading = read_prompts(network, [prompts[prompt] for prompt in own], limits)
        reading.keep([own.index(prompt) for prompt, _ in members])
        for (prompt, _), sample in zip(
            members, _grown(network, reading, limits, chooser(members)), strict=True
        ):
            found[prompt].append(sample)
    return found


def _grown(network: Network, reading: Reading, limits: Limits, choose: Choose) -> list[Sample]:
    """Texts that grow until each has stopped or has all its tokens; `choose` is given
    log-probabilities, whose they are, and the step.
    """
    rows = list(range(len(reading.texts)))
    new: list[list[int]] = [[] for _ in rows]
    sums, stopped = [0.0] * len(rows), [False] * len(rows)
    for step in range(limits.tokens):
        log_probabilities_bv = next_log_probabilities(network, reading, limits)
        tokens_b = choose(log_probabilities_bv, rows, step)
        chosen_b = log_probabilities_bv.gather(1, tokens_b[:, None]).squeeze(1).double()
        for row, token, log_probability in zip(
            rows, tokens_b.tolist(), chosen_b.tolist(), strict=True
        ):
            new[row].append(token)
            sums[row] += log_probability
            stopped[row] = limits.ended(new[row])
        going_on = [place for place, row in enumerate(rows) if not stopped[row]]
        if not going_on or step + 1 == limits.tokens:
            break
        reading.keep(going_on)
        rows = [rows[place] for place in going_on]
        reading.append(tokens_b[going_on])
    return [
        Sample(tuple(ids), total, ended)
        for ids, total, ended in zip(new, sums, stopped, strict=True)
    ]
