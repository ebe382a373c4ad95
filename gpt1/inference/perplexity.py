"""How well a network foretells a text (paper, equation 1): log-probabilities of its tokens,
perplexity for each token and each word.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from gpt1.inference.cache import PADDING, window_start
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.lstm import Lstm, Network

SOFTMAX_LOGITS = 1 << 22  # computed at once: 16 MB
Floats = npt.NDArray[np.float64]


class Window(NamedTuple):
    """Tokens [start, stop) of a text go through the network; those from `first` to `stop`, the
    latter included, are foretold.
    """

    start: int
    stop: int
    first: int


def windows(length: int, context: int) -> list[Window]:
    """The windows of a text: each token but the first is foretold once, from what `window_start`
    says is seen then.
    """
    found, first = list[Window](), 1
    while first < length:
        start = window_start(first, context)
        found.append(Window(start, min(start + context, length - 1), first))
        first = start + context + 1
    return found


@torch.inference_mode()
def log_probabilities(
    network: Network, ids: Sequence[int], vocabulary_size: int, rows_at_once: int
) -> Floats:
    """The log-probability (nats) of each token of a text but the first, [tokens - 1], by the
    softmax over the vocabulary's rows.

    The Transformer sees them through sliding windows, the same as in generation; `rows_at_once` of
    these go through it together.
    """
    tokens_t = torch.tensor(list(ids), device=network.tokens.device)
    if len(ids) < 2:
        return np.zeros(0)
    if isinstance(network, Lstm):
        return _scores(
            network,
            network(tokens_t[None, :-1], NO_DROPOUT).hidden_btd[0],
            tokens_t[1:],
            vocabulary_size,
        )
    cut, found = windows(len(ids), network.context), list[Floats]()
    for start in range(0, len(cut), rows_at_once):
        rows = cut[start : start + rows_at_once]
        longest = max(window.stop - window.start for window in rows)
        tokens_bt = torch.stack(
            [
                F.pad(
                    tokens_t[one.start : one.stop],
                    (0, longest - one.stop + one.start),
                    value=PADDING,
                )
                for one in rows
            ]
        )
        hidden_btd = network(tokens_bt, NO_DROPOUT).hidden_btd
        found += [
            _scores(
                network,
                hidden_td[one.first - 1 - one.start : one.stop - one.start],
                tokens_t[one.first : one.stop + 1],
                vocabulary_size,
            )
            for hidden_td, one in zip(hidden_btd, rows, strict=True)
        ]
    return np.concatenate(found)


def _scores(network: Network, hidden_td: Tensor, targets_t: Tensor, vocabulary_size: int) -> Floats:
    """The log-probability of each target after the state before it."""
    at_once, embedding_vd = (
        max(1, SOFTMAX_LOGITS // vocabulary_size),
        network.tokens[:vocabulary_size],
    )
    found_t = [
        (hidden_td[start : start + at_once] @ embedding_vd.T)
        .float()
        .log_softmax(dim=1)
        .gather(1, targets_t[start : start + at_once, None])
        .squeeze(1)
        for start in range(0, len(hidden_td), at_once)
    ]
    scores: Floats = torch.cat(found_t).double().cpu().numpy()
    return scores


class Foretold(NamedTuple):
    """Tokens that were foretold, the loss in nats for each, and perplexity for each token and each
    word.
    """

    tokens: int
    loss: float
    per_token: float
    per_word: float


def foretold(log_probabilities_t: Floats, words_per_token: float) -> Foretold:
    """Perplexities from the tokens' log-probabilities: exp(loss), and exp(loss / words_per_token):
    a word's tokens multiply.

    Raises ValueError where there is no token or no word.
    """
    if not len(log_probabilities_t) or words_per_token <= 0:
        raise ValueError(
            f"expected tokens and words, found {len(log_probabilities_t)} tokens, {words_per_token}"
            " words for each"
        )
    loss = -float(log_probabilities_t.sum()) / len(log_probabilities_t)
    return Foretold(
        len(log_probabilities_t), loss, math.exp(loss), math.exp(loss / words_per_token)
    )
