"""What an update asks of a GPU by class of kernel: launches, operations, bytes, as pure functions
of its sizes; and the seconds they take at a GPU's rates.

The formulas' coefficients were counted in the trainers, whose operators ran on tensors without
numbers (benchmarks/step_budget.py, benchmarks/finetuning_budget.py); the shares of a peak are
assumed. Nothing here was measured on a GPU.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from gpt1.pipeline.plan import formulas
from gpt1.pipeline.plan.formulas import Network

CLASSES = (
    "products of blocks",
    "attention",
    "products of the head",
    "softmax",
    "embeddings",
    "masks, norms, GELU, casts",
    "clipping and Adam",
)
# Of the peak in bf16: products of these sizes (620 of an H100's 989 TFLOP/s; 8192^3 has reached
# 798), attention with its dropout, forward and backward (140). Of the memory's nominal bandwidth
# (3.0 of 3.35 TB/s). The same shares are assumed of every GPU.
PRODUCTS_SHARE, ATTENTION_SHARE, MEMORY_SHARE = 0.627, 0.142, 0.896
LAUNCH_SECONDS = 6e-6  # of a kernel, from Python, while the GPU does what was launched before
SOFTMAX_ROWS, SOFTMAX_COLUMNS = 8192, 128  # blocks and multiple of gpt1/train/losses.py, on a GPU
ADAM_BYTES = 44.0  # a parameter: norm, clipping, the weight and both moments read and written
ADDED_BYTES = 12.0  # a parameter, of the gradient of each further micro-batch
CAST_BYTES = 12.0  # a weight of blocks, to bf16 and of its gradient back; forward alone half


class WayOfComputing(NamedTuple):
    """What a way of computing takes beside its products. Bytes: of a token, layer and unit of
    width, and so many more with dropout; a logit; a weight of the tied matrix by the softmax, once
    and a block of rows; with dropout. Launches: a layer, and more with dropout; a block of the
    softmax; once, and more with dropout.
    """

    width_bytes: float
    width_bytes_dropped: float
    logit_bytes: float
    tied_bytes: float
    block_bytes: float
    matrix_bytes_dropped: float
    layer_launches: int
    layer_launches_dropped: int
    block_launches: int
    launches: int
    launches_dropped: int


WAYS = {
    "compiled": WayOfComputing(88.7, 6.0, 4.0, 15.0, 10.0, 10.0, 23, 0, 6, 7, 0),
    "operators": WayOfComputing(157.0, 190.0, 46.0, 19.0, 18.0, 116.0, 52, 48, 26, 51, 31),
    "rows": WayOfComputing(225.0, 199.0, 46.0, 27.0, 18.0, 116.0, 60, 48, 26, 109, 55),
    "graphs": WayOfComputing(110.0, 6.0, 46.0, 15.0, 10.0, 10.0, 0, 0, 0, 48, 0),
}


WayName = Literal["compiled", "operators", "rows", "graphs"]


class Step(NamedTuple):
    """A micro-batch's forward and backward pass: so many real tokens in sequences of a `length`;
    whether a softmax over the vocabulary and dropout are in it. `way`: compiled blocks and softmax;
    operator by operator; so on rows of many lengths, as fine-tuning goes; that by CUDA graphs of
    compiled blocks.
    """

    network: Network
    tokens: float
    length: float
    softmax: bool
    dropout: bool
    way: WayName


class KernelCounts(NamedTuple):
    """Launches, operations of products, bytes read and written."""

    launches: float = 0.0
    flops: float = 0.0
    bytes_: float = 0.0

    def times(self, factor: float) -> "KernelCounts":
        """So many times as much."""
        return KernelCounts(*(factor * one for one in self))


class Gpu(NamedTuple):
    """Dense bf16 operations and bytes of memory a second, as its data sheet has them."""

    flops: float
    bandwidth: float


def way_of(kind: str, compiled: bool) -> WayName:
    """How trainings of a kind go."""
    if kind != "pretrain":
        return "rows"
    return "compiled" if compiled else "operators"


def products(tokens: float, inputs: float, outputs: float) -> KernelCounts:
    """A linear layer's three products in bf16, each matrix of which is touched by all of them."""
    touched = tokens * (inputs + outputs) + inputs * outputs
    return KernelCounts(0, 6.0 * tokens * inputs * outputs, 6.0 * touched)


def added(ones: list[KernelCounts]) -> KernelCounts:
    """All of them."""
    return KernelCounts(*map(sum, zip(*ones, strict=True)))


def of_blocks(step: Step) -> dict[str, KernelCounts]:
    """The classes of the Transformer's blocks; of the LSTM, whose loop in time is not among them,
    as one kernel of cuDNN does it.
    """
    sizes, m, way = step.network.sizes, step.tokens, WAYS[step.way]
    width, wide, units = sizes.width, sizes.feed_forward, step.network.units
    if units:
        layers = [(width + units, 4 * units), (units, width)]
        bytes_ = m * units * (40.0 + 95.0 * step.dropout)  # gates; masks of outputs
        multiplied, attended = added([products(m, *one) for one in layers]), KernelCounts()
        weights, depth = sum(one * other for one, other in layers), 1
    else:
        layers = [(width, 3 * width), (width, width), (width, wide), (wide, width)]
        depth, weights = sizes.layers, sum(one * other for one, other in layers)
        multiplied = added([products(m, *one) for one in layers]).times(depth)
        # causal: half of two products forward and five backward
        flops, touched = 7.0 * step.length * width, 16.0 * width + 8.0 * sizes.heads
        attended = KernelCounts(0, flops, touched).times(m * depth)
        dropped = way.width_bytes_dropped * step.dropout
        bytes_ = m * depth * ((way.width_bytes + dropped) * width + 12.0 * wide)
    return {
        "products of blocks": multiplied,
        "attention": attended,
        "masks, norms, GELU, casts": KernelCounts(0, 0, bytes_ + CAST_BYTES * weights * depth),
    }


def of_step(step: Step) -> dict[str, KernelCounts]:
    """Each class of a micro-batch, forward and backward; launches of all stand with the last but
    one class, for what launches them is Python and not a class.
    """
    width, m, way = step.network.sizes.width, step.tokens, WAYS[step.way]
    rows = math.ceil(step.network.rows / SOFTMAX_COLUMNS) * SOFTMAX_COLUMNS
    blocks = math.ceil(m / SOFTMAX_ROWS) if step.softmax else 0
    layers = 1 if step.network.units else step.network.sizes.layers
    of_matrix = 7.0 + way.matrix_bytes_dropped * step.dropout
    if blocks:
        of_matrix += way.tied_bytes + way.block_bytes * blocks
    head = 6.0 * (m * rows + blocks * rows * width + m * width) if blocks else 0.0
    found = of_blocks(step) | {
        "products of the head": KernelCounts(0, 6.0 * m * rows * width * step.softmax, head),
        "softmax": KernelCounts(0, 0, way.logit_bytes * m * rows * step.softmax),
        "embeddings": KernelCounts(0, 0, of_matrix * rows * width + m * (8.0 * width + 16.0)),
    }
    a_layer = way.layer_launches + way.layer_launches_dropped * step.dropout
    launches = (
        layers * a_layer
        + way.block_launches * blocks
        + way.launches
        + way.launches_dropped * step.dropout
    )
    small = found["masks, norms, GELU, casts"]
    return found | {"masks, norms, GELU, casts": small._replace(launches=float(launches))}


def of_update(step: Step, micro_batches: int = 1) -> dict[str, KernelCounts]:
    """Each class of an update of so many micro-batches like `step`."""
    parameters = formulas.parameters(step.network)
    bytes_ = ADAM_BYTES + ADDED_BYTES * (micro_batches - 1)
    adam = KernelCounts(round(9 + parameters / 6.4e6), 0, bytes_ * parameters)
    found = {name: one.times(micro_batches) for name, one in of_step(step).items()}
    return {name: (found | {"clipping and Adam": adam})[name] for name in CLASSES}


def of_scoring(step: Step) -> dict[str, KernelCounts]:
    """Each class of a forward pass without gradients, dropout or compiled blocks."""
    whole = of_step(step._replace(dropout=False, way="rows"))
    sizes, m = step.network.sizes, step.tokens
    layers = 1 if step.network.units else sizes.layers
    small = m * layers * (85.0 * sizes.width + 4.0 * sizes.feed_forward)
    casts = CAST_BYTES / 2 * whole["products of blocks"].flops / (6.0 * m)
    return {
        "products of blocks": whole["products of blocks"].times(1 / 3),
        "attention": whole["attention"].times(2 / 7),
        "products of the head": whole["products of the head"].times(1 / 3),
        "softmax": whole["softmax"].times(18 / 46),
        "embeddings": KernelCounts(0, 0, m * 8.0 * sizes.width),
        "masks, norms, GELU, casts": KernelCounts(24.0 * layers + 12.0, 0, small + casts),
    }


def seconds_by_class(found: Mapping[str, KernelCounts], gpu: Gpu) -> dict[str, float]:
    """How long each class keeps a GPU busy: by its operations, or its bytes where those take
    longer.
    """
    return {
        name: max(
            one.flops / (gpu.flops * (ATTENTION_SHARE if name == "attention" else PRODUCTS_SHARE)),
            one.bytes_ / (gpu.bandwidth * MEMORY_SHARE),
        )
        for name, one in found.items()
    }


def seconds(found: Mapping[str, KernelCounts], gpu: Gpu) -> float:
    """How long all of it takes: as long as the GPU is busy, or as Python launches it."""
    launched = LAUNCH_SECONDS * sum(one.launches for one in found.values())
    return max(sum(seconds_by_class(found, gpu).values()), launched)
