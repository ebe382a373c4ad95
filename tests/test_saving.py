"""Checkpoints and curves: what lets a run go on; on damaged files and on a full disk. That it goes on
as if undisturbed: test_stop.py.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from made_data import json_lines
from made_pretraining import BATCH, Run, checkpoints, made_recipe

from gpt1.base.errors import UserError, run_stage
from gpt1.base.files import CHECKPOINTS, write_json
from gpt1.train import checkpoint
from gpt1.train.checkpoint import Position, Saver, end_seeds
from gpt1.train.engine import Engine
from gpt1.train.outputs import Curve


def saved_checkpoints(folder, updates=(1, 2, 3)):
    tensors = {"tokens": torch.arange(12.0), "bias": torch.zeros(4)}
    for update in updates:
        position = Position(update, update)
        checkpoint.write_checkpoint(folder, position, (tensors, tensors), "old", {})


def test_a_checkpoint_is_due_after_so_many_minutes(tmp_path):
    engine = Engine(torch.nn.Linear(1, 1), made_recipe())
    saver = Saver(engine, tmp_path, "code", 10, 0)
    assert not saver.due()
    saver.saved_at -= 600
    assert saver.due()


def test_what_a_kill_left_half_written_and_what_was_damaged_goes_with_the_next_checkpoint(tmp_path):
    saved_checkpoints(tmp_path, (1, 2, 7))
    (tmp_path / "update-00000007" / "weights.safetensors").write_bytes(b"")
    (tmp_path / ".update-00000009.partial").mkdir()
    saved_checkpoints(tmp_path, (3,))
    assert checkpoints(tmp_path) == [2, 3]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "state", "gone", "empty"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(tmp_path, capsys, damage):
    saved_checkpoints(tmp_path)
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
    assert checkpoint.newest_checkpoint(tmp_path, "old").position.update == 2
    told = capsys.readouterr().err
    assert "update-00000003 is damaged" in told
    assert told.count("\n") == 1


def test_a_checkpoint_of_other_code_names_the_ways_on(tmp_path, monkeypatch):
    saved_checkpoints(tmp_path, (1,))
    with pytest.raises(
        UserError,
        match=(
            r"made by other code \(digest old, now new\): restore .* delete .*"
            r" GPT1_ACCEPT_CHECKPOINT=1"
        ),
    ):
        checkpoint.newest_checkpoint(tmp_path, "new")
    monkeypatch.setenv("GPT1_ACCEPT_CHECKPOINT", "1")
    assert checkpoint.newest_checkpoint(tmp_path, "new").position.update == 1


def test_a_curve_is_cut_back_to_its_checkpoint(tmp_path):
    path = tmp_path / "curve.jsonl"
    curve = Curve(path, 0)
    for update in range(5):
        curve.add({"update": update})
    again = Curve(path, 3)
    again.add({"update": 9})
    assert [point["update"] for point in json_lines(path)] == [0, 1, 2, 9]
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


@pytest.fixture(scope="module")
def often():
    return made_recipe().model_copy(update={"checkpoint_minutes": 0.0})


@pytest.fixture(scope="module")
def undisturbed(often, tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("undisturbed"), often)
    run.go()
    return run.results()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB of its own, and a function that fills what is left of it by a file."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine lets nobody mount a small disk here")

    def fill():
        with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    yield folder, fill
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_pretraining_on_a_full_disk_ends_with_one_line_and_goes_on_once_there_is_room(
    often, undisturbed, small_disk, capsys
):
    folder, fill = small_disk
    run = Run(folder, often)
    with pytest.raises(SystemExit) as ended:  # in update 4, after the first evaluation
        run_stage(lambda: run.go(lambda call, _: fill() if call == 3 * BATCH + 9 else None))
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "No space left on device): mend that and run the same command again" in said
    assert int(said.rpartition("goes on from ")[2].rpartition("-")[2]) == max(checkpoints(folder))
    with pytest.raises(UserError, match=r"expected 0\.\d+ GB free, for a checkpoint .*make room"):
        Run(folder, often).go()
    (folder / "filler").unlink()
    run = Run(folder, often)
    run.go()
    assert run.results() == undisturbed


def test_what_a_stage_puts_again_on_another_disk_stays_kept(elsewhere, monkeypatch):
    """There outputs are copies, before DVC has noted them."""
    monkeypatch.setenv("DVC_STAGE", "finetune@rte")
    seeds = [CHECKPOINTS / f"finetune-rte-{number}/seed-{number}" for number in (0, 1)]
    for seed in seeds:
        write_json(seed / "summary.json", {})
        write_json(seed / "state.json", {})
    for _ in range(3):
        end_seeds(seeds)
        assert all((seed / "ended").exists() for seed in seeds)
    end_seeds(seeds[:1])
    assert not seeds[1].exists(), "DVC has its own by now"


def test_an_ended_seed_of_other_code_goes_before_it_is_trained_anew(elsewhere, monkeypatch):
    """Or the next stage that ends would take it, and the training in its folder with it."""
    monkeypatch.setenv("DVC_STAGE", "finetune@rte")
    seed = CHECKPOINTS / "finetune-rte-0/seed-0"
    write_json(seed / "summary.json", {})
    checkpoint.note_finished(seed, "old")
    end_seeds([seed])
    assert not checkpoint.is_finished(seed, "new")
    saved_checkpoints(seed)
    end_seeds([])
    assert checkpoints(seed) == [2, 3]


def test_what_dvc_has_not_noted_stays_kept(elsewhere, monkeypatch):
    """Outputs are second names of a seed's files, which DVC makes read-only as it caches them."""
    monkeypatch.setenv("DVC_STAGE", "finetune@rte")
    seed = CHECKPOINTS / "finetune-rte-0/seed-0"
    for name in ("summary.json", "state.json"):
        write_json(seed / name, {})
    end_seeds([seed])
    Path("output").hardlink_to(seed / "summary.json")
    end_seeds([])
    assert seed.exists()
    Path("output").chmod(0o444)
    end_seeds([])
    assert not seed.exists()
