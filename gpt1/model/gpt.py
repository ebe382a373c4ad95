"""The decoder of the paper, section 4.1: post-norm Transformer blocks (block.py), learned
positions, an output softmax tied to the embeddings.

Shape letters: b sequences, t positions, m real tokens of all sequences, d width, h heads, v
embedding rows, p positions of the context.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.block import Block, dropped
from gpt1.model.layout import Layout, Real
from gpt1.params.schema import Model


class Embeddings(NamedTuple):
    """The (dropped) embedding matrix of a forward pass: the authors' single matrix, kept as its two
    parts.
    """

    tokens_vd: Tensor
    positions_pd: Tensor

    def all_rows_vd(self) -> Tensor:
        """Token, special and position rows together: the authors' softmax in fine-tuning runs over
        all of them.
        """
        return torch.cat([self.tokens_vd, self.positions_pd])


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
        self._draw(sizes, generator)

    def speed_up(self, compiled: bool, fused_attention: bool) -> None:
        """Compile the blocks, and have torch's fused attention."""
        self.fused_attention = fused_attention
        for block in self.blocks if compiled else ():
            block.compile()

    @property
    def context(self) -> int:
        """Positions of the longest sequence."""
        return self.sizes.context

    @torch.no_grad()
    def _draw(self, sizes: Model, generator: torch.Generator) -> None:
        # The order of drawing is part of a seed: another order would be another network.
        for embedding in (self.tokens, self.positions):
            embedding.normal_(0.0, sizes.embedding_deviation, generator=generator)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, sizes.weight_deviation, generator=generator)
                module.bias.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def forward(self, tokens_bt: Tensor, dropout: float = 0.0, real: Real | None = None) -> Hidden:
        """Hidden states of token ids [b, t], t at most the context; a state sees its own and
        earlier positions only. `dropout`: the rate of all of the paper's dropouts but the
        classifier's.

        Where the `real` tokens are given (see `real_places`), states are computed there only, and
        are 0 elsewhere; padding comes last.
        """
        embeddings = Embeddings(self.tokens, self.positions)
        if dropout:  # one mask over the whole matrix, as the authors' code has it
            rows_vd, v = dropped(embeddings.all_rows_vd(), dropout), len(self.tokens)
            embeddings = Embeddings(rows_vd[:v], rows_vd[v:])
        b, t = tokens_bt.shape
        layout = Layout(b, t, None if real is None else real.places_m, self._bias(t))
        layouts = [layout.of(group) for group in real.groups] if real else []
        # Equation 2, first line. Padding is left out from here on (layout.real) and put back at the
        # end.
        positions_td = embeddings.positions_pd[:t]
        x_md = layout.real(F.embedding(tokens_bt, embeddings.tokens_vd) + positions_td)
        for block in self.blocks:
            x_md = block(x_md, layouts or [layout], dropout)
        return Hidden(layout.padded(x_md), embeddings)

    def _bias(self, t: int) -> Tensor | None:
        """What is added to the scores [t, t]: -inf for what comes later. None: torch's fused
        attention knows.
        """
        if self.fused_attention:
            return None
        return torch.full((t, t), -math.inf, device=self.tokens.device).triu(1)
