"""The decoder of the paper, section 4.1: post-norm Transformer blocks, learned positions, an output
softmax tied to the embeddings.

Shape letters: b sequences, t positions, m real tokens of all sequences, d width, h heads, v
embedding rows, p positions of the context.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.device import to_device
from gpt1.model.dropout import (
    BLOCKS,
    MATRIX,
    PLACES_A_BLOCK,
    Dropout,
    cut,
    keep,
    only,
    scale,
    threshold,
)
from gpt1.model.layout import Layout, Real
from gpt1.params.schema import Model

Keep = Callable[[Tensor, Tensor, int, int, int], Tensor]
Cut = Callable[[Tensor, Tensor, float], Tensor]
# A layer's memory in decoding: takes the keys and values [b, h, t, d / h] of new positions, gives
# those of all that they attend to.
KeyValueCache = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Embeddings(NamedTuple):
    """The (dropped) embedding matrix of one update: the authors' single matrix, kept as its two
    parts.
    """

    tokens_vd: Tensor
    positions_pd: Tensor

    def all_rows_vd(self) -> Tensor:
        """Token, special and position rows together: the authors' softmax in fine-tuning runs over
        all of them.
        """
        return torch.cat([self.tokens_vd, self.positions_pd])


def dropped(
    embeddings: Embeddings, rate: float, keys_2: Tensor, draw: Keep, cut: Cut
) -> Embeddings:
    """The embeddings with the update's mask over the whole matrix, positions after tokens; `draw`
    and `cut` are dropout's, or compiled.
    """
    v, width = embeddings.tokens_vd.shape
    rows = torch.arange(
        v + len(embeddings.positions_pd), dtype=torch.int32, device=embeddings.tokens_vd.device
    )
    kept = draw(keys_2[None], rows, width, width, threshold(rate))
    return Embeddings(
        cut(embeddings.tokens_vd, kept[:v], rate), cut(embeddings.positions_pd, kept[v:], rate)
    )


class Hidden(NamedTuple):
    """What a network gives for a batch: hidden states [b, t, d], and the embeddings that its
    softmax is tied to.
    """

    hidden_btd: Tensor
    embeddings: Embeddings


class Tree(NamedTuple):
    """Rows that branch: which positions each one sees (itself among them), and its position number,
    for texts with a shared beginning or with a cache.
    """

    allowed_btt: Tensor
    positions_bt: Tensor


class Masks(NamedTuple):
    """What a block keeps: attention probabilities [b, h, t, t] of each layout (None: fused
    attention draws its own), and its sublayers' outputs [m, d].
    """

    attention: Sequence[Tensor | None]
    attended_md: Tensor
    fed_md: Tensor
    rate: float


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
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Hidden states [m, d] of one block from those of the block below; each layout's sequences
        attend to themselves.
        """
        qkv_md = self.qkv(x_md)
        dropouts = (
            [(kept, masks.rate) for kept in masks.attention] if masks else [None] * len(layouts)
        )
        if len(layouts) == 1:
            mixed_md = self._attention(qkv_md, layouts[0], dropouts[0], cache)
        else:
            sizes = [layout.tokens() for layout in layouts]
            more = len(x_md) - sum(sizes)  # places that make m one of few numbers
            parts = qkv_md.split([*sizes, more])
            mixed = [
                self._attention(part, layout, dropout, None)
                for part, layout, dropout in zip(parts, layouts, dropouts, strict=False)
            ]
            mixed_md = torch.cat([*mixed, mixed[0].new_zeros(more, x_md.shape[1])])
        attended_md = self.projection(mixed_md)
        n_md = self.attention_norm(
            x_md + attended_md
            if masks is None
            else _with_dropout(x_md, attended_md, masks.attended_md, masks.rate)
        )
        fed_md = self.contract(F.gelu(self.expand(n_md), approximate="tanh"))
        normed_md: Tensor = self.feed_forward_norm(
            n_md + fed_md
            if masks is None
            else _with_dropout(n_md, fed_md, masks.fed_md, masks.rate)
        )
        return normed_md

    def _attention(
        self,
        qkv_md: Tensor,
        layout: Layout,
        dropout: tuple[Tensor | None, float] | None,
        cache: KeyValueCache | None,
    ) -> Tensor:
        b, t, bias_tt = layout.b, layout.t, layout.bias_tt
        query_bhtd, key_bhtd, value_bhtd = (
            layout.padded(qkv_md).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        if cache is not None:
            key_bhtd, value_bhtd = cache(key_bhtd, value_bhtd)
        if bias_tt is None:
            rate = 0.0 if dropout is None else dropout[1]
            mixed_bhtd = F.scaled_dot_product_attention(
                query_bhtd, key_bhtd, value_bhtd, dropout_p=rate, is_causal=True
            )
        else:
            scores_bhtt = query_bhtd / math.sqrt(query_bhtd.shape[3]) @ key_bhtd.transpose(2, 3)
            probabilities_bhtt = scores_bhtt.add_(bias_tt.to(scores_bhtt.dtype)).softmax(3)
            if dropout is None:
                mixed_bhtd = probabilities_bhtt @ value_bhtd
            else:
                kept_bhtt, rate = dropout
                assert kept_bhtt is not None
                mixed_bhtd = only(probabilities_bhtt, kept_bhtt) @ value_bhtd * scale(rate)
        return layout.real(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))


def _with_dropout(x_md: Tensor, change_md: Tensor, kept_md: Tensor, rate: float) -> Tensor:
    """x + dropout(change)."""
    return torch.add(x_md, only(change_md, kept_md), alpha=scale(rate))


class Decoder(nn.Module):
    """The Transformer language model with `rows` token embeddings (the vocabulary, and in
    fine-tuning the special symbols after it).

    Every matrix is drawn from `generator`: N(0, embedding_deviation) for embeddings, N(0,
    weight_deviation) for the rest; biases are 0.
    """

    def __init__(self, sizes: Model, rows: int, generator: torch.Generator) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(rows, sizes.width))
        self.positions = nn.Parameter(torch.empty(sizes.context, sizes.width))
        with torch.device("meta"):  # nn.Linear's own random start would be drawn for nothing
            blocks = [Block(sizes) for _ in range(sizes.layers)]
        self.blocks = nn.ModuleList(blocks)
        # as to_empty does, for which torch imports a library of algebra
        empty = {name: torch.empty(there.shape) for name, there in self.blocks.state_dict().items()}
        self.blocks.load_state_dict(empty, assign=True)
        self.heads = sizes.heads
        self.fused_attention, self.compiled, self.keep, self.cut = False, "no", keep, cut
        self._draw(sizes, generator)

    def speed_up(self, compiled: str, fused_attention: bool) -> None:
        """Compile "masks" (which keep their bits), "blocks and masks" or "no", and have torch's
        fused attention with its own dropout.
        """
        self.fused_attention, self.compiled = fused_attention, compiled
        if compiled != "no":
            self.keep, self.cut = torch.compile(keep), torch.compile(cut)
        if compiled == "blocks and masks":
            for block in self.blocks:
                block.compile()

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

    def forward(
        self,
        tokens_bt: Tensor,
        dropout: Dropout,
        real: Real | None = None,
        tree: Tree | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Hidden:
        """Hidden states of token ids [b, t], t at most the context; a state sees its own and
        earlier positions only.

        Where the `real` tokens are given (see `real_places`), states are computed there only, and
        are 0 elsewhere; without a tree padding comes last. A
        `tree` says instead what each state sees and where it stands; then t may be longer than the
        context. In decoding each block has one of `caches`, and a tree's `allowed_btt` says which
        of the keys there each state sees.
        """
        embeddings, keys_p12 = Embeddings(self.tokens, self.positions), None
        if dropout.rate:
            of_blocks = range(BLOCKS, BLOCKS + PLACES_A_BLOCK * len(self.blocks))
            of_host = dropout.keys([MATRIX, *of_blocks])
            keys_p12 = to_device(of_host, self.tokens.device)  # the update's masks in one copy
            embeddings = dropped(embeddings, dropout.rate, keys_p12[0, 0], self.keep, self.cut)
            if self.fused_attention:
                torch.manual_seed(int(of_host[1, 1, 0]))
        b, t = tokens_bt.shape
        layout = Layout(
            b,
            t,
            None if real is None else real.places_m,
            self._bias(t, tree),
            torch.arange(t, dtype=torch.int32, device=tokens_bt.device),
        )
        layouts = [layout.of(group) for group in real.groups] if real else []
        layouts, places = layouts or [layout], layout.sequences_and_positions()
        positions_td = (
            F.embedding(tree.positions_bt, embeddings.positions_pd)
            if tree
            else embeddings.positions_pd[:t]
        )
        x_md = layout.real(F.embedding(tokens_bt, embeddings.tokens_vd) + positions_td)
        for number, block in enumerate(self.blocks):
            x_md = block(
                x_md,
                layouts,
                None
                if keys_p12 is None
                else self._masks(
                    dropout.rate, layouts, places, keys_p12[1 + PLACES_A_BLOCK * number :, 1:]
                ),
                None if caches is None else caches[number],
            )
        return Hidden(layout.padded(x_md), embeddings)

    def _bias(self, t: int, tree: Tree | None) -> Tensor | None:
        if tree is not None:
            return torch.zeros((), device=self.tokens.device).where(
                tree.allowed_btt[:, None], -math.inf
            )
        return (
            None
            if self.fused_attention
            else torch.full((t, t), -math.inf, device=self.tokens.device).triu(1)
        )

    def _masks(
        self,
        rate: float,
        layouts: Sequence[Layout],
        places: tuple[Tensor, Tensor] | None,
        keys_pb2: Tensor,
    ) -> Masks:
        """The masks of one block, of its places' keys; the same for a token wherever its sequence
        stands in a batch, and however it is padded.
        """
        dropped_values, width = threshold(rate), self.tokens.shape[1]
        attention_b2, attended_b2, fed_b2 = keys_pb2[:PLACES_A_BLOCK]

        def rows(keys_b2: Tensor) -> Tensor:
            if places is None:
                kept_btd = self.keep(
                    keys_b2[:, None], layouts[0].positions_t, width, width, dropped_values
                )
                return kept_btd.flatten(0, 1)
            sequences_m, positions_m = places
            return self.keep(keys_b2[sequences_m], positions_m, width, width, dropped_values)

        def probabilities(layout: Layout) -> Tensor | None:
            if layout.bias_tt is None:
                return None
            places_ht = (
                torch.arange(self.heads, dtype=torch.int32, device=self.tokens.device)[:, None]
                * self.context
                + layout.positions_t
            )
            keys_b2 = attention_b2[layout.start : layout.start + layout.b]
            return self.keep(
                keys_b2[:, None, None], places_ht, layout.t, self.context, dropped_values
            )

        return Masks(
            [probabilities(layout) for layout in layouts], rows(attended_b2), rows(fed_b2), rate
        )
