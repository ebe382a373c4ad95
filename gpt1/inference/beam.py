"""Going on with texts by beam search, with a length penalty, as transformers defines it; many
prompts at a time.

Shape letters as in gpt.py, and p prompts, k beams of each, m candidates.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from gpt1.inference.cache import Reading, Texts
from gpt1.inference.decode import (
    ROWS_AT_ONCE,
    Draw,
    Limits,
    Sample,
    by_length,
    greedy,
    next_log_probabilities,
    read_prompts,
    sampled,
)
from gpt1.model.lstm import Network


class Beam(NamedTuple):
    """Beam search: a text's score is its log-probability / its new tokens ^ length_penalty; the
    `samples` best are given.
    """

    beams: int
    length_penalty: float
    samples: int


class Hypothesis(NamedTuple):
    """A text of beam search: its score once it has ended, its new tokens, their log-probability,
    whether a stop ended it.
    """

    score: float
    sample: Sample


class Search:
    """Beam search for one prompt: the k beams that go on, and the best k hypotheses that have
    ended, best first.
    """

    def __init__(self, beam: Beam, limits: Limits) -> None:
        self.beam, self.limits = beam, limits
        self.new: list[list[int]] = [[] for _ in range(beam.beams)]
        self.scores = [0.0] + [-math.inf] * (
            beam.beams - 1
        )  # all beams are the prompt: only one counts
        self.ended: list[Hypothesis] = []

    def advance(self, candidates: Sequence[tuple[float, int, int]]) -> list[int] | None:
        """Take (log-probability, beam, token) of the likeliest texts, best first; the beams that go
        on, in order, or None at the end.

        What ends counts only among the first k candidates. As in transformers (early_stopping
        False), the search is over when k have ended and none of them is worse than the best beam's
        log-probability / its present length ^ length_penalty.
        """
        length = len(self.new[0]) + 1
        origins, going_on, scores = list[int](), list[list[int]](), list[float]()
        for rank, (log_probability, origin, token) in enumerate(candidates):
            ids = [*self.new[origin], token]
            stopped = self.limits.ended(ids)
            if stopped or length == self.limits.tokens:
                if rank < self.beam.beams and log_probability > -math.inf:
                    score = log_probability / length**self.beam.length_penalty
                    self.ended.append(
                        Hypothesis(score, Sample(tuple(ids), log_probability, stopped))
                    )
            elif len(origins) < self.beam.beams:
                origins.append(origin)
                going_on.append(ids)
                scores.append(log_probability)
        self.ended = sorted(self.ended, key=lambda one: -one.score)[: self.beam.beams]
        full = len(self.ended) == self.beam.beams
        # where stops leave hardly a token
        missing = self.beam.beams - len(origins) if origins else 0
        origins += origins[:1] * missing
        going_on += going_on[:1] * missing
        scores += [-math.inf] * missing
        if not scores or (
            full and scores[0] / length**self.beam.length_penalty <= self.ended[-1].score
        ):
            return None
        self.new, self.scores = going_on, scores
        return origins


@torch.inference_mode()
def beam_search(network: Network, prompts: Texts, limits: Limits, beam: Beam) -> list[list[Sample]]:
    """For each prompt (one token or more) the best texts of a beam search, best first."""
    found: list[list[Sample]] = [[] for _ in prompts]
    numbers, at_once = by_length(prompts), max(1, ROWS_AT_ONCE // beam.beams)
    for start in range(0, len(numbers), at_once):
        own = numbers[start : start + at_once]
        searches = [Search(beam, limits) for _ in own]
        reading = read_prompts(network, [prompts[prompt] for prompt in own], limits)
        _search(network, reading, limits, beam, searches)
        for prompt, search in zip(own, searches, strict=True):
            found[prompt] = [hypothesis.sample for hypothesis in search.ended[: beam.samples]]
    return found


def _search(
    network: Network, reading: Reading, limits: Limits, beam: Beam, searches: Sequence[Search]
) -> None:
    """Advance the searches, one for each text of `reading`, together until all are over."""
    k, v = beam.beams, limits.vocabulary_size
    # so that k go on even where every stop ends every beam
    most = min(max(2, 1 + len(limits.stops)) * k, k * v)
    reading.keep([row for row in range(len(searches)) for _ in range(k)])
    while searches:
        sums_bv = next_log_probabilities(network, reading, limits)
        scores = [score for search in searches for score in search.scores]
        sums_bv = sums_bv + torch.tensor(scores, device=sums_bv.device)[:, None]
        best_pm, place_pm = sums_bv.view(len(searches), k * v).topk(most, dim=1)
        going_on, kept, tokens = list[Search](), list[int](), list[int]()
        for number, search in enumerate(searches):
            best = zip(best_pm[number].tolist(), place_pm[number].tolist(), strict=True)
            origins = search.advance([(score, place // v, place % v) for score, place in best])
            if origins is not None:
                going_on.append(search)
                kept += [number * k + origin for origin in origins]
                tokens += [ids[-1] for ids in search.new]
        if kept:
            reading.keep(kept)
            reading.append(torch.tensor(tokens, device=sums_bv.device))
        searches = going_on


def go_on(
    network: Network, prompts: Texts, limits: Limits, how: Draw | Beam | None
) -> list[list[Sample]]:
    """For each prompt (one token or more) its samples: drawn, by beam search, or the likeliest."""
    if isinstance(how, Draw):
        return sampled(network, prompts, limits, how)
    if isinstance(how, Beam):
        return beam_search(network, prompts, limits, how)
    return [[sample] for sample in greedy(network, prompts, limits)]
