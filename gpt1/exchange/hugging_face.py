"""Hugging Face's `openai-gpt` folder, read: config.json, model.safetensors or pytorch_model.bin,
the vocabulary.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import write_json, writing
from gpt1.corpus.bpe import VERSION_LINE, Vocabulary, read_vocabulary
from gpt1.exchange.incoming import (
    EPSILON,
    Incoming,
    check_tensors,
    read_json_file,
    refuse_other_depth,
    sizes_from,
)
from gpt1.exchange.layout import TOKENS, their_shapes, to_ours
from gpt1.params.schema import Model

CONFIG, TOKENIZER, SAFETENSORS, PICKLED = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "pytorch_model.bin",
)
PREFIX, TIED = "transformer.", "lm_head.weight"
BUFFERS = (
    ".attn.bias",
    ".attn.masked_bias",
    "position_ids",
)  # causal masks and counters that older versions wrote among the weights
OURS = "gpt1"  # key of config.json under which our export keeps what theirs has no place for
DEVIATIONS = ("embedding_deviation", "weight_deviation")
WHAT_TO_DO = (
    "bring a folder as transformers writes it, save_pretrained of an OpenAIGPTLMHeadModel and its"
    " tokenizer"
)


def read_hugging_face(folder: Path) -> Incoming:
    """The language model in a Hugging Face folder. Raises UserError where it is no openai-gpt, or
    not whole.
    """
    config = read_json_file(folder / CONFIG, WHAT_TO_DO)
    sizes = sizes_of(config, folder / CONFIG)
    vocabulary, vocabulary_files = read_pieces(folder)
    weights = next(
        (folder / name for name in (SAFETENSORS, PICKLED) if (folder / name).is_file()), None
    )
    if weights is None:
        raise UserError(
            f"{folder}: expected {SAFETENSORS} (or {PICKLED}), found neither; {WHAT_TO_DO}"
        )
    tensors = plain_names(
        read_safetensors(weights) if weights.name == SAFETENSORS else read_pickled(weights), weights
    )
    refuse_other_depth(tensors, sizes.layers, weights)
    rows = config.get("vocab_size")
    check_tensors(
        tensors, their_shapes(sizes, rows if type(rows) is int else vocabulary.size), weights
    )
    return Incoming(
        "hugging_face",
        sizes,
        to_ours(tensors, sizes.layers),
        vocabulary,
        [weights, folder / CONFIG, *vocabulary_files],
        {},
    )


def sizes_of(config: Any, path: Path) -> Model:
    """The sizes that config.json tells. Raises UserError for another kind of model or
    activation.
    """
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind != "openai-gpt":
        raise UserError(
            f"{path}: expected model_type openai-gpt, found {kind!r}; only a language model of that"
            " kind is taken over"
        )
    if (activation := config.get("afn", "gelu")) != "gelu":
        raise UserError(
            f"{path}: expected afn gelu, as in the paper, found {activation!r}; such a model is not"
            " GPT-1"
        )
    names = {"context": "n_positions", "width": "n_embd", "layers": "n_layer", "heads": "n_head"}
    values = {ours: config.get(theirs) for ours, theirs in names.items()}
    for ours, theirs in names.items():
        if type(values[ours]) is not int or values[ours] < 1:
            raise UserError(
                f"{path}: expected {theirs} to be a whole number above 0, found"
                f" {values[ours]!r}; {WHAT_TO_DO}"
            )
    own = config.get(OURS)
    return sizes_from(
        path,
        **values,
        feed_forward=4 * values["width"],
        layer_norm_epsilon=config.get("layer_norm_epsilon", EPSILON),
        **{name: own[name] for name in DEVIATIONS if isinstance(own, dict) and name in own},
    )


def read_pieces(folder: Path) -> tuple[Vocabulary, list[Path]]:
    """The vocabulary, from vocab.json and merges.txt or from tokenizer.json, and the files it came
    from. Raises UserError.
    """
    paths = [folder / "vocab.json", folder / "merges.txt"]
    if all(path.is_file() for path in paths):
        return read_vocabulary(paths[0], paths[1], WHAT_TO_DO), paths
    if not (folder / TOKENIZER).is_file():
        raise UserError(
            f"{folder}: expected vocab.json and merges.txt, or {TOKENIZER}, found neither;"
            f" {WHAT_TO_DO}"
        )
    model = read_json_file(folder / TOKENIZER, WHAT_TO_DO)
    try:
        pieces, pairs = dict(model["model"]["vocab"]), list(model["model"]["merges"])
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{folder / TOKENIZER}: expected byte pairs, vocab and merges under model, found none;"
            f" {WHAT_TO_DO}"
        ) from None
    with TemporaryDirectory() as spare:  # the one reader of vocabularies reads files
        merges = [
            " ".join(map(str, merge)) if isinstance(merge, list) else str(merge) for merge in pairs
        ]
        paths = [Path(spare, path.name) for path in paths]
        write_json(paths[0], pieces)
        with writing(paths[1]) as file:
            file.write("\n".join((VERSION_LINE, *merges)) + "\n")
        try:
            return read_vocabulary(paths[0], paths[1], WHAT_TO_DO), [folder / TOKENIZER]
        except UserError as error:
            raise UserError(str(error).replace(f"{spare}/", f"{folder / TOKENIZER}: ")) from None


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises UserError where it is damaged."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(
            f"{path}: expected a whole safetensors file, found a damaged one ({error}); bring it"
            " again, whole"
        ) from None


def read_pickled(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that torch.save wrote; no code in it can run. Raises UserError where it
    holds more, or is damaged.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    # torch lets through what pickle, zipfile and the system raise; its own words would advise to
    # run the code
    except Exception as error:
        raise UserError(
            f"{path}: expected tensors and nothing else, found a damaged file or one that would run"
            f" code ({type(error).__name__}); bring {SAFETENSORS} in its place"
        ) from None
    if isinstance(found, Mapping) and all(isinstance(one, Tensor) for one in found.values()):
        return {str(name): tensor for name, tensor in found.items()}
    raise UserError(
        f"{path}: expected tensors by name and nothing else, found other things; bring"
        f" {SAFETENSORS} in its place"
    )


def plain_names(tensors: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The decoder's tensors without prefix, buffers and the tied output matrix. Raises UserError
    where that matrix is another.
    """
    plain = {
        name.removeprefix(PREFIX): tensor
        for name, tensor in tensors.items()
        if not name.endswith(BUFFERS)
    }
    output = plain.pop(TIED, None)
    if output is not None and TOKENS in plain and not torch.equal(output, plain[TOKENS]):
        raise UserError(
            f"{path}: expected {TIED} to be the token embeddings (tied, as in the paper), found"
            " other numbers; such a model is not GPT-1"
        )
    return plain
