"""The classifiers on the state at the first extract symbol (paper, section 3.2 and Figure 1)."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.gpt import Embeddings, dropped
from gpt1.model.lstm import Network
from gpt1.model.packing import LENGTHS, Computed, computed_places

Combine = Literal["single", "sum", "choose"]


def first_extract(tokens_bt: Tensor, extract: int) -> Tensor:
    """Return the position [b] of each sequence's first extract symbol, its end; every sequence must
    have one.
    """
    return (tokens_bt == extract).int().argmax(dim=1)


class Head(nn.Module):
    """Dropout, then a linear layer drawn from N(0, deviation), with bias 0."""

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

    def forward(self, states_bkd: Tensor, dropout: float = 0.0) -> Tensor:
        """Return logits [b, outputs] (of `choose` [b, k]) from the states of each example's k
        sequences, which share one dropout mask.
        """
        functions = {"single": self.classify, "sum": self.compare, "choose": self.choose}
        if dropout:
            # One mask for all sequences of an example, so that its choices are compared on the same
            # units.
            states_bkd = states_bkd * dropped(torch.ones_like(states_bkd[:, :1]), dropout)
        return functions[self.combine](states_bkd)

    def classify(self, states_bkd: Tensor) -> Tensor:
        """Read the one sequence of each example."""
        logits_bo: Tensor = self.linear(states_bkd[:, 0])
        return logits_bo

    def compare(self, states_bkd: Tensor) -> Tensor:
        """Add the states of both orders of a pair."""
        logits_bo: Tensor = self.linear(states_bkd.sum(dim=1))
        return logits_bo

    def choose(self, states_bkd: Tensor) -> Tensor:
        """Give each choice a logit."""
        logits_bk: Tensor = self.linear(states_bkd).squeeze(2)
        return logits_bk


class Classified(NamedTuple):
    """Logits [b, outputs], hidden states of all sequences, embeddings."""

    logits_bo: Tensor
    hidden_ntd: Tensor
    embeddings: Embeddings


class Classifier(nn.Module):
    """A network and a head on it. The network's last token row is the extract symbol."""

    def __init__(self, decoder: Network, head: Head) -> None:
        super().__init__()
        self.decoder = decoder
        self.head = head
        self.extract = decoder.tokens.shape[0] - 1

    def padded_length(self, t: int) -> int:
        """Return the length to which t tokens are padded: one of few, for each new shape costs
        time.
        """
        return t + min(-t % LENGTHS, self.decoder.context - t)

    def forward(
        self,
        tokens_bkt: Tensor,
        dropout: float = 0.0,
        classifier_dropout: float = 0.0,
        computed: Computed | None = None,
    ) -> Classified:
        """Return logits of token ids [b, k, t], right-padded with any id but extract; which
        tokens are `computed` may be known.
        """
        b, k, t = tokens_bkt.shape
        longer = self.padded_length(t)
        tokens_nt = F.pad(tokens_bkt.view(b * k, t), (0, longer - t))
        if computed is None:  # a GPU is waited for
            lengths_n = first_extract(tokens_nt[:, :t], self.extract).cpu() + 1
            computed = computed_places(lengths_n, longer, tokens_nt.device)
        hidden_ntd, embeddings = self.decoder(tokens_nt, dropout, computed)
        sequences_n = torch.arange(b * k, device=tokens_nt.device)
        # A right-padded sequence ends with extract, so its last real token is the one to read.
        states_bkd = hidden_ntd[sequences_n, computed.last_n].view(b, k, -1)
        return Classified(self.head(states_bkd, classifier_dropout), hidden_ntd, embeddings)
