"""Weights with their vocabulary, which say themselves what network they are for; a language model
of them.
"""

import re
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.model.weights import Description, read_weights, refuse_smaller
from gpt1.params.schema import Model

PARAMETERS_A_THREAD = 8_000_000


class SavedModel(NamedTuple):
    """What lies in a weights file, and the vocabulary that it was trained with."""

    path: Path
    description: Description
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary

    def sizes(self) -> Model:
        """The sizes that it names. Raises UserError where they make no network, or one larger than
        the file.
        """
        config, units = self.description.config, 0
        try:
            sizes = Model(**{name: config[name] for name in Model.model_fields})
            if (
                self.description.kind.startswith("lstm")
                and (units := int(config["lstm_units"])) < 1
            ):
                raise ValueError("no units")
        except (ValidationError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{self.path}: expected weights with the sizes of their network"
                f" ({', '.join(Model.model_fields)}), found {config}; write them anew with dvc"
                " repro"
            ) from None
        refuse_smaller(self.path, self.tensors, sizes.model_dump(), units)
        return sizes

    def fill(self, network: nn.Module) -> None:
        """Give a network these weights. Raises UserError where they do not fit."""
        try:
            network.load_state_dict(self.tensors)
        except RuntimeError as error:
            raise UserError(
                f"{self.path}: expected weights that fit the sizes they name, found others"
                f" ({error}); write them anew with dvc repro"
            ) from None


def read_saved(weights: Path, vocabulary_folder: Path, kind: str, expected: str) -> SavedModel:
    """Read weights of a kind (a regular expression; `expected`: the same, for a person) and their
    vocabulary.

    Raises UserError where files are absent or damaged, of another kind, or do not belong together.
    """
    description, tensors = read_weights(weights)
    if not re.fullmatch(kind, description.kind):
        raise UserError(f"{weights}: expected weights of {expected}; found {description.kind!r}")
    vocabulary = Vocabulary.load(vocabulary_folder)
    if description.vocabulary_fingerprint != vocabulary.fingerprint:
        raise UserError(
            f"{weights}: expected weights trained with the vocabulary in {vocabulary_folder}"
            f" ({vocabulary.size:,} entries, fingerprint {vocabulary.fingerprint}), found"
            f" {description.vocabulary_size:,} and {description.vocabulary_fingerprint}; name the"
            " folder of their own, or bring both up to date with gpt1 run"
        )
    return SavedModel(weights, description, tensors, vocabulary)


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
    saved = read_saved(
        weights,
        vocabulary_folder,
        "transformer|lstm|lstm_equal",
        "a language model, kind transformer, lstm or lstm_equal (gpt1 predict for a task's model)",
    )
    sizes, rows, generator = saved.sizes(), saved.vocabulary.size, torch.Generator()
    network: Network = (
        Decoder(sizes, rows, generator)
        if saved.description.kind == "transformer"
        else Lstm(sizes, int(saved.description.config["lstm_units"]), rows, generator)
    )
    saved.fill(network)
    if device == "cpu":
        parameters = sum(parameter.numel() for parameter in network.parameters())
        torch.set_num_threads(threads_for(parameters, torch.get_num_threads()))
    return LanguageModel(network.to(device).eval(), saved.vocabulary)


def threads_for(parameters: int, most: int) -> int:
    """Threads for a new token at a time: more would wait for one another, and keep cores from
    others, longer than they compute.
    """
    return min(most, 1 + parameters // PARAMETERS_A_THREAD)
