"""A block of the decoder (paper, section 4.1): masked self-attention and a feed-forward network.
Shape letters as in gpt.py.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.layout import Layout
from gpt1.params.schema import Model


def dropped(x: Tensor, rate: float) -> Tensor:
    """Apply torch's dropout: 0 with probability `rate`, else x / (1 - rate)."""
    return F.dropout(x, rate, training=rate > 0)


class Block(nn.Module):
    """n = LN(x + attention(x)); LN(n + feed_forward(n)): normalisation comes after each residual
    sum.
    """

    def __init__(self, sizes: Model) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width)
        self.projection = nn.Linear(sizes.width, sizes.width)
        self.attention_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)
        self.expand = nn.Linear(sizes.width, sizes.feed_forward)
        self.contract = nn.Linear(sizes.feed_forward, sizes.width)
        self.feed_forward_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)

    def forward(self, x_md: Tensor, layouts: Sequence[Layout], dropout: float) -> Tensor:
        """Hidden states [m, d] of one block from those of the block below; each layout's sequences
        attend to themselves.
        """
        # One product for queries, keys and values: three times as wide is quicker than three.
        qkv_md = self.qkv(x_md)
        sizes = [layout.tokens() for layout in layouts]
        more = len(x_md) - sum(sizes)  # places that make m one of few numbers
        # Attention is the only part in which tokens meet: here the rows [m, d] part into sequences,
        # everywhere else each row is by itself.
        mixed = [
            self._attention(qkv_part_md, layout, dropout)
            for qkv_part_md, layout in zip(qkv_md.split([*sizes, more]), layouts, strict=False)
        ]
        mixed += [qkv_md.new_zeros(more, x_md.shape[1])] * (more > 0)
        mixed_md = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        # Post-norm, as in the original Transformer. GPT-2 and later put the norm before each part.
        n_md = self.attention_norm(x_md + dropped(self.projection(mixed_md), dropout))
        # GELU in the tanh form of the authors' code; the exact one differs by up to 5e-4.
        fed_md = self.contract(F.gelu(self.expand(n_md), approximate="tanh"))
        normed_md: Tensor = self.feed_forward_norm(n_md + dropped(fed_md, dropout))
        return normed_md

    def _attention(self, qkv_md: Tensor, layout: Layout, dropout: float) -> Tensor:
        """softmax(Q Kᵀ / √d) V of each head, [m, d]: by torch's fused kernel where the layout has
        no mask of its own.
        """
        b, t, bias_tt = layout.b, layout.t, layout.bias_tt
        qkv_btd = layout.padded(qkv_md)
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
        return layout.real(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))
