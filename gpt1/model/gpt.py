"""The decoder of the paper, section 4.1: post-norm Transformer blocks (block.py), learned
positions, an output softmax tied to the embeddings.

Shape letters: b sequences, t positions, m real tokens of all sequences, d width, h heads, v
embedding rows, p positions of the context.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.block import Block, KeptProbabilities, Masks
from gpt1.model.dropout import (
    BLOCKS,
    MATRIX,
    PLACES_A_BLOCK,
    Dropout,
    cut,
    keep,
    threshold,
)
from gpt1.model.layout import Layout, Real
from gpt1.params.schema import Model

Keep = Callable[[Tensor, Tensor, int, int, int], Tensor]
Cut = Callable[[Tensor, Tensor, float], Tensor]


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

    def speed_up(
        self,
        compiled: str,
        fused_attention: bool,
    ) -> None:
        """Compile "masks" (which keep their bits), "blocks and masks" or "no", and have torch's
        fused attention with its own dropout.
        """
        self.fused_attention, self.compiled = fused_attention, compiled
        if compiled != "no":
            self.keep, self.cut = (torch.compile(one) for one in (keep, cut))
        if compiled == "blocks and masks":
            for block in self.blocks:
                block.compile()

    @property
    def context(self) -> int:
        """Positions of the longest sequence."""
        return self.positions.shape[0]

    @property
    def places_of_dropout(self) -> list[int]:
        """The network's places whose dropout has keys of its own."""
        return [MATRIX, *range(BLOCKS, BLOCKS + PLACES_A_BLOCK * len(self.blocks))]

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
    ) -> Hidden:
        """Hidden states of token ids [b, t], t at most the context; a state sees its own and
        earlier positions only.

        Where the `real` tokens are given (see `real_places`), states are computed there only, and
        are 0 elsewhere; padding comes last.
        """
        embeddings, keys_p12 = Embeddings(self.tokens, self.positions), None
        if dropout.rate:
            keys_p12 = dropout.keys_on(self.tokens.device, self.places_of_dropout)
            embeddings = dropped(embeddings, dropout.rate, keys_p12[0, 0], self.keep, self.cut)
            if self.fused_attention:
                torch.manual_seed(dropout.seed())
        b, t = tokens_bt.shape
        layout = Layout(
            b,
            t,
            None if real is None else real.places_m,
            self._bias(t),
            torch.arange(t, dtype=torch.int32, device=tokens_bt.device),
        )
        layouts = [layout.of(group) for group in real.groups] if real else []
        layouts = layouts or [layout]
        places = layout.sequences_and_positions()
        x_md = layout.real(
            F.embedding(tokens_bt, embeddings.tokens_vd) + embeddings.positions_pd[:t]
        )
        for number, block in enumerate(self.blocks):
            x_md = block(
                x_md,
                layouts,
                None
                if keys_p12 is None
                else self._masks(
                    dropout.rate, layouts, places, keys_p12[1 + PLACES_A_BLOCK * number :, 1:]
                ),
            )
        return Hidden(layout.padded(x_md), embeddings)

    def _bias(self, t: int) -> Tensor | None:
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

        def probabilities(layout: Layout) -> KeptProbabilities:
            keys_b2 = attention_b2[layout.start : layout.start + layout.b]
            if layout.bias_tt is None:
                return None
            places_ht = (
                torch.arange(self.heads, dtype=torch.int32, device=self.tokens.device)[:, None]
                * self.context
                + layout.positions_t
            )
            return self.keep(
                keys_b2[:, None, None], places_ht, layout.t, self.context, dropped_values
            )

        return Masks(
            [probabilities(layout) for layout in layouts], rows(attended_b2), rows(fed_b2), rate
        )
