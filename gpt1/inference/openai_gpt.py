"""The decoder as transformers has it, `openai-gpt`: sizes, names and layout of its tensors.

The authors' 1x1 convolutions and transformers' Conv1D keep a matrix as [in, out]; ours is torch's
[out, in].
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.inference.loading import SavedModel
from gpt1.params.schema import Model

PARTS = {  # theirs: ours, in the order of the authors' variables
    "attn.c_attn": "qkv",
    "attn.c_proj": "projection",
    "ln_1": "attention_norm",
    "mlp.c_fc": "expand",
    "mlp.c_proj": "contract",
    "ln_2": "feed_forward_norm",
}
PREFIX = "transformer."


def quiet_transformers() -> None:
    """No bars and no reports of transformers: what goes wrong is said in our words."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def names(layers: int) -> Iterator[tuple[str, str]]:
    """Ours and theirs of every tensor, in the order of the authors' files: positions, tokens, then
    block by block.
    """
    yield "positions", "positions_embed.weight"
    yield "tokens", "tokens_embed.weight"
    for layer in range(layers):
        for theirs, ours in PARTS.items():
            for kind in ("weight", "bias"):
                yield f"blocks.{layer}.{ours}.{kind}", f"h.{layer}.{theirs}.{kind}"


def turned(theirs: str, tensor: Tensor) -> Tensor:
    """A tensor in the other layout: the matrices of blocks are transposed."""
    return tensor.T.contiguous() if theirs.startswith("h.") and tensor.ndim == 2 else tensor


def to_theirs(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """A decoder's tensors under transformers' names, in its layout; the same numbers. Raises
    UserError where one is missing.
    """
    try:
        return {theirs: turned(theirs, tensors[ours]) for ours, theirs in names(layers)}
    except KeyError as name:
        raise UserError(f"expected a tensor {name}, found none; dvc repro makes it anew") from None


def to_ours(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """transformers' tensors under our names, in our layout; the same numbers."""
    return {ours: turned(theirs, tensors[theirs]) for ours, theirs in names(layers)}


def their_config(sizes: Model, rows: int) -> dict[str, Any]:
    """The arguments of OpenAIGPTConfig for a decoder of these sizes with `rows` embeddings."""
    return {
        "vocab_size": rows,
        "n_positions": sizes.context,
        "n_embd": sizes.width,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "afn": "gelu",
        "layer_norm_epsilon": sizes.layer_norm_epsilon,
        "initializer_range": sizes.weight_deviation,
        "tie_word_embeddings": True,
    }


def refuse_other_shapes(saved: SavedModel) -> Model:
    """The sizes of weights that transformers can hold. Raises UserError for others."""
    sizes = saved.sizes()
    if sizes.feed_forward != 4 * sizes.width:
        raise UserError(
            f"{saved.path}: expected model.feed_forward 4 x model.width, all that transformers'"
            f" openai-gpt knows, found {sizes.feed_forward} and {sizes.width}; it cannot be"
            " generated from or exported"
        )
    return sizes


def language_model(saved: SavedModel) -> Any:
    """A pre-trained Transformer as transformers' OpenAIGPTLMHeadModel. Raises UserError where
    transformers cannot hold it, or the weights do not fit the sizes that they name.
    """
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    sizes = refuse_other_shapes(saved)
    quiet_transformers()
    config = OpenAIGPTConfig(**their_config(sizes, saved.vocabulary.size))
    state = {
        PREFIX + name: tensor for name, tensor in to_theirs(saved.tensors, sizes.layers).items()
    }
    return OpenAIGPTLMHeadModel.from_pretrained(None, config=config, state_dict=state)
