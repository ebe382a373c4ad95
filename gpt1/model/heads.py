"""The classifiers on top of the decoder (paper, section 3.2 and Figure 1): they read the hidden
state at the first extract symbol.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.device import to_device
from gpt1.model.dropout import HEAD, Dropout, cut, keep, threshold
from gpt1.model.gpt import Embeddings
from gpt1.model.layout import LENGTHS, real_places
from gpt1.model.lstm import Network

Combine = Literal["single", "sum", "choose"]


def first_extract(tokens_bt: Tensor, extract: int) -> Tensor:
    """Position [b] of each sequence's first extract symbol, where it ends; the symbol must stand in
    every sequence.
    """
    return (tokens_bt == extract).int().argmax(dim=1)


class Head(nn.Module):
    """Dropout, then one linear layer drawn from N(0, deviation) with bias 0.

    `choose` scores each sequence with one and the same logit; the other two give `outputs` logits
    an example.
    """

    def __init__(
        self,
        width: int,
        outputs: int,
        combine: Combine,
        deviation: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.combine = combine
        self.linear = nn.Linear(width, 1 if combine == "choose" else outputs)
        with torch.no_grad():
            self.linear.weight.normal_(0.0, deviation, generator=generator)
            self.linear.bias.zero_()

    def forward(self, states_bkd: Tensor, dropout: Dropout) -> Tensor:
        """Logits [b, outputs] from the extracted states of the k sequences of each example;
        `dropout` is the classifier's own.
        """
        functions = {"single": self.classify, "sum": self.compare, "choose": self.choose}
        if dropout.rate:  # one mask an example, shared by its sequences
            keys_b2 = to_device(dropout.keys([HEAD])[0, 1:], states_bkd.device)
            width = states_bkd.shape[2]
            kept_bd = keep(
                keys_b2, torch.zeros_like(keys_b2[:, 0]), width, width, threshold(dropout.rate)
            )
            states_bkd = cut(states_bkd, kept_bd[:, None], dropout.rate)
        return functions[self.combine](states_bkd)

    def classify(self, states_bkd: Tensor) -> Tensor:
        """One sequence an example: classification and entailment."""
        logits_bo: Tensor = self.linear(states_bkd[:, 0])
        return logits_bo

    def compare(self, states_bkd: Tensor) -> Tensor:
        """Both orders of a pair: the two states are added, so the order does not count."""
        logits_bo: Tensor = self.linear(states_bkd.sum(dim=1))
        return logits_bo

    def choose(self, states_bkd: Tensor) -> Tensor:
        """One sequence a choice: a logit each."""
        logits_bk: Tensor = self.linear(states_bkd).squeeze(2)
        return logits_bk


class Classified(NamedTuple):
    """Logits [b, outputs], and what the auxiliary language model needs: hidden states of all b·k
    sequences and the embeddings.
    """

    logits_bo: Tensor
    hidden_ntd: Tensor
    embeddings: Embeddings


class Classifier(nn.Module):
    """A network and a head on it. The last token row of the network is the extract symbol."""

    def __init__(self, decoder: Network, head: Head) -> None:
        super().__init__()
        self.decoder = decoder
        self.head = head
        self.extract = decoder.tokens.shape[0] - 1

    def forward(
        self,
        tokens_bkt: Tensor,
        dropout: Dropout,
        classifier_dropout: float,
        lengths_n: Tensor | None = None,
    ) -> Classified:
        """Logits of examples of k sequences each, token ids [b, k, t], right-padded with any id but
        extract. `lengths_n`, on the host: of the b · k sequences up to that symbol, where known.

        `dropout` numbers the examples; their sequences have numbers of their own.
        """
        b, k, t = tokens_bkt.shape
        tokens_nt = tokens_bkt.view(b * k, t)
        if lengths_n is None:  # a GPU is waited for
            lengths_n = first_extract(tokens_nt, self.extract).cpu() + 1
        # few lengths, as few numbers of real tokens: each would have products of its own
        t += min(-t % LENGTHS, self.decoder.context - t)
        tokens_nt = F.pad(tokens_nt, (0, t - tokens_nt.shape[1]))
        real, last_n = (
            real_places(lengths_n, t, tokens_nt.device),
            to_device(lengths_n - 1, tokens_nt.device),
        )
        rows_n = (dropout.rows_b[:, None] * k + np.arange(k)).reshape(-1)
        hidden_ntd, embeddings = self.decoder(tokens_nt, dropout._replace(rows_b=rows_n), real)
        states_bkd = hidden_ntd[torch.arange(b * k, device=last_n.device), last_n].view(b, k, -1)
        return Classified(
            self.head(states_bkd, dropout._replace(rate=classifier_dropout)), hidden_ntd, embeddings
        )
