"""The decoder as transformers has it, `openai-gpt`. The authors' and transformers' matrices are
[in, out]; ours, like torch's, [out, in].
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
    """Turn off transformers' bars and reports."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def names(layers: int) -> Iterator[tuple[str, str]]:
    """Yield our and their name of every tensor, in the order of the authors' files."""
    yield "positions", "positions_embed.weight"
    yield "tokens", "tokens_embed.weight"
    for layer in range(layers):
        for theirs, ours in PARTS.items():
            for kind in ("weight", "bias"):
                yield f"blocks.{layer}.{ours}.{kind}", f"h.{layer}.{theirs}.{kind}"


def transposed(theirs: str, tensor: Tensor) -> Tensor:
    """Return a tensor in the other layout: matrices of blocks are transposed."""
    return tensor.T.contiguous() if theirs.startswith("h.") and tensor.ndim == 2 else tensor


def to_theirs(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Return a decoder's tensors under transformers' names and in its layout. Raises UserError."""
    try:
        return {theirs: transposed(theirs, tensors[ours]) for ours, theirs in names(layers)}
    except KeyError as name:
        raise UserError(f"expected a tensor {name}, found none; dvc repro makes it anew") from None


def to_ours(tensors: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Return transformers' tensors under our names, in our layout."""
    return {ours: transposed(theirs, tensors[theirs]) for ours, theirs in names(layers)}


def their_config(sizes: Model, rows: int) -> dict[str, Any]:
    """Return the arguments of OpenAIGPTConfig, with `rows` embeddings."""
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
    """Return the sizes of weights that openai-gpt can hold. Raises UserError for others."""
    sizes = saved.sizes()
    if sizes.feed_forward != 4 * sizes.width:
        raise UserError(
            f"{saved.path}: expected model.feed_forward 4 x model.width, all that the format"
            f" openai-gpt knows, found {sizes.feed_forward} and {sizes.width}; no other is exported"
        )
    return sizes


def language_model(saved: SavedModel) -> Any:
    """Return a pre-trained Transformer as OpenAIGPTLMHeadModel, with any model.feed_forward. Raises
    UserError.
    """
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel
    from transformers.models.openai.modeling_openai import MLP

    sizes = saved.sizes()
    quiet_transformers()
    config = OpenAIGPTConfig(**their_config(sizes, saved.vocabulary.size))
    model = OpenAIGPTLMHeadModel(config)
    for block in model.transformer.h:  # made with 4 x width, for the config has no such number
        block.mlp = MLP(sizes.feed_forward, config)
    saved._replace(tensors=to_theirs(saved.tensors, sizes.layers)).fill(model.transformer)
    return model
