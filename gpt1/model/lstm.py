"""The paper's baseline (section 5, Table 5): one LSTM layer in the decoder's place.

Gates in torch's order: input, forget, cell, output; h = o * tanh(c), c = f * c + i * tanh(g).
Shapes as in gpt.py; u: LSTM units.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.gpt import Decoder, Embeddings, Hidden, dropped
from gpt1.model.packing import Computed
from gpt1.params.schema import Model

FORGET_BIAS = 1.0  # keeps the cell from forgetting everything at the start (Jozefowicz et al. 2015)


class Lstm(nn.Module):
    """The LSTM, drawn as the decoder is; the forget gate's bias is 1."""

    def __init__(self, sizes: Model, units: int, rows: int, generator: torch.Generator) -> None:
        super().__init__()
        self.context = sizes.context
        self.tokens = nn.Parameter(torch.empty(rows, sizes.width))
        self.recurrent = nn.LSTM(sizes.width, units, batch_first=True)
        self.projection = nn.Linear(units, sizes.width)
        with torch.no_grad():
            self.tokens.normal_(0.0, sizes.embedding_deviation, generator=generator)
            for parameter in (*self.recurrent.parameters(), *self.projection.parameters()):
                if parameter.ndim > 1:
                    parameter.normal_(0.0, sizes.weight_deviation, generator=generator)
                else:
                    parameter.zero_()
            # torch has two biases that are added; one of them alone is set, else the gate would
            # start at 2.
            self.recurrent.get_parameter("bias_ih_l0")[units : 2 * units] = FORGET_BIAS

    def forward(
        self, tokens_bt: Tensor, dropout: float = 0.0, computed: Computed | None = None
    ) -> Hidden:
        """Return hidden states of token ids [b, t]. Dropout acts on embeddings and outputs;
        `computed` changes nothing.
        """
        rows_vd = dropped(self.tokens, dropout)
        # Under autocast cuDNN's LSTM computes in float16, whatever the precision: gradients vanish.
        with torch.autocast("cuda", enabled=False):
            outputs_btu, _ = self.recurrent(F.embedding(tokens_bt, rows_vd))
        hidden_btd = self.projection(dropped(outputs_btu, dropout))
        return Hidden(hidden_btd, Embeddings(rows_vd, rows_vd[:0]))  # it has no positions


Network = Decoder | Lstm  # for all that treats them alike
