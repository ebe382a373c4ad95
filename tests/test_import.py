"""Imports: the authors' files and Hugging Face folders, against tensors loaded by hand; what is not
whole is refused in one line.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from by_hand import decoder_states
from made_models import SIZES, authors_shapes, saved_model, vocabulary, write_authors
from safetensors.torch import load_file, save_file

from gpt1.base.errors import UserError
from gpt1.base.files import sha256_file
from gpt1.corpus.bpe import Vocabulary
from gpt1.exchange import incoming as authors
from gpt1.exchange.incoming import read_authors, read_checkpoint, write_import
from gpt1.exchange.outgoing import export_language_model
from gpt1.model.gpt import Decoder
from gpt1.model.weights import read_weights, transfer_weights

WORDS = vocabulary()
CONTEXT, WIDTH, LAYERS, HEADS, INNER = 20, 128, 2, 2, 64
PARTS = ("qkv", "projection", "attention_norm", "expand", "contract", "feed_forward_norm")
SHAPES = authors_shapes(CONTEXT, WIDTH, LAYERS, INNER, WORDS.size)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A tiny file set in the authors' form; the folder and its numbers end to end."""
    folder = tmp_path_factory.mktemp("released") / "model"
    return folder, write_authors(folder, SHAPES, WORDS)


@pytest.fixture
def copy(released, tmp_path):
    return shutil.copytree(released[0], tmp_path / "model")


def by_hand(numbers, shapes):
    """What the authors' loader makes of the numbers: cut at the offsets, the last cut left out,
    reshaped.
    """
    offsets = np.cumsum([np.prod(shape) for shape in shapes])
    return [
        part.reshape(shape)
        for part, shape in zip(np.split(numbers, offsets)[:-1], shapes, strict=True)
    ]


def logits_by_hand(arrays, tokens, heads):
    """Logits [t, v] of the authors' variables: matrices are 1x1 convolutions, twelve a block."""
    arrays = [array.astype(np.float64) for array in arrays]
    weights = {"positions": arrays[0], "tokens": arrays[1]}
    names = [f"{part}.{kind}" for part in PARTS for kind in ("weight", "bias")]
    for place, array in enumerate(arrays[2:]):
        matrix = array[0].T if array.ndim == 3 else array
        weights[f"blocks.{place // 12}.{names[place % 12]}"] = matrix
    return decoder_states(weights, tokens, heads) @ weights["tokens"].T


def test_the_authors_files_give_the_logits_of_tensors_loaded_by_hand(released, tmp_path):
    folder, numbers = released
    about = write_import(read_authors(folder), tmp_path / "official")
    description, tensors = read_weights(tmp_path / "official/weights.safetensors")
    words = Vocabulary.load(tmp_path / "official")
    assert words.pieces == WORDS.pieces
    assert words.merges == WORDS.merges
    assert (description.kind, description.vocabulary_size) == ("transformer", WORDS.size)
    assert description.vocabulary_fingerprint == WORDS.fingerprint
    assert len(numbers) == sum(tensor.numel() for tensor in tensors.values())
    assert about["released"] is False
    assert about["files"]["params_7.npy"] == sha256_file(folder / "params_7.npy")
    sizes = read_authors(folder).sizes
    assert (sizes.context, sizes.width, sizes.layers, sizes.heads, sizes.feed_forward) == (
        CONTEXT,
        WIDTH,
        LAYERS,
        HEADS,
        INNER,
    )
    decoder = Decoder(sizes, WORDS.size, torch.Generator())
    transfer_weights(tmp_path / "official/weights.safetensors", description, decoder, "all")
    tokens = np.random.default_rng(3).integers(0, WORDS.size, CONTEXT)
    with torch.inference_mode():
        hidden_btd, embeddings = decoder(torch.from_numpy(tokens)[None])
        logits_tv = (hidden_btd @ embeddings.tokens_vd.T)[0].numpy()
    assert np.abs(logits_tv - logits_by_hand(by_hand(numbers, SHAPES), tokens, HEADS)).max() < 1e-5


def test_released_files_are_known_by_their_checksums(copy, monkeypatch):
    names = {name: authors.checksum(copy / name, 40) for name in authors.RELEASED}
    monkeypatch.setattr(authors, "RELEASED", names)
    assert read_authors(copy).released
    damaged = np.load(copy / "params_3.npy")
    damaged[5] += 1e-3
    np.save(copy / "params_3.npy", damaged)
    with pytest.raises(
        UserError, match=r"of which some are here, but params_3\.npy differs from them"
    ):
        read_authors(copy)


def test_the_checksum_is_gits(tmp_path):
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert authors.checksum(tmp_path / "hello", 40) == "ce013625030ba8dba906f756967f9e9ca394464a", (
        "as `git hash-object` prints it"
    )


def spoil_array(number, change):
    def spoil(folder):
        path = folder / f"params_{number}.npy"
        np.save(path, change(np.load(path)))

    return spoil


def cut(name):
    def spoil(folder):
        (folder / name).write_bytes((folder / name).read_bytes()[:-9])

    return spoil


def rewrite(name, change):
    def spoil(folder):
        (folder / name).write_text(json.dumps(change(json.loads((folder / name).read_text()))))

    return spoil


NOT_WHOLE = r"expected the numbers of params_shapes\.json as numpy writes them"
BAD_AUTHORS = {
    "no array": (lambda folder: (folder / "params_4.npy").unlink(), r"found no params_4\.npy"),
    "cut": (cut("params_2.npy"), NOT_WHOLE),
    "not finite": (
        spoil_array(
            0, lambda array: np.where(np.arange(len(array)) == 3, np.inf, array).astype(np.float32)
        ),
        "finite numbers in positions",
    ),
    "another vocabulary": (
        rewrite("encoder_bpe_40000.json", lambda table: dict(list(table.items())[:-1])),
        "do not fit together",
    ),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    saved_model(folder / "model")
    export_language_model(folder / "model/weights.safetensors", folder / "model", folder / "gpt")
    return folder / "gpt"


@pytest.fixture
def folder(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "gpt")


def same_model(found, exported):
    ours = read_checkpoint(exported)
    return (
        found.sizes == ours.sizes
        and found.vocabulary.pieces == ours.vocabulary.pieces
        and found.tensors.keys() == ours.tensors.keys()
        and all(torch.equal(found.tensors[name], ours.tensors[name]) for name in ours.tensors)
    )


def test_a_pickled_folder_with_old_names_and_buffers(folder, exported):
    """As the first uploads were: no prefix, causal masks among the weights, the tied matrix written
    out.
    """
    tensors = {
        name.removeprefix("transformer."): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    mask = torch.ones(SIZES.context, SIZES.context).tril()[None, None]
    old = tensors | {f"h.{layer}.attn.bias": mask for layer in range(SIZES.layers)}
    old["lm_head.weight"] = tensors["tokens_embed.weight"].clone()
    (folder / "model.safetensors").unlink()
    torch.save(old, folder / "pytorch_model.bin")
    assert same_model(read_checkpoint(folder), exported)


def test_a_folder_with_tokenizer_json_alone(folder, exported):
    """As transformers 5 writes it."""
    (folder / "vocab.json").unlink()
    (folder / "merges.txt").unlink()
    assert same_model(read_checkpoint(folder), exported)


def test_half_precision_is_kept_as_numbers(folder, tmp_path):
    tensors = {
        name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    write_import(read_checkpoint(folder), tmp_path / "to")
    found = read_weights(tmp_path / "to/weights.safetensors")[1]
    assert found["tokens"].dtype == torch.float32
    assert torch.equal(found["tokens"], tensors["transformer.tokens_embed.weight"].float())


def with_tensors(change):
    def spoil(folder):
        save_file(
            change(load_file(folder / "model.safetensors")),
            folder / "model.safetensors",
            {"format": "pt"},
        )

    return spoil


def without(tensors, name):
    return {key: tensor for key, tensor in tensors.items() if key != name}


TOKENS = "transformer.tokens_embed.weight"
WHOLE = "expected a whole openai-gpt checkpoint, found another"
OTHER = "expected the tensors of a language model of the sizes that config.json has, found "
BAD_FOLDERS = {
    "another kind": (
        rewrite("config.json", lambda config: config | {"model_type": "gpt2"}),
        "model_type openai-gpt and afn gelu, found .'gpt2', 'gelu'.",
    ),
    "no size": (rewrite("config.json", lambda config: without(config, "n_layer")), WHOLE),
    "more layers": (
        rewrite("config.json", lambda config: config | {"n_layer": 4}),
        OTHER + r"transformer\.h\.3",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), WHOLE),
    "a head": (
        with_tensors(lambda tensors: tensors | {"score.weight": torch.zeros(2, SIZES.width)}),
        OTHER + r"score\.weight",
    ),
    "not finite": (
        with_tensors(lambda tensors: tensors | {TOKENS: tensors[TOKENS] * float("nan")}),
        "finite numbers in tokens",
    ),
    "no vocabulary": (
        lambda folder: [(folder / name).unlink() for name in ("vocab.json", "tokenizer.json")],
        "tokenizer.json: expected JSON, found none",
    ),
    "fewer merges": (
        lambda folder: (folder / "merges.txt").write_text("#version: 0.2\nt h\n"),
        "do not fit together",
    ),
}


@pytest.mark.parametrize("trouble", [*BAD_AUTHORS, *BAD_FOLDERS])
def test_files_that_are_not_whole(request, tmp_path, trouble):
    authors = trouble in BAD_AUTHORS
    spoil, line = (BAD_AUTHORS if authors else BAD_FOLDERS)[trouble]
    spoil(folder := request.getfixturevalue("copy" if authors else "folder"))
    with pytest.raises(UserError, match=line):
        write_import((read_authors if authors else read_checkpoint)(folder), tmp_path / "to")
    assert not (tmp_path / "to").exists()
