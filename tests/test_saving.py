"""Checkpoints and curves: what lets a run go on as if nothing had happened; on damaged files, on slow
and on full disks.
"""

import json
import shutil
import subprocess
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import torch
from made_pretraining import BATCH, ROWS, TINY, UPDATES, Run, made_recipe

from gpt1.base.errors import UserError, run_stage
from gpt1.base.files import CHECKPOINTS, write_json
from gpt1.model.gpt import Decoder
from gpt1.train import checkpoint, optim
from gpt1.train.checkpoint import Position, Saver, end_seeds
from gpt1.train.engine import Engine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import Curve


def new_engine():
    decoder = Decoder(TINY, ROWS, torch.Generator().manual_seed(0))
    return Engine(Pretraining(decoder, "fp32"), made_recipe())


def train(engine, update):
    """The numbers of an update with dropout."""
    rows = torch.from_numpy(np.random.default_rng(update).integers(0, ROWS, size=(BATCH, 9)))
    rates = optim.rates(engine.recipe, update, UPDATES, 0.1)
    return take_update(engine, [MicroBatch(1.0, rows)], 0.1, 5, update, rates, Stop())


def step(engine, update):
    train(engine, update)
    return Position(update, update)


@contextmanager
def saver(folder, minutes=0.0):
    engine = new_engine()
    yield engine, Saver(engine, folder, "code", {}, minutes, 0)


def checkpoints(folder):
    return sorted(int(path.name.removeprefix("update-")) for path in folder.glob("update-*"))


def saved_checkpoints(folder, updates=(1, 2, 3)):
    engine = new_engine()
    for update in updates:
        position = step(engine, update)
        checkpoint.write_checkpoint(folder, position, engine.state()[::-1], "old", {})


def test_a_checkpoint_goes_on_as_if_nothing_had_happened(tmp_path):
    whole, two = new_engine(), new_engine()
    expected = [train(whole, update) for update in range(1, 7)]
    saved_checkpoints(tmp_path)
    state = checkpoint.newest_checkpoint(tmp_path, "old", False)
    assert state.position == Position(3, 3)
    checkpoint.restore(state, two)
    assert [train(two, update) for update in range(4, 7)] == expected[3:]
    both = zip(two.objective.parameters(), whole.objective.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in both)


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
    assert checkpoint.newest_checkpoint(tmp_path, "old", False).position.update == 2
    told = capsys.readouterr().err
    assert "update-00000003 is damaged" in told
    assert told.count("\n") == 1


def test_a_checkpoint_of_other_code_names_the_ways_on(tmp_path):
    saved_checkpoints(tmp_path, (1,))
    with pytest.raises(
        UserError,
        match=(
            r"made by other code \(digest old, now new\): restore .* delete .*"
            r" GPT1_ACCEPT_CHECKPOINT=1"
        ),
    ):
        checkpoint.newest_checkpoint(tmp_path, "new", False)
    assert checkpoint.newest_checkpoint(tmp_path, "new", True).position.update == 1


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


def offer(writer, position):
    if writer.due():
        writer.save(position, 1)


def test_checkpoints_come_every_so_many_minutes(tmp_path):
    with saver(tmp_path, minutes=10) as (engine, writer):
        offer(writer, step(engine, 1))
        writer.saved_at -= 600.0  # ten minutes pass
        offer(writer, step(engine, 2))
        offer(writer, step(engine, 3))
    assert checkpoints(tmp_path) == [2]


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


def test_what_a_stage_puts_again_on_another_disk_stays_kept(tmp_path, monkeypatch):
    """There outputs are copies, before DVC has noted them."""
    monkeypatch.chdir(tmp_path)
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


def test_what_dvc_has_not_noted_stays_kept(tmp_path, monkeypatch):
    """Outputs are second names of a seed's files, which DVC makes read-only as it caches them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_STAGE", "finetune@rte")
    seed = CHECKPOINTS / "finetune-rte-0/seed-0"
    for name in ("summary.json", "state.json"):
        write_json(seed / name, {})
    end_seeds([seed])
    (tmp_path / "output").hardlink_to(seed / "summary.json")
    end_seeds([])
    assert seed.exists()
    (tmp_path / "output").chmod(0o444)
    end_seeds([])
    assert not seed.exists()


def test_two_stages_that_end_at_once_remove_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_STAGE", "finetune@rte")
    seeds = [CHECKPOINTS / f"finetune-rte-{number}/seed-{number}" for number in range(3)]
    for seed in seeds:
        for name in ("summary.json", "state.json"):
            write_json(seed / name, {})
    end_seeds(seeds)
    monkeypatch.setattr("gpt1.train.checkpoint._remove", lambda _: shutil.rmtree(CHECKPOINTS))
    end_seeds([])  # the other one removes all while this one looks
    assert not CHECKPOINTS.exists()
