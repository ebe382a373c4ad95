"""Weights as files: a round trip, what is transferred, and what is refused in one line."""

from dataclasses import replace

import pytest
import torch
from made_data import seeded, tiny_sizes
from safetensors.torch import save_file

from gpt1.base.errors import UserError
from gpt1.model.gpt import Decoder
from gpt1.model.weights import (
    Description,
    read_weights,
    save_weights,
    transfer_weights,
)

TINY = tiny_sizes(context=12)
VOCABULARY = 20
PLAIN = Description("transformer", TINY.model_dump(), VOCABULARY, "abc")


@pytest.fixture
def saved(tmp_path):
    model = Decoder(TINY, VOCABULARY, seeded(1))
    save_weights(tmp_path / "weights.safetensors", model, PLAIN)
    return tmp_path / "weights.safetensors", model.state_dict()


def test_round_trip(saved):
    path, tensors = saved
    description, found = read_weights(path)
    assert description == PLAIN
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    model = Decoder(TINY, VOCABULARY, seeded(2))
    transfer_weights(path, PLAIN, model, "all")
    assert all(torch.equal(value, tensors[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"vocabulary_fingerprint": "xyz"}, "vocabulary_fingerprint xyz, found abc"),
        ({"vocabulary_size": 21}, "vocabulary_size 21, found 20"),
        ({"kind": "lstm"}, "kind lstm, found transformer"),
        ({"config": PLAIN.config | {"width": 32}}, "model.width 32, found 16"),
        ({"config": PLAIN.config | {"heads": 2}}, "model.heads 2, found 4"),
    ],
)
def test_other_weights_are_refused(saved, change, line):
    network = Decoder(TINY, VOCABULARY + 3, seeded())
    with pytest.raises(UserError, match=f"expected {line}; .*dvc repro"):
        transfer_weights(saved[0], replace(PLAIN, **change), network, "all")


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "header"])
def test_damaged_files_are_refused(saved, damage):
    path, whole = saved[0], saved[0].read_bytes()
    damaged = {"cut": whole[:-100], "empty": b"", "text": b"no", "header": b"\xff" * 8 + whole[8:]}
    path.write_bytes(damaged[damage])
    with pytest.raises(UserError, match=r"weights\.safetensors: expected a whole safetensors file"):
        read_weights(path)


def test_an_absent_file_and_a_nameless_one(tmp_path):
    with pytest.raises(UserError, match="is not there"):
        read_weights(tmp_path / "none.safetensors")
    save_file({"tokens": torch.zeros(2)}, tmp_path / "nameless.safetensors")
    with pytest.raises(UserError, match="expected weights that name their kind"):
        read_weights(tmp_path / "nameless.safetensors")


def test_a_file_without_a_tensor_is_refused(saved):
    path, _ = saved
    model = Decoder(TINY, VOCABULARY, seeded())
    del model.positions
    save_weights(path, model, PLAIN)
    with pytest.raises(
        UserError, match=r"expected tensor positions of shape \[12, 16\], found none"
    ):
        transfer_weights(path, PLAIN, Decoder(TINY, VOCABULARY + 3, seeded()), "all")
