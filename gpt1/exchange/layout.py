"""The decoder's tensors under three names and two layouts: ours, the authors' list of variables,
Hugging Face's openai-gpt.

The authors' 1x1 convolutions and Hugging Face's Conv1D keep a matrix as [in, out]; ours is torch's
[out, in].
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torch import Tensor

from gpt1.params.schema import Model

# theirs: ours, in the order of the authors' variables
PARTS = {
    "attn.c_attn": "qkv",
    "attn.c_proj": "projection",
    "ln_1": "attention_norm",
    "mlp.c_fc": "expand",
    "mlp.c_proj": "contract",
    "ln_2": "feed_forward_norm",
}
TOKENS, POSITIONS = "tokens_embed.weight", "positions_embed.weight"


class TensorNames(NamedTuple):
    """One tensor under both names; `turned` where theirs is the transpose of ours."""

    ours: str
    theirs: str
    turned: bool


def pairs(layers: int) -> Iterator[TensorNames]:
    """Every tensor of a decoder in the order of the authors' files: positions, tokens, then block
    by block.
    """
    yield TensorNames("positions", POSITIONS, False)
    yield TensorNames("tokens", TOKENS, False)
    for layer in range(layers):
        for theirs, ours in PARTS.items():
            yield TensorNames(
                f"blocks.{layer}.{ours}.weight",
                f"h.{layer}.{theirs}.weight",
                not theirs.startswith("ln"),
            )
            yield TensorNames(f"blocks.{layer}.{ours}.bias", f"h.{layer}.{theirs}.bias", False)


def our_shapes(sizes: Model, rows: int) -> dict[str, tuple[int, ...]]:
    """The shape of each of our tensors for these sizes and `rows` token embeddings."""
    width, inner = sizes.width, sizes.feed_forward
    matrices = {
        "qkv": (3 * width, width),
        "projection": (width, width),
        "expand": (inner, width),
        "contract": (width, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "positions": (sizes.context, width),
        "tokens": (rows, width),
    }
    for pair in list(pairs(sizes.layers))[2:]:
        shape = matrices.get(pair.ours.split(".")[2], (width, width))
        shapes[pair.ours] = shape if pair.turned else shape[:1]
    return shapes


def their_shapes(sizes: Model, rows: int) -> dict[str, tuple[int, ...]]:
    """The shape of each of Hugging Face's tensors, in the order of the authors' files."""
    ours = our_shapes(sizes, rows)
    return {
        pair.theirs: ours[pair.ours][::-1] if pair.turned else ours[pair.ours]
        for pair in pairs(sizes.layers)
    }


def to_theirs(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Our tensors under Hugging Face's names, in its layout; the same numbers."""
    return {
        pair.theirs: tensors[pair.ours].T.contiguous() if pair.turned else tensors[pair.ours]
        for pair in pairs(layers)
    }


def to_ours(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Hugging Face's tensors under our names, in our layout; the same numbers."""
    return {
        pair.ours: tensors[pair.theirs].T.contiguous() if pair.turned else tensors[pair.theirs]
        for pair in pairs(layers)
    }
