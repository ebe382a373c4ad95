"""Weights as safetensors files, and their transfer into fine-tuning (paper, sections 4.1 and 5)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.model.lstm import Network
from gpt1.params.schema import Model

Transfer = Literal["all", "none"] | int
SIZES = (
    "context",
    "width",
    "layers",
    "heads",
    "feed_forward",
    "layer_norm_epsilon",
    "lstm_units",
)  # what loaded weights must agree with


@dataclass(frozen=True)
class Description:
    """What a weights file holds: the kind of network, its sizes, its vocabulary."""

    kind: str
    config: dict[str, Any]
    vocabulary_size: int
    vocabulary_fingerprint: str


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read metadata and tensors of a safetensors file. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path} is not there; run the stage that writes it (dvc repro)")
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(
            f"{path}: expected a whole safetensors file, found a damaged one ({error}); delete it"
            " and run dvc repro"
        ) from None


def save_weights(path: Path, model: nn.Module, description: Description) -> None:
    """Write a model's weights with their description."""
    save_state(path, model.state_dict(), description)


def save_state(path: Path, state: Mapping[str, Tensor], description: Description) -> None:
    """Write a state_dict with its description. Equal weights give equal bytes."""
    # one entry, for safetensors writes several in a random order
    metadata = {"description": json.dumps(asdict(description), sort_keys=True)}
    # safetensors takes no views
    contiguous = {
        name: tensor.detach().to("cpu", copy=False).contiguous()
        for name, tensor in sorted(state.items())
    }
    with writing(path, "wb") as file:
        file.write(save(contiguous, metadata))


def read_weights(path: Path) -> tuple[Description, dict[str, Tensor]]:
    """Read description and tensors of a weights file. Raises UserError."""
    # Metadata is text from a file: nothing in it is trusted until its types are seen.
    metadata, tensors = read_tensors(path)
    try:
        reader = TypeAdapter(Description)
        return reader.validate_json(metadata["description"], strict=True), tensors
    except (KeyError, ValueError):
        raise UserError(
            f"{path}: expected weights that name their kind, config and vocabulary, found metadata"
            f" {sorted(metadata)}; write the file with dvc repro"
        ) from None


def refuse_smaller(path: Path, tensors: Mapping[str, Tensor], sizes: Model) -> None:
    """Raise UserError where a file states larger sizes than it holds."""
    inner = 4 * sizes.width + 2 * sizes.feed_forward
    least = sizes.width * (sizes.context + sizes.layers * inner)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    if least > numbers:
        raise UserError(
            f"{path}: expected the {least:,} numbers or more of a network of the sizes that it"
            f" names, found {numbers:,}; write the file anew with dvc repro"
        )


def check_description(found: Description, expected: Description, path: Path) -> None:
    """Raise UserError that names all differences from what is expected."""
    differences = [
        f"{name} {getattr(expected, name)}, found {getattr(found, name)}"
        for name in ("kind", "vocabulary_size", "vocabulary_fingerprint")
        if getattr(expected, name) != getattr(found, name)
    ]
    differences += [
        f"model.{name} {expected.config.get(name)}, found {found.config.get(name)}".replace(
            "model.lstm_", f"{expected.kind}."
        )
        for name in SIZES
        if expected.config.get(name) != found.config.get(name)
    ]
    if differences:
        raise UserError(
            f"{path}: expected {'; '.join(differences)}; set model in params.yaml as the weights"
            " say, or run dvc repro, which makes vocabulary, encoded tasks and weights anew from"
            " params.yaml"
        )


def transfer_weights(path: Path, expected: Description, network: Network, layers: Transfer) -> None:
    """Copy pre-trained weights into a network: all, none, or embeddings and the first blocks.
    Special symbols keep their random rows. Raises UserError where the weights do not fit.
    """
    if layers == "none":
        return
    found, tensors = read_weights(path)
    check_description(found, expected, path)
    # The token matrix of fine-tuning has three rows more; a view of the others takes the pre-
    # trained ones.
    targets = dict(network.state_dict()) | {
        "tokens": network.tokens.detach()[: expected.vocabulary_size]
    }
    names = [
        name
        for name in targets
        if layers == "all" or not name.startswith("blocks.") or int(name.split(".")[1]) < layers
    ]
    with torch.no_grad():
        for name in names:
            if name not in tensors or tensors[name].shape != targets[name].shape:
                found_shape = f"shape {list(tensors[name].shape)}" if name in tensors else "none"
                raise UserError(
                    f"{path}: expected tensor {name} of shape {list(targets[name].shape)}, found"
                    f" {found_shape}; delete the file and run dvc repro"
                )
            targets[name].copy_(tensors[name])
