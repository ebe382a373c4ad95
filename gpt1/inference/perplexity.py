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

from gpt1.inference.cache import padded, window_start
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
    if len(ids) < 2:
        return np.zeros(0)
    embedding_vd = network.tokens[:vocabulary_size]
    targets_t = torch.tensor(list(ids), device=embedding_vd.device)
    whole = Window(0, len(ids) - 1, 1)
    cut = [whole] if isinstance(network, Lstm) else windows(len(ids), network.context)
    found = list[Tensor]()
    for start in range(0, len(cut), rows_at_once):
        rows = cut[start : start + rows_at_once]
        tokens_bt, _ = padded([ids[one.start : one.stop] for one in rows], embedding_vd.device)
        hidden_btd = network(tokens_bt, NO_DROPOUT).hidden_btd
        found += [
            target_log_probabilities(
                hidden_td[one.first - 1 - one.start : one.stop - one.start],
                embedding_vd,
                targets_t[one.first : one.stop + 1],
            )
            for hidden_td, one in zip(hidden_btd, rows, strict=True)
        ]
    scores: Floats = torch.cat(found).double().cpu().numpy()
    return scores


def target_log_probabilities(
    hidden_ud: Tensor, embedding_vd: Tensor, targets_s: Tensor, state_s: Tensor | None = None
) -> Tensor:
    """The log-probability [s] of each target after a hidden state: that of number state_s, or its
    own; the softmax over all rows of `embedding_vd` is computed for some states at a time.
    """
    at_once = max(1, SOFTMAX_LOGITS // len(embedding_vd))
    if state_s is None:
        state_s = torch.arange(len(hidden_ud), device=hidden_ud.device)
    found_s = torch.empty(len(targets_s), device=hidden_ud.device)
    for start in range(0, len(hidden_ud), at_once):
        logits_bv = (hidden_ud[start : start + at_once] @ embedding_vd.T).float()
        inside_s = (state_s >= start) & (state_s < start + at_once)
        found_s[inside_s] = logits_bv.log_softmax(dim=1)[
            state_s[inside_s] - start, targets_s[inside_s]
        ]
    return found_s


class Perplexity(NamedTuple):
    """Tokens that were foretold, the loss in nats for each, and perplexity for each token and each
    word.
    """

    tokens: int
    loss: float
    per_token: float
    per_word: float


def perplexities(log_probabilities_t: Floats, words_per_token: float) -> Perplexity:
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
    return Perplexity(
        len(log_probabilities_t), loss, math.exp(loss), math.exp(loss / words_per_token)
    )
