"""Two clones behind one folder of checkpoints: a training that stood still while another process took
its place ends when it wakes, and spoils nothing.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_data import write_params, write_shards, write_task

from gpt1.train import owner

SETTINGS = {"GPT1_DEVICE": "cpu", "GPT1_THREADS": "1", "OMP_NUM_THREADS": "1", "GPT1_MLFLOW": "off"}
PRETRAIN, FINETUNE = ("pretrain", "transformer"), ("finetune", "cola")


def command(clone, stage, **settings):
    """A stage in a clone, with its processes in a group of their own."""
    root = Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", *stage],
        cwd=clone,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | SETTINGS | {"PYTHONPATH": str(root)} | settings,
        start_new_session=True,
    )


def wait_for(folder, pattern, lines, process):
    """Wait until a file of the folder has so many lines."""
    deadline = time.monotonic() + 100
    while not any(path.read_bytes().count(b"\n") >= lines for path in folder.glob(pattern)):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def outputs(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A clone with shards, a task and a finished pre-training."""
    clone, before = tmp_path_factory.mktemp("shared") / "first", Path.cwd()
    clone.mkdir()
    os.chdir(clone)
    try:
        write_shards(Path("data/shard"))
        write_task("cola", train=60)
        write_params(
            clone, pretrain__updates=200, pretrain__checkpoint_minutes=1e-3, finetune__epochs=20
        )
    finally:
        os.chdir(before)
    finish(command(clone, PRETRAIN))
    return clone


def finish(process):
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "written", "processes"),
    [
        (PRETRAIN, "*/curve.jsonl", "1"),
        (FINETUNE, "*-seed-1-*/seed-1.jsonl", "1"),
        pytest.param(PRETRAIN, "*/curve.jsonl", "2", marks=pytest.mark.long),
    ],
)
def test_the_one_that_stood_still_ends_and_the_one_that_took_over_is_as_if_alone(
    first, tmp_path, stage, written, processes
):
    settings, out = {"GPT1_PROCESSES": processes}, Path("data", stage[0])
    alone, one, other = (tmp_path / name for name in ("alone", "one", "other"))
    for clone in (alone, one, other):
        shutil.copytree(first, clone)
        shutil.rmtree(clone / out, ignore_errors=True)
    shared = alone / "data/checkpoints"
    for clone in (one, other):
        (clone / "data/checkpoints").rmdir()
        (clone / "data/checkpoints").symlink_to(shared)
    finish(command(alone, stage, **settings))
    lost = command(one, stage, **settings)
    try:
        wait_for(shared, written, 30, lost)
        os.killpg(lost.pid, signal.SIGSTOP)
        [owned] = shared.glob(f"{written.partition('/')[0]}/{owner.OWNER}")
        before = owned.read_text()
        taker = command(other, stage, **settings)
        while owned.read_text() == before:
            assert taker.poll() is None, taker.communicate()[1]
            time.sleep(0.01)
        os.killpg(lost.pid, signal.SIGCONT)  # both are at work from here on
        _, said = lost.communicate(timeout=100)
    finally:
        if lost.poll() is None:
            os.killpg(lost.pid, signal.SIGKILL)
    assert lost.returncode == 2, said
    assert re.search(
        r"^error: data/checkpoints/\S+ was taken over by \S+, process \d+ ", said, re.M
    )
    finish(taker)
    assert outputs(other / out) == outputs(alone / out)
    assert not (one / out).exists(), "nothing of the lost one is published"
    assert not list(shared.glob("*/"))


def test_a_folder_is_its_last_takers_and_nobodys_before(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    owner.check(folder)
    owner.take([folder])
    owner.check(folder)
    take = "import sys; from pathlib import Path; from gpt1.train import owner; owner.take([Path(sys.argv[1])])"
    subprocess.run([sys.executable, "-c", take, folder], check=True)
    assert [path.name for path in folder.iterdir()] == [owner.OWNER]
    with pytest.raises(owner.TakenOverError, match=r"run was taken over by .*: this one ends"):
        owner.check(folder)
    shutil.rmtree(folder)
    with pytest.raises(owner.TakenOverError, match="run was finished by another while"):
        owner.check(folder)
