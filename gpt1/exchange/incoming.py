"""The authors' files, or a checkpoint of openai-gpt, as our weights and vocabulary."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import read_json_file, sha256_file, write_json
from gpt1.corpus.bpe import Vocabulary, read_vocabulary, vocabulary_from
from gpt1.exchange.outgoing import filling
from gpt1.inference.openai_gpt import quiet_transformers, to_ours
from gpt1.model.weights import Description, save_state
from gpt1.params.schema import Model
from gpt1.params.strict import validated

DEVIATION = 0.02  # of the paper's initial weights, which no file says
BUFFERS = (".attn.bias", ".attn.masked_bias", "position_ids")  # that older versions wrote too
WHAT_TO_DO = "bring a folder as save_pretrained of an OpenAIGPTLMHeadModel and its tokenizer writes"


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
    UserError.
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
    """Return the vocabulary of vocab.json and merges.txt, or of tokenizer.json, and its files.
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


def write_import(model: Incoming, target: Path) -> dict[str, Any]:
    """Write weights.safetensors, the vocabulary and import.json; return import.json. Raises
    UserError where the parts do not fit.
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
            f"{source}: expected finite numbers in {bad[0]}, found others; bring it whole"
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
