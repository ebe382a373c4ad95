"""Log-probabilities of continuations by a pre-trained network (paper, section 5).

Shape letters: n prompts, k continuations of each, b rows (a continuation after its prefix), t
positions, s scored tokens, d width, v vocabulary.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays
from gpt1.model.lstm import Network

LOGITS_AT_ONCE = 1 << 22  # 16 MB

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Prompts(NamedTuple):
    """Prompts as stage `prompt` writes them: each prefix and its k continuations in turn, and where
    each begins. The first `uncounted` tokens of a continuation are not scored.
    """

    tokens: npt.NDArray[np.unsignedinteger]
    offsets: Integers
    uncounted_nk: Integers
    labels_n: Integers

    def counted(self) -> Integers:
        """Return how many tokens of each continuation are scored, [n, k]."""
        lengths_nj = np.diff(self.offsets).reshape(len(self.labels_n), -1)
        counted_nk: Integers = lengths_nj[:, 1:] - self.uncounted_nk
        return counted_nk

    def texts(self) -> list[Tensor]:
        """Return the tokens of the n * k continuations, each after its prefix."""
        parts = np.split(self.tokens.astype(np.int64), self.offsets[1:-1])
        group_size = self.uncounted_nk.shape[1] + 1
        return [
            torch.from_numpy(np.concatenate([parts[first], continuation]))
            for first in range(0, len(parts), group_size)
            for continuation in parts[first + 1 : first + group_size]
        ]


def read_prompts(path: Path) -> Prompts:
    """Read one split of a zero-shot set. Raises UserError."""
    try:
        return Prompts(*read_arrays(path, ("tokens", "offsets", "uncounted", "labels")).values())
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: expected arrays tokens, offsets, uncounted and labels, found none ({error});"
            " run dvc repro"
        ) from None


@torch.inference_mode()
def log_probabilities(
    network: Network, prompts: Prompts, vocabulary_size: int, batch_tokens: int
) -> Floats:
    """Sum the log-probabilities (nats) of each continuation's counted tokens, [n, k], by a float32
    softmax over the vocabulary; about `batch_tokens` positions at a time.
    """
    embedding_vd = network.tokens[:vocabulary_size]
    device, at_once = embedding_vd.device, max(1, LOGITS_AT_ONCE // vocabulary_size)
    texts, counted = prompts.texts(), prompts.counted().flatten()
    sums = np.zeros(len(texts))
    for rows in _batches([len(text) for text in texts], batch_tokens):
        # Padding comes last: the causal mask hides it.
        tokens_bt = pad_sequence([texts[row] for row in rows], batch_first=True)
        place_t = torch.arange(1, tokens_bt.shape[1])
        end_b1 = torch.tensor([[len(texts[row])] for row in rows])
        counted_b = torch.from_numpy(counted[rows])
        scored_bt = (place_t < end_b1) & (place_t >= end_b1 - counted_b[:, None])
        hidden_btd = network(tokens_bt[:, :-1].to(device)).hidden_btd
        hidden_sd = hidden_btd[scored_bt.to(device)]
        targets_s = tokens_bt[:, 1:][scored_bt].to(device)
        losses_s = torch.cat(
            [
                F.cross_entropy((hidden @ embedding_vd.T).float(), targets, reduction="none")
                for hidden, targets in zip(
                    torch.split(hidden_sd, at_once), torch.split(targets_s, at_once), strict=True
                )
            ]
        )
        parts = torch.split(losses_s.double().cpu(), counted_b.tolist())
        sums[rows] = [-chunk.numpy().sum() for chunk in parts]
    return sums.reshape(prompts.uncounted_nk.shape)


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group rows of similar length, the longest first."""
    rows = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    while rows:
        at_once = max(1, batch_tokens // lengths[rows[0]])
        yield rows[:at_once]
        rows = rows[at_once:]
