"""The networks by name, and their numbers of parameters."""

import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.model.weights import Description
from gpt1.params.schema import Params

COMPONENTS = {  # by the parameter's module: what people call it
    "tokens": "token_embeddings",
    "positions": "position_embeddings",
    "qkv": "attention",
    "projection": "attention",
    "expand": "feed_forward",
    "contract": "feed_forward",
    "attention_norm": "layer_norms",
    "feed_forward_norm": "layer_norms",
}
LSTM_COMPONENTS = {
    "tokens": "token_embeddings",
    "recurrent": "recurrent",
    "projection": "projection",
}


def describe(
    name: str, params: Params, vocabulary_size: int, vocabulary_fingerprint: str
) -> Description:
    """Describe the weights of a network."""
    config = params.model.model_dump()
    if name != "transformer":
        config["lstm_units"] = _units(name, params)
    return Description(name, config, vocabulary_size, vocabulary_fingerprint)


def make_network(name: str, params: Params, rows: int, generator: torch.Generator) -> Network:
    """Build a network with `rows` token embeddings."""
    if name == "transformer":
        return Decoder(params.model, rows, generator)
    return Lstm(params.model, _units(name, params), rows, generator)


def _units(name: str, params: Params) -> int:
    return int(getattr(params, name).units)


def parameters_by_component(network: Network) -> dict[str, int]:
    """Count the parameters of each component, and all."""
    parts: dict[str, int] = {}
    for name, parameter in network.named_parameters():
        # blocks.3.qkv.weight is of qkv, tokens of tokens.
        module = name.split(".")[2 if name.startswith("blocks.") else 0]
        component = (LSTM_COMPONENTS if isinstance(network, Lstm) else COMPONENTS)[module]
        parts[component] = parts.get(component, 0) + parameter.numel()
    return parts | {"total": sum(parts.values())}
