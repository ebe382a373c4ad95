"""Checkpoints, curves, signals and the machine's settings: what lets a run go on as if nothing had
happened.
"""

import json

import numpy as np
import pytest
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.model.gpt import Decoder
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml
from gpt1.train import checkpoint, optim
from gpt1.train.checkpoint import Position
from gpt1.train.engine import Engine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import Curve

TINY = Model(
    context=24,
    width=16,
    layers=2,
    heads=4,
    feed_forward=64,
    embedding_deviation=0.02,
    weight_deviation=0.02,
    layer_norm_epsilon=1e-5,
)
ROWS = 30


def windows(update):
    return np.random.default_rng(update).integers(0, ROWS, size=(8, 25))


def whole_batch(update):
    return [MicroBatch(1.0, torch.from_numpy(windows(update)))]


def new_engine(recipe):
    return Engine(
        Pretraining(Decoder(TINY, ROWS, torch.Generator().manual_seed(0)), "fp32"), recipe
    )


@pytest.fixture
def recipe(request):
    pretrain = validate(read_yaml(request.config.rootpath / "conf/paper.yaml")).pretrain
    return pretrain.model_copy(
        update={"dropout": 0.0, "precision": "fp32", "batch_size": 8, "learning_rate": 1e-3}
    )


def test_a_checkpoint_goes_on_as_if_nothing_had_happened(recipe, tmp_path):
    def go(engine, first, last):
        return [
            take_update(
                engine,
                whole_batch(update),
                0.1,
                5,
                update,
                optim.rates(recipe, update, 9, 0.1),
                Stop(),
            )
            for update in range(first, last + 1)
        ]

    whole, one, two = new_engine(recipe), new_engine(recipe), new_engine(recipe)
    expected = go(whole, 1, 6)
    go(one, 1, 3)
    checkpoint.write_checkpoint(tmp_path, Position(3, 2), one.state()[::-1], "digest", {})
    state = checkpoint.newest_checkpoint(tmp_path, "digest", False)
    assert state.position == Position(3, 2)
    checkpoint.restore(state, two)
    assert go(two, 4, 6) == expected[3:]
    assert all(
        torch.equal(a, b)
        for a, b in zip(two.objective.parameters(), whole.objective.parameters(), strict=True)
    )


def saved_checkpoints(recipe, folder, updates=(1, 2, 3)):
    engine = new_engine(recipe)
    for update in updates:
        take_update(
            engine, whole_batch(update), 0.0, 5, update, optim.rates(recipe, update, 9, 0.1), Stop()
        )
        checkpoint.write_checkpoint(
            folder, Position(update, update), engine.state()[::-1], "old", {}
        )


def test_only_the_last_two_checkpoints_are_kept(recipe, tmp_path):
    saved_checkpoints(recipe, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "update-00000002",
        "update-00000003",
    ]


def test_what_a_kill_left_half_written_and_what_was_damaged_goes_with_the_next_checkpoint(
    recipe, tmp_path
):
    saved_checkpoints(recipe, tmp_path, (1, 2, 7))
    (tmp_path / "update-00000007" / "weights.safetensors").write_bytes(b"")
    (tmp_path / ".update-00000009.partial").mkdir()
    saved_checkpoints(recipe, tmp_path, (3,))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "update-00000002",
        "update-00000003",
    ]


@pytest.mark.parametrize("damage", ["cut", "flipped", "state", "gone", "empty"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(recipe, tmp_path, capsys, damage):
    saved_checkpoints(recipe, tmp_path)
    last = tmp_path / "update-00000003"
    content = bytearray((last / "adam.safetensors").read_bytes())
    if damage == "cut":
        (last / "adam.safetensors").write_bytes(content[:-7])
    elif damage == "flipped":
        content[-5] ^= 1
        (last / "adam.safetensors").write_bytes(content)
    elif damage == "state":
        (last / "state.json").write_text("{")
    else:
        for path in [last / "weights.safetensors"] if damage == "gone" else list(last.iterdir()):
            path.unlink()
    assert checkpoint.newest_checkpoint(tmp_path, "old", False).position.update == 2
    told = capsys.readouterr().err
    assert "update-00000003 is damaged" in told
    assert told.count("\n") == 1


def test_a_checkpoint_of_other_code_names_the_ways_on(recipe, tmp_path):
    saved_checkpoints(recipe, tmp_path, (1,))
    with pytest.raises(
        UserError,
        match=(
            r"made by other code \(digest old, now new\): restore .* delete .*"
            r" GPT1_ACCEPT_CHECKPOINT=1"
        ),
    ):
        checkpoint.newest_checkpoint(tmp_path, "new", False)
    assert checkpoint.newest_checkpoint(tmp_path, "new", True).position.update == 1


def test_the_fingerprint_tells_runs_apart():
    folders = {
        checkpoint.state_folder("pretrain", "transformer", [{"width": width}, "hash"])
        for width in (16, 16, 32)
    }
    assert len(folders) == 2


def test_a_curve_is_cut_back_to_its_checkpoint(tmp_path):
    path = tmp_path / "curve.jsonl"
    curve = Curve(path, 0)
    for update in range(5):
        curve.add({"update": update})
    again = Curve(path, 3)
    again.add({"update": 9})
    assert [json.loads(line)["update"] for line in path.read_text().splitlines()] == [0, 1, 2, 9]
    assert again.lines == 4


def test_a_curve_that_lacks_lines_is_refused_not_filled_with_a_gap(tmp_path):
    path = tmp_path / "curve.jsonl"
    path.write_text('{"update": 1}\n{"upd')
    with pytest.raises(
        UserError,
        match=(
            r"curve\.jsonl: expected the 3 lines up to the last checkpoint, found 1; delete the"
            r" folder"
        ),
    ):
        Curve(path, 3)


def test_state_json_can_be_read_by_people(recipe, tmp_path):
    saved_checkpoints(recipe, tmp_path, (1,))
    state = read_json(tmp_path / "update-00000001" / "state.json")
    assert state.keys() == {"update", "curve_lines", "code", "machine", "sha256"}
