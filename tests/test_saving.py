"""Checkpoints written while training goes on: on slow disks, on full ones, and what is left when a
run ends.
"""

import json
import resource
import subprocess
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import torch
from made_pretraining import BATCH, ROWS, TINY, UPDATES, Run, made_recipe
from test_flow import until

from gpt1.base.errors import UserError, run_stage
from gpt1.model.gpt import Decoder
from gpt1.train import checkpoint, optim
from gpt1.train.checkpoint import Position, Saver
from gpt1.train.engine import Engine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.outputs import Curve


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


@contextmanager
def files_of_at_most(bytes_):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def saver(folder, minutes=0.0):
    engine = Engine(
        Pretraining(Decoder(TINY, ROWS, torch.Generator().manual_seed(0)), "fp32"), made_recipe()
    )
    yield engine, Saver(engine, folder, "code", {}, minutes, 0, ())


def step(engine, update):
    rows = torch.from_numpy(np.random.default_rng(update).integers(0, ROWS, size=(BATCH, 9)))
    rates = optim.rates(engine.recipe, update, UPDATES, 0.1)
    take_update(engine, [MicroBatch(1.0, rows)], 0.1, 5, update, rates, Stop())
    return Position(update, update)


def checkpoints(folder):
    return sorted(int(path.name.removeprefix("update-")) for path in folder.glob("update-*"))


def offer(writer, position):
    if writer.due():
        writer.save(position)


def test_checkpoints_come_every_so_many_minutes(tmp_path):
    with saver(tmp_path, minutes=10) as (engine, writer):
        offer(writer, step(engine, 1))
        writer.last_try -= 600.0  # ten minutes pass
        offer(writer, step(engine, 2))
        offer(writer, step(engine, 3))
    assert checkpoints(tmp_path) == [2]


def test_a_checkpoint_without_room_is_named_and_taken_when_there_is_room(tmp_path, capsys):
    with saver(tmp_path) as (engine, writer):
        for update in (1, 2, 3):
            with files_of_at_most(4000):
                offer(writer, step(engine, update))
        assert writer.save(Position(0, 0)) == "nothing to save yet"
        assert not list(tmp_path.iterdir()), "a half-written checkpoint lies about"
        lines = capsys.readouterr().err.splitlines()
        for update, line in enumerate(lines, start=1):
            assert line.startswith(f"checkpoint of update {update} not written: ")
            assert "too large" in line
            assert line.endswith("; training goes on, next try in 0 min")
        assert len(lines) == 3
        with files_of_at_most(4000):
            assert writer.save(Position(3, 3)).startswith("no checkpoint of it (")
        assert writer.save(Position(3, 3)) == "checkpoint saved"
    assert checkpoints(tmp_path) == [3]


def test_a_pretraining_on_a_full_disk_goes_on_and_ends_right_once_there_is_room(
    often, undisturbed, small_disk, capsys
):
    folder, fill = small_disk

    def told() -> bool:
        text = capsys.readouterr().err
        return (
            "not written: No space left on device; training goes on" in text
            or "cannot be written (No space left on device)" in text
        )

    def at(call, _):
        if call == 3 * BATCH + 9:  # update 4, after the first evaluation
            fill()
        elif call == 3 * BATCH + 9 + 4 * BATCH:
            until(told)
            (folder / "filler").unlink()

    run = Run(folder, often)
    run.go(at)
    assert run.results() == undisturbed
    assert checkpoints(folder)[-1] > 4, "no checkpoint came once there was room"


def test_a_pretraining_on_a_disk_that_stays_full_ends_with_one_line(often, small_disk, capsys):
    folder, fill = small_disk
    run = Run(folder, often)
    with pytest.raises(SystemExit) as ended:
        run_stage(lambda: run.go(lambda call, _: fill() if call == 3 * BATCH + 9 else None))
    assert ended.value.code == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            "cannot be written (No space left on device): make room on the disk and run the same"
            " command again; nothing finished was lost"
        )
    )
    assert max(run.update_of.values()) == UPDATES, "training did not go on"


def test_lines_of_a_curve_wait_for_room_and_none_is_cut_or_double(small_disk, capsys):
    folder, fill = small_disk
    curve = Curve(folder / "curve.jsonl", 0)
    for update in range(400):
        if update == 20:
            fill()
        elif update == 380:
            (folder / "filler").unlink()
        curve.add({"update": update, "loss": 1 / (update + 1)})
    assert [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()] == [
        {"update": update, "loss": 1 / (update + 1)} for update in range(400)
    ]
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert (
        "cannot be written (No space left on device): it waits in memory, training goes on" in told
    )


def test_an_error_in_the_writer_that_is_no_full_disk_is_not_hidden(tmp_path, monkeypatch):
    def wrong(*_):
        raise UserError("a fault of ours")

    monkeypatch.setattr(checkpoint, "write_checkpoint", wrong)
    with pytest.raises(UserError, match="a fault of ours"), saver(tmp_path) as (engine, writer):
        offer(writer, step(engine, 1))
