"""Parameters, floating-point operations and bytes of a run as pure functions of its sizes. Shapes:
see gpt1/model.
"""

from typing import NamedTuple

from gpt1.params.schema import Model

# forward, and the gradients by activations and by weights (Kaplan et al. 2020: 6 N = 3 * 2 N)
BACKWARD = 3
WEIGHT_BYTES = 4  # weights stay float32 at any precision
ADAM_BYTES = 16  # float32 weight, gradient, two moments
CHECKPOINT_BYTES = 12  # float32 weight, two moments (gpt1/train/checkpoint.py)
ACTIVATION_BYTES = {
    "fp32": 4.0,
    "bf16": 3.0,
}  # of one element kept for the gradient: under autocast some stay float32
# of one logit where they are stored whole: in the product's type, in float32, and the gradient
LOGIT_BYTES = 12.0


class Network(NamedTuple):
    """Sizes that everything here follows from; `units` 0: the Transformer, above: the LSTM of as
    many units. `rows` of the embedding.
    """

    sizes: Model
    units: int
    rows: int

    @property
    def with_positions(self) -> "Network":
        """With the rows of the positions: fine-tuning's softmax runs over them too, as the authors'
        does.
        """
        return self._replace(rows=self.rows + self.sizes.context)


def parameters(network: Network) -> int:
    """Number of parameters: paper, section 4.1 (116,534,784 with 40,478 rows), and section 5's LSTM
    as gpt1/model/lstm.py has it.
    """
    width, wide = network.sizes.width, network.sizes.feed_forward
    if network.units:
        units = network.units
        return (
            network.rows * width + 4 * units * (width + units) + 8 * units + units * width + width
        )
    block = (
        4 * width**2 + 2 * width * wide + 9 * width + wide
    )  # matrices; biases of four layers and gains and biases of two norms
    return (network.rows + network.sizes.context) * width + network.sizes.layers * block


def hidden_flops(network: Network, length: float) -> float:
    """Operations a token, forward, up to the hidden state: two a weight, and attention to half of
    `length` tokens on average.
    """
    width, sizes = network.sizes.width, network.sizes
    if network.units:
        return 2.0 * (4 * network.units * (width + network.units) + network.units * width)
    return 2.0 * sizes.layers * (4 * width**2 + 2 * width * sizes.feed_forward + width * length)


def softmax_flops(network: Network) -> float:
    """Operations a token, forward, of the softmax tied to the embeddings."""
    return 2.0 * network.rows * network.sizes.width


def training_flops(network: Network, length: float, with_softmax: bool) -> float:
    """Operations a token, forward and backward, in sequences of `length` tokens."""
    return BACKWARD * (
        hidden_flops(network, length) + (softmax_flops(network) if with_softmax else 0.0)
    )


def activations(network: Network, length: float) -> float:
    """Elements a token kept for the gradient, softmax apart: the inputs of each product, norm,
    dropout and GELU, and two a score.
    """
    if network.units:
        return 8.0 * network.units + 3.0 * network.sizes.width
    sizes = network.sizes
    return sizes.layers * (
        12.0 * sizes.width + 2.0 * sizes.feed_forward + 2.0 * sizes.heads * length
    )


def training_bytes(
    network: Network, tokens: float, length: float, precision: str, logits_at_once: float
) -> float:
    """Memory of a training: Adam's state, a checkpoint in the making, the micro-batch's
    activations, as many logits as are stored.
    """
    kept = tokens * activations(network, length) * ACTIVATION_BYTES[precision]
    return (
        (ADAM_BYTES + CHECKPOINT_BYTES) * parameters(network)
        + kept
        + logits_at_once * network.rows * LOGIT_BYTES
    )


def petaflop_days(flops: float) -> float:
    """10^15 operations a second for a day: the unit in which OpenAI gives the paper's training
    (0.96).
    """
    return flops / (1e15 * 86400)
