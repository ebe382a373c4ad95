"""A block of the decoder (the paper, section 4.1): masked self-attention, and a network that is fed
forward. Shape letters as in gpt.py.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.dropout import only, scale
from gpt1.model.layout import Layout
from gpt1.params.schema import Model

# attention probabilities [b, h, t, t] to keep; None: torch's fused attention draws its own
KeptProbabilities = Tensor | None


class Masks(NamedTuple):
    """What a block keeps: attention probabilities of each layout, and its sublayers' outputs
    [m, d].
    """

    attention: Sequence[KeptProbabilities]
    attended_md: Tensor
    fed_md: Tensor
    rate: float


NOT_DROPPED = None, None, 0.0


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

    def forward(
        self,
        x_md: Tensor,
        layouts: Sequence[Layout],
        masks: Masks | None,
    ) -> Tensor:
        """Hidden states [m, d] of one block from those of the block below; each layout's sequences
        attend to themselves.
        """
        qkv_md = self.qkv(x_md)
        dropouts = (
            [(kept, masks.rate) for kept in masks.attention] if masks else [None] * len(layouts)
        )
        if len(layouts) == 1:
            mixed_md = self._attention(qkv_md, layouts[0], dropouts[0])
        else:
            sizes = [layout.tokens() for layout in layouts]
            more = len(x_md) - sum(sizes)  # places that make m one of few numbers
            parts = qkv_md.split([*sizes, more])
            mixed = [
                self._attention(part, layout, dropout)
                for part, layout, dropout in zip(parts, layouts, dropouts, strict=False)
            ]
            mixed_md = torch.cat([*mixed, mixed[0].new_zeros(more, x_md.shape[1])])
        attended_md = self.projection(mixed_md)
        attended, fed, rate = (
            (masks.attended_md, masks.fed_md, masks.rate) if masks else NOT_DROPPED
        )
        n_md = self._normed(self.attention_norm, x_md, attended_md, attended, rate)
        fed_md = self.contract(F.gelu(self.expand(n_md), approximate="tanh"))
        return self._normed(self.feed_forward_norm, n_md, fed_md, fed, rate)

    def _normed(
        self,
        norm: nn.LayerNorm,
        x_md: Tensor,
        change_md: Tensor,
        kept_md: Tensor | None,
        rate: float,
    ) -> Tensor:
        """LN(x + dropout(change))."""
        normed_md: Tensor = norm(
            x_md + change_md
            if kept_md is None
            else torch.add(x_md, only(change_md, kept_md), alpha=scale(rate))
        )
        return normed_md

    def _attention(
        self,
        qkv_md: Tensor,
        layout: Layout,
        dropout: tuple[KeptProbabilities, float] | None,
    ) -> Tensor:
        b, t, bias_tt = layout.b, layout.t, layout.bias_tt
        kept, rate = dropout or (None, 0.0)
        qkv_btd = layout.padded(qkv_md)
        query_bhtd, key_bhtd, value_bhtd = qkv_btd.view(b, t, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4
        )
        if bias_tt is None:
            mixed_bhtd = F.scaled_dot_product_attention(
                query_bhtd, key_bhtd, value_bhtd, dropout_p=rate, is_causal=True
            )
        else:
            scores_bhtt = query_bhtd / math.sqrt(query_bhtd.shape[3]) @ key_bhtd.transpose(2, 3)
            probabilities_bhtt = scores_bhtt.add_(bias_tt.to(scores_bhtt.dtype)).softmax(3)
            if kept is None:
                mixed_bhtd = probabilities_bhtt @ value_bhtd
            else:
                mixed_bhtd = only(probabilities_bhtt, kept) @ value_bhtd * scale(rate)
        return layout.real(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))
