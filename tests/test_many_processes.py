"""One training, whoever does it: one process or two, with ZeRO or without, any micro-batches, and each
goes on from another's state.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import many_processes
import numpy as np
import pytest
from many_processes import HALF, UPDATES
from safetensors.numpy import load_file

from gpt1.train.launch import read_machine

pytestmark = pytest.mark.slow


def run(folder, launcher=(), **settings):
    """Train in a folder, the processes started by ourselves or by a launcher's command."""
    folder.mkdir()
    root = Path(__file__).parents[1]
    environment = os.environ | {
        "PYTHONPATH": f"{root}:{root / 'tests'}",
        "GPT1_DEVICE": "cpu",
        "GPT1_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*(launcher or (sys.executable, "-m")), "many_processes", str(folder)],
        cwd=folder,
        env=environment | settings,
        timeout=400,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return json.loads((folder / "found.json").read_text()) | {"said": done.stdout}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def plain(place):
    return run(place / "plain")


@pytest.fixture(scope="module", params=(0, 1))
def two(request, place, plain):
    """Two processes at a stage, and where their states lie."""
    folder = place / f"stage-{request.param}"
    return run(folder, GPT1_PROCESSES="2", GPT1_ZERO_STAGE=str(request.param)), folder


def apart(one, other):
    """The largest difference between two states."""
    found, expected = load_file(one), load_file(other)
    assert found.keys() == expected.keys()
    return max(float(np.abs(found[name] - expected[name]).max()) for name in found)


def test_losses_are_those_of_one_process(plain, two):
    found, _ = two
    assert len(found["losses"]) == UPDATES
    np.testing.assert_allclose(found["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(found["norms"], plain["norms"], rtol=1e-5)
    assert max(plain["norms"]) > many_processes.recipe().max_gradient_norm, (
        "no gradient was clipped: the test does not look at clipping"
    )


def test_the_state_is_whole_and_that_of_one_process(place, two):
    for name in ("half", "end"):
        assert apart(two[1] / f"{name}.safetensors", place / f"plain/{name}.safetensors") < 2e-6


def test_two_processes_go_on_from_one(place, plain, two):
    found, folder = two
    np.testing.assert_allclose(found["resumed"], plain["losses"][HALF:], rtol=1e-5)
    assert apart(folder / "resumed.safetensors", place / "plain/end.safetensors") < 2e-6


def test_one_process_goes_on_from_two(plain, two, monkeypatch):
    for name, value in (("GPT1_DEVICE", "cpu"), ("GPT1_PROCESSES", "1")):
        monkeypatch.setenv(name, value)
    engine = many_processes.engine_of(read_machine())
    many_processes.load(engine, two[1] / "half.safetensors", HALF)
    updates = range(HALF + 1, HALF + 6)
    np.testing.assert_allclose(
        many_processes.train(engine, updates, 2)[0], plain["losses"][HALF : HALF + 5], rtol=1e-5
    )


def test_a_gradient_that_is_not_finite_changes_nothing(two):
    found, folder = two
    assert not np.isfinite(found["not_finite"]).any()
    assert apart(folder / "after-nan.safetensors", folder / "end.safetensors") == 0.0


def test_nothing_is_said_that_nobody_asked_for(two):
    assert two[0]["said"] == ""


def test_a_finished_seed_leaves_memory_to_the_next(two):
    assert two[0]["alive"] == 0


@pytest.mark.long
def test_processes_of_torchrun_train_as_one(place, plain):
    """The line of docs/machines.md, on this machine."""
    line = "-m torch.distributed.run --standalone --nproc-per-node 2 -m"
    found = run(place / "torchrun", [sys.executable, *line.split()])
    np.testing.assert_allclose(found["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(found["norms"], plain["norms"], rtol=1e-5)
