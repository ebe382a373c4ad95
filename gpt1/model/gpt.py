"""The decoder of the paper, section 4.1: post-norm Transformer blocks, learned positions, an output softmax tied to the embeddings.

Shape letters: b sequences, t positions, m real tokens of all sequences, d width, h heads, v embedding rows, p positions of the context.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.config import Model


class Dropout(NamedTuple):
    """Rate of dropout, and the seeds of its masks: the embedding matrix is dropped once an update, the rest for each micro-batch."""

    rate: float
    update_seed: int
    micro_batch_seed: int


NO_DROPOUT = Dropout(0.0, 0, 0)


class Embeddings(NamedTuple):
    """The (dropped) embedding matrix of one update: the authors' single matrix, kept as its two parts."""

    tokens_vd: Tensor
    positions_pd: Tensor

    def all_rows_vd(self) -> Tensor:
        """Token, special and position rows together: the authors' softmax in fine-tuning runs over all of them."""
        return torch.cat([self.tokens_vd, self.positions_pd])


def dropped(embeddings: Embeddings, dropout: Dropout) -> Embeddings:
    """The embeddings with the update's mask over the whole matrix; seeds the masks of everything that follows in the micro-batch."""
    if dropout.rate:
        torch.manual_seed(dropout.update_seed)
    masked = Embeddings(F.dropout(embeddings.tokens_vd, dropout.rate), F.dropout(embeddings.positions_pd, dropout.rate))
    if dropout != NO_DROPOUT:  # at rate 0 too: a classifier's own dropout draws after this
        torch.manual_seed(dropout.micro_batch_seed)
    return masked


class Hidden(NamedTuple):
    """What a network gives for a batch: hidden states [b, t, d], and the embeddings that its softmax is tied to."""

    hidden_btd: Tensor
    embeddings: Embeddings


class Tree(NamedTuple):
    """Rows that branch: which positions each one sees (itself among them), and its position number, for texts with a shared beginning."""

    allowed_btt: Tensor
    positions_bt: Tensor


class Layout(NamedTuple):
    """Where the m real tokens of b sequences of t positions stand (None: everywhere): nothing but attention is computed for padding.

    `allowed_btt` says what each position sees where that is not simply all before it.
    """

    b: int
    t: int
    real_m: Tensor | None
    allowed_btt: Tensor | None

    def real(self, x_btd: Tensor) -> Tensor:
        """The rows of the real tokens, [m, d]."""
        return x_btd.flatten(0, 1) if self.real_m is None else x_btd.flatten(0, 1).index_select(0, self.real_m)

    def padded(self, x_md: Tensor) -> Tensor:
        """The rows in their places, zeros elsewhere, [b, t, d]."""
        if self.real_m is not None:
            x_md = x_md.new_zeros(self.b * self.t, x_md.shape[1]).index_copy(0, self.real_m, x_md)
        return x_md.view(self.b, self.t, -1)


class Block(nn.Module):
    """n = LN(x + attention(x)); LN(n + feed_forward(n)): normalisation comes after each residual sum."""

    def __init__(self, sizes: Model) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width)
        self.projection = nn.Linear(sizes.width, sizes.width)
        self.attention_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)
        self.expand = nn.Linear(sizes.width, sizes.feed_forward)
        self.contract = nn.Linear(sizes.feed_forward, sizes.width)
        self.feed_forward_norm = nn.LayerNorm(sizes.width, eps=sizes.layer_norm_epsilon)

    def forward(self, x_md: Tensor, layout: Layout, dropout_rate: float) -> Tensor:
        """Hidden states [m, d] of one block from those of the block below."""
        attended_md = F.dropout(self.projection(self._attention(x_md, layout, dropout_rate)), dropout_rate)
        n_md = self.attention_norm(x_md + attended_md)
        fed_md = self.contract(F.gelu(self.expand(n_md), approximate="tanh"))
        normed_md: Tensor = self.feed_forward_norm(n_md + F.dropout(fed_md, dropout_rate))
        return normed_md

    def _attention(self, x_md: Tensor, layout: Layout, dropout_rate: float) -> Tensor:
        b, t, _, allowed_btt = layout
        query_bhtd, key_bhtd, value_bhtd = layout.padded(self.qkv(x_md)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen_bhtt = None if allowed_btt is None else allowed_btt[:, None]
        mixed_bhtd = F.scaled_dot_product_attention(query_bhtd, key_bhtd, value_bhtd, seen_bhtt, dropout_rate, is_causal=seen_bhtt is None)
        return layout.real(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))


class Decoder(nn.Module):
    """The Transformer language model with `rows` token embeddings (the vocabulary, and in fine-tuning the special symbols after it).

    Every matrix is drawn from `generator`: N(0, embedding_deviation) for embeddings, N(0, weight_deviation) for the rest; biases are 0.
    """

    def __init__(self, sizes: Model, rows: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(rows, sizes.width))
        self.positions = nn.Parameter(torch.empty(sizes.context, sizes.width))
        with torch.device("meta"):  # nn.Linear's own random start would be drawn for nothing
            blocks = [Block(sizes) for _ in range(sizes.layers)]
        self.blocks = nn.ModuleList(blocks).to_empty(device="cpu")
        self._draw(sizes, generator)

    @property
    def context(self) -> int:
        """Positions of the longest sequence."""
        return self.positions.shape[0]

    @torch.no_grad()
    def _draw(self, sizes: Model, generator: torch.Generator) -> None:
        for embedding in (self.tokens, self.positions):
            embedding.normal_(0.0, sizes.embedding_deviation, generator=generator)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, sizes.weight_deviation, generator=generator)
                module.bias.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def forward(self, tokens_bt: Tensor, dropout: Dropout, real_bt: Tensor | None = None, tree: Tree | None = None) -> Hidden:
        """Hidden states of token ids [b, t], t at most the context; a state sees its own and earlier positions only.

        Where `real_bt` is given, states are computed where it is true only, and are 0 elsewhere; without a tree false may only
        follow true. A `tree` says instead what each state sees and where it stands; then t may be longer than the context.
        """
        embeddings = dropped(Embeddings(self.tokens, self.positions), dropout)
        b, t = tokens_bt.shape
        layout = Layout(b, t, None if real_bt is None else real_bt.flatten().nonzero().squeeze(1), tree.allowed_btt if tree else None)
        positions_td = F.embedding(tree.positions_bt, embeddings.positions_pd) if tree else embeddings.positions_pd[:t]
        x_md = layout.real(F.embedding(tokens_bt, embeddings.tokens_vd) + positions_td)
        for block in self.blocks:
            x_md = block(x_md, layout, dropout.rate)
        return Hidden(layout.padded(x_md), embeddings)
