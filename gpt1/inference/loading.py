"""Weights that describe their network, and their vocabulary."""

import re
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from torch import Tensor, nn

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.model.weights import Description, read_weights, refuse_smaller
from gpt1.params.schema import Model


class SavedModel(NamedTuple):
    """The contents of a weights file, and its vocabulary."""

    path: Path
    description: Description
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary

    def sizes(self) -> Model:
        """Return the sizes that the file states. Raises UserError where they make no network, or
        one larger than the file.
        """
        config = self.description.config
        try:
            sizes = Model(**{name: config[name] for name in Model.model_fields})
        except (ValidationError, KeyError, TypeError):
            raise UserError(
                f"{self.path}: expected weights with the sizes of their network"
                f" ({', '.join(Model.model_fields)}), found {config}; write them anew with dvc"
                " repro"
            ) from None
        refuse_smaller(self.path, self.tensors, sizes)
        return sizes

    def fill(self, network: nn.Module) -> None:
        """Give a network these weights. Raises UserError where they do not fit."""
        try:
            network.load_state_dict(self.tensors)
        except RuntimeError as error:
            raise UserError(
                f"{self.path}: expected weights that fit the sizes they name, found others"
                f" ({' '.join(str(error).split())}); write them anew with dvc repro"
            ) from None


def read_saved(weights: Path, vocabulary_folder: Path, kind: str, expected: str) -> SavedModel:
    """Read weights of a kind (a regular expression; `expected` in words) and their vocabulary.
    Raises UserError for damage, or another kind or vocabulary.
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
    full = {name: tensor.float() for name, tensor in tensors.items()}  # shipped ones are halves
    return SavedModel(weights, description, full, vocabulary)
