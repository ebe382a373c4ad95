"""A language model from its weights and its vocabulary; the weights say themselves what network
they are for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import ValidationError

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.model.weights import Description, load_weights, read_weights, refuse_smaller
from gpt1.params.schema import Model

PARAMETERS_A_THREAD = 8_000_000


class LanguageModel(NamedTuple):
    """A pre-trained network, ready to be read from, and the vocabulary of its rows."""

    network: Network
    vocabulary: Vocabulary


def load_language_model(weights: Path, vocabulary_folder: Path, device: str) -> LanguageModel:
    """Load both, the network to a device. On a CPU this process then keeps to as many threads as a
    step of that network has work for.

    Raises UserError where one is absent or damaged, they do not belong together, or the weights are
    of a task's model.
    """
    vocabulary, (description, tensors) = Vocabulary.load(vocabulary_folder), read_weights(weights)
    if (description.vocabulary_size, description.vocabulary_fingerprint) != (
        vocabulary.size,
        vocabulary.fingerprint,
    ):
        raise UserError(
            f"{weights}: expected weights over the vocabulary in {vocabulary_folder}"
            f" ({vocabulary.size:,} entries, fingerprint {vocabulary.fingerprint}), found"
            f" {description.vocabulary_size:,} and {description.vocabulary_fingerprint}; name the"
            " folder of the vocabulary that they were trained with"
        )
    network = empty_network(description, tensors, weights)
    load_weights(weights, description, network)
    if device == "cpu":
        torch.set_num_threads(
            threads_for(
                sum(parameter.numel() for parameter in network.parameters()),
                torch.get_num_threads(),
            )
        )
    return LanguageModel(network.to(device).eval(), vocabulary)


def threads_for(parameters: int, most: int) -> int:
    """Threads for a new token at a time: more would wait for one another, and keep cores from
    others, longer than they compute.
    """
    return min(most, 1 + parameters // PARAMETERS_A_THREAD)


def empty_network(
    description: Description, tensors: Mapping[str, torch.Tensor], path: Path
) -> Network:
    """A network as the weights at `path` describe it, with no weights yet. Raises UserError where
    that is no language model, or larger.
    """
    if description.kind not in ("transformer", "lstm"):
        raise UserError(
            f"{path}: expected weights of a language model, kind transformer or lstm, found"
            f" {description.kind}; give those of data/pretrain, or gpt1 predict for a task's model"
        )
    try:
        sizes = Model(
            **{
                name: value
                for name, value in description.config.items()
                if name in Model.model_fields
            }
        )
        units = int(description.config["lstm_units"]) if description.kind == "lstm" else 0
        if units < (description.kind == "lstm"):
            raise ValueError
    except (ValidationError, KeyError, TypeError, ValueError):
        raise UserError(
            f"{path}: expected weights with the sizes of their network"
            f" ({', '.join(Model.model_fields)}), found {description.config}; write them anew with"
            " dvc repro"
        ) from None
    refuse_smaller(path, tensors, sizes.model_dump(), units)
    if description.kind == "lstm":
        return Lstm(sizes, units, description.vocabulary_size, torch.Generator())
    return Decoder(sizes, description.vocabulary_size, torch.Generator())
