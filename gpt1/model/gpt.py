"""The decoder (paper, section 4.1): post-norm Transformer blocks, learned positions, a softmax tied
to the embeddings.

Shape letters: b sequences, t positions, m computed tokens of all sequences, d width, h heads, v
embedding rows, p positions of the context.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.packing import Computed, Packing
from gpt1.params.schema import Model


def dropped(x: Tensor, rate: float) -> Tensor:
    """Apply dropout: 0 with probability `rate`, else x / (1 - rate)."""
    return F.dropout(x, rate, training=rate > 0)


class Block(nn.Module):
    """LN(x + attention(x)), then the same with the feed-forward layer."""

    def __init__(self, sizes: Model) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width)
        self.projection = nn.Linear(sizes.width, sizes.width)
        self.attention_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)
        self.expand = nn.Linear(sizes.width, sizes.feed_forward)
        self.contract = nn.Linear(sizes.feed_forward, sizes.width)
        self.feed_forward_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)

    def forward(self, x_md: Tensor, packings: Sequence[Packing], dropout: float) -> Tensor:
        """Return hidden states [m, d]. Each packing's sequences attend to themselves."""
        # One product for queries, keys and values: three times as wide is quicker than three.
        qkv_md = self.qkv(x_md)
        sizes = [packing.tokens() for packing in packings]
        more = len(x_md) - sum(sizes)  # places that make m one of few numbers
        # Attention is the only part in which tokens meet: here the rows [m, d] part into sequences,
        # everywhere else each row is by itself.
        mixed = [
            self._attention(qkv_part_md, packing, dropout)
            for qkv_part_md, packing in zip(qkv_md.split([*sizes, more]), packings, strict=False)
        ]
        mixed += [qkv_md.new_zeros(more, x_md.shape[1])] * (more > 0)
        mixed_md = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        # Post-norm, as in the original Transformer. GPT-2 and later put the norm before each part.
        n_md = self.attention_norm(x_md + dropped(self.projection(mixed_md), dropout))
        # GELU in the tanh form of the authors' code; the exact one differs by up to 5e-4.
        fed_md = self.contract(F.gelu(self.expand(n_md), approximate="tanh"))
        normed_md: Tensor = self.feed_forward_norm(n_md + dropped(fed_md, dropout))
        return normed_md

    def _attention(self, qkv_md: Tensor, packing: Packing, dropout: float) -> Tensor:
        """Return softmax(Q Kᵀ / √d) V of each head, [m, d]."""
        b, t, bias_tt = packing.b, packing.t, packing.bias_tt
        qkv_btd = packing.padded(qkv_md)
        # d becomes heads x their width; the heads move before the positions, so that one batched
        # product serves all of them.
        query_bhtd, key_bhtd, value_bhtd = qkv_btd.view(b, t, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4
        )
        if bias_tt is None:
            mixed_bhtd = F.scaled_dot_product_attention(
                query_bhtd, key_bhtd, value_bhtd, dropout_p=dropout, is_causal=True
            )
        else:
            # The queries are scaled, not the scores: t x d numbers instead of t x t.
            scores_bhtt = query_bhtd / math.sqrt(query_bhtd.shape[3]) @ key_bhtd.transpose(2, 3)
            probabilities_bhtt = scores_bhtt.add_(bias_tt.to(scores_bhtt.dtype)).softmax(3)
            mixed_bhtd = dropped(probabilities_bhtt, dropout) @ value_bhtd
        return packing.packed(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))


class Embeddings(NamedTuple):
    """The embedding matrix of a forward pass, after dropout, in two parts."""

    tokens_vd: Tensor
    positions_pd: Tensor

    def all_rows_vd(self) -> Tensor:
        """Return all rows, over which the authors' softmax runs in fine-tuning."""
        return torch.cat([self.tokens_vd, self.positions_pd])


class Hidden(NamedTuple):
    """Hidden states [b, t, d], and the embeddings of the softmax."""

    hidden_btd: Tensor
    embeddings: Embeddings


class Decoder(nn.Module):
    """The Transformer. `generator` draws embeddings from N(0, embedding_deviation), other matrices
    from N(0, weight_deviation).
    """

    def __init__(self, sizes: Model, rows: int, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes = sizes
        self.tokens = nn.Parameter(torch.empty(rows, sizes.width))
        self.positions = nn.Parameter(torch.empty(sizes.context, sizes.width))
        with torch.device("meta"):  # nn.Linear's own random start would be drawn for nothing
            blocks = [Block(sizes) for _ in range(sizes.layers)]
        self.blocks = nn.ModuleList(blocks)
        # as to_empty does, for which torch imports a library of algebra
        empty = {
            name: torch.empty(tensor.shape) for name, tensor in self.blocks.state_dict().items()
        }
        self.blocks.load_state_dict(empty, assign=True)
        self.fused_attention = False
        # Numbers are drawn from `generator` alone, so that equal seeds give equal networks whatever
        # torch drew before.
        self._draw(generator)

    def speed_up(self, compiled: bool, fused_attention: bool) -> None:
        """Compile the blocks, and use torch's fused attention."""
        self.fused_attention = fused_attention
        for block in self.blocks if compiled else ():
            block.compile()

    @property
    def context(self) -> int:
        """Return the positions of the longest sequence."""
        return self.sizes.context

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        # The order of drawing is part of a seed: another order would be another network.
        for embedding in (self.tokens, self.positions):
            embedding.normal_(0.0, self.sizes.embedding_deviation, generator=generator)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, self.sizes.weight_deviation, generator=generator)
                module.bias.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def forward(
        self, tokens_bt: Tensor, dropout: float = 0.0, computed: Computed | None = None
    ) -> Hidden:
        """Return hidden states of token ids [b, t], each of which sees no later position. `dropout`
        is the rate of all but the classifier's. Where not all tokens are `computed`, other
        states are 0.
        """
        embeddings = Embeddings(self.tokens, self.positions)
        if dropout:  # one mask over the whole matrix, as the authors' code has it
            rows_vd, v = dropped(embeddings.all_rows_vd(), dropout), len(self.tokens)
            embeddings = Embeddings(rows_vd[:v], rows_vd[v:])
        b, t = tokens_bt.shape
        packing = Packing(b, t, None if computed is None else computed.places_m, self._bias(t))
        packings = [packing.of(group) for group in computed.groups] if computed else []
        # Equation 2, first line. Padding is left out from here on (packing.packed) and put back at
        # the end.
        positions_td = embeddings.positions_pd[:t]
        x_md = packing.packed(F.embedding(tokens_bt, embeddings.tokens_vd) + positions_td)
        for block in self.blocks:
            x_md = block(x_md, packings or [packing], dropout)
        return Hidden(packing.padded(x_md), embeddings)

    def _bias(self, t: int) -> Tensor | None:
        """Return what is added to the scores [t, t]."""
        if self.fused_attention:
            return None
        return torch.full((t, t), -math.inf, device=self.tokens.device).triu(1)
