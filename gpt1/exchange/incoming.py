"""The authors' files, or a checkpoint of openai-gpt, as our weights and vocabulary."""

from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import read_json_file, sha256_file, write_json
from gpt1.corpus.bpe import AUTHORS_FILES, Vocabulary, read_vocabulary, vocabulary_from
from gpt1.exchange.outgoing import filling
from gpt1.inference.openai_gpt import names, quiet_transformers, to_ours
from gpt1.model.weights import Description, save_state
from gpt1.params.schema import Model
from gpt1.params.strict import validated
from gpt1.sources.addresses import RELEASED
from gpt1.sources.download import checksum

DEVIATION = 0.02  # of the paper's initial weights, which no file says
BUFFERS = (".attn.bias", ".attn.masked_bias", "position_ids")  # that older versions wrote too
WHAT_TO_DO = "bring a folder as save_pretrained of an OpenAIGPTLMHeadModel and its tokenizer writes"
SHAPES = "params_shapes.json"
ARRAYS = tuple(f"params_{number}.npy" for number in range(10))
HEAD_WIDTH = 64  # of the paper's heads; the files do not say it
GET_AGAIN = (
    "bring the files of the folder model of https://github.com/openai/finetune-transformer-lm again"
)


class Incoming(NamedTuple):
    """A model found in a folder; released: whether the files are the authors'."""

    form: str
    sizes: Model
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary
    files: list[Path]
    released: bool


def sizes_from(path: Path, **values: Any) -> Model:
    """Return the sizes that a file states. Raises UserError where they fit no model."""
    deviations = {"embedding_deviation": DEVIATION, "weight_deviation": DEVIATION}
    return validated(Model, {"layer_norm_epsilon": 1e-5} | deviations | values, "", str(path))


def read_checkpoint(folder: Path) -> Incoming:
    """Read a Hugging Face folder with transformers' reader, which runs no pickle's code. Raises
    UserError where it is no whole openai-gpt.
    """
    from transformers import OpenAIGPTLMHeadModel

    path = folder / "config.json"
    config = read_json_file(path, WHAT_TO_DO)
    kind = config.get("model_type"), config.get("afn", "gelu")
    if kind != ("openai-gpt", "gelu"):
        raise UserError(
            f"{path}: expected model_type openai-gpt and afn gelu, found {kind}; {WHAT_TO_DO}"
        )
    weights = [file for file in folder.glob("*") if file.suffix in (".safetensors", ".bin")]
    try:
        blocks = 12 * config["n_layer"] * config["n_embd"] ** 2
        if not 0 < 2 * blocks <= sum(file.stat().st_size for file in weights):
            raise ValueError(f"{config['n_layer']} blocks of width {config['n_embd']} do not fit")
        quiet_transformers()
        network, report = OpenAIGPTLMHeadModel.from_pretrained(
            folder, output_loading_info=True, local_files_only=True, dtype=torch.float32
        )
    # transformers lets through whatever pickle, safetensors and the system raise
    except Exception as error:
        raise UserError(
            f"{folder}: expected a whole openai-gpt checkpoint, found another"
            f" ({' '.join(f'{type(error).__name__}: {error}'.split())[:200]}); {WHAT_TO_DO}"
        ) from None
    strange = [
        name
        for keys in ("missing_keys", "unexpected_keys", "mismatched_keys")
        for name in sorted(map(str, report[keys]))
        if not name.endswith(BUFFERS)
    ]
    if strange:
        raise UserError(
            f"{folder}: expected the tensors of a language model of the sizes that {path.name} has,"
            f" found {strange[0]} missing, unknown or of another shape; {WHAT_TO_DO}"
        )
    stated = network.config
    sizes = sizes_from(
        path,
        context=stated.n_positions,
        width=stated.n_embd,
        layers=stated.n_layer,
        heads=stated.n_head,
        feed_forward=4 * stated.n_embd,
        layer_norm_epsilon=stated.layer_norm_epsilon,
    )
    state = network.transformer.state_dict()
    vocabulary, files = read_pieces(folder)
    return Incoming(
        "openai-gpt", sizes, to_ours(state, sizes.layers), vocabulary, [*weights, *files], False
    )


def read_pieces(folder: Path) -> tuple[Vocabulary, list[Path]]:
    """Return the vocabulary of vocab.json and merges.txt, or of tokenizer.json, and those files.
    Raises UserError.
    """
    files, whole = [folder / "vocab.json", folder / "merges.txt"], folder / "tokenizer.json"
    if all(path.is_file() for path in files):
        return read_vocabulary(folder, WHAT_TO_DO), files
    value = read_json_file(whole, WHAT_TO_DO)
    try:
        model = value["model"]
        pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]]
        return vocabulary_from(model["vocab"], pairs, str(whole), WHAT_TO_DO), [whole]
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{whole}: expected byte pairs, vocab and merges under model, found none ({error!r});"
            f" {WHAT_TO_DO}"
        ) from None


def read_authors(folder: Path) -> Incoming:
    """Read the authors' files as their loader does: ten arrays joined, cut and reshaped. Raises
    UserError where they are not whole.
    """
    required = (SHAPES, *ARRAYS, *AUTHORS_FILES)
    if missing := [name for name in required if not (folder / name).is_file()]:
        raise UserError(
            f"{folder}: expected {SHAPES}, {ARRAYS[0]} to {ARRAYS[-1]},"
            f" {' and '.join(AUTHORS_FILES)}; found no {', no '.join(missing)}; {GET_AGAIN}"
        )
    files = [folder / name for name in required]
    others = [path.name for path in files if checksum(path, 40) != RELEASED[path.name]]
    if others and any(name not in others for name in ARRAYS):
        raise UserError(
            f"{folder}: expected the released files, of which some are here, but"
            f" {', '.join(others)} {'differs' if len(others) == 1 else 'differ'} from them:"
            f" damaged, or of another model; {GET_AGAIN}"
        )
    vocabulary = read_vocabulary(folder, GET_AGAIN, AUTHORS_FILES)
    shapes = read_json_file(folder / SHAPES, GET_AGAIN, list)
    try:
        sizes = sizes_of(shapes, folder / SHAPES)
        arrays = [np.load(folder / name, allow_pickle=False) for name in ARRAYS]
        numbers = np.concatenate(arrays).astype(np.float32, casting="same_kind", copy=False)
        parts = np.split(numbers, list(accumulate(map(prod, shapes)))[:-1])
        tensors = {
            theirs: torch.from_numpy(array.reshape(shape[-2:]))  # a matrix is a convolution of 1
            for (_, theirs), shape, array in zip(names(sizes.layers), shapes, parts, strict=True)
        }
    except Exception as error:  # numpy lets through what Python's own parser raises
        raise UserError(
            f"{folder}: expected the numbers of {SHAPES} as numpy writes them, in one row over ten"
            f" files, found others ({type(error).__name__}); {GET_AGAIN}"
        ) from None
    ours = to_ours(tensors, sizes.layers)
    return Incoming("authors", sizes, ours, vocabulary, files, not others)


def sizes_of(shapes: Any, path: Path) -> Model:
    """Return the sizes of a model with these shapes. Raises LookupError, TypeError or ValueError
    for others.
    """
    (context, width), (rows, _), *blocks = shapes
    layers, inner = len(blocks) // 12, blocks[6][-1]
    block = [[1, width, 3 * width], [3 * width], [1, width, width], *[[width]] * 3]
    block += [[1, width, inner], [inner], [1, inner, width], *[[width]] * 3]
    if shapes != [[context, width], [rows, width], *layers * block]:
        raise ValueError("they are not positions, tokens and twelve variables a block")
    heads = width // HEAD_WIDTH
    return sizes_from(
        path, context=context, width=width, layers=layers, heads=heads, feed_forward=inner
    )


def write_import(model: Incoming, target: Path) -> dict[str, Any]:
    """Write weights, vocabulary and import.json; return the last. Raises UserError where they do
    not fit or `target` is not empty.
    """
    source, rows = model.files[0].parent, len(model.tensors["tokens"])
    if rows != model.vocabulary.size:
        raise UserError(
            f"{source}: expected {model.vocabulary.size:,} token embeddings, one for each entry of"
            f" the vocabulary beside it, found {rows:,}; bring weights and vocabulary of the same"
            " model"
        )
    if bad := [name for name, tensor in model.tensors.items() if not tensor.isfinite().all()]:
        raise UserError(
            f"{source}: expected finite numbers in {bad[0]}, found NaN or infinity; bring it whole"
        )
    sizes, vocabulary = model.sizes.model_dump(), model.vocabulary
    about = {
        "form": model.form,
        "released": model.released,
        "model": sizes,
        "vocabulary_fingerprint": vocabulary.fingerprint,
        "files": {path.name: sha256_file(path) for path in sorted(model.files)},
    }
    with filling(target) as folder:
        description = Description("transformer", sizes, vocabulary.size, vocabulary.fingerprint)
        save_state(folder / "weights.safetensors", model.tensors, description)
        vocabulary.save(folder, {})
        write_json(folder / "import.json", about)
    return about
