"""One training, whoever does it: one process, two by DeepSpeed with ZeRO or without; and each goes on
from another's state.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import many_processes
import numpy as np
import pytest
from many_processes import HALF, MICRO_BATCHES, UPDATES
from safetensors.numpy import load_file

from gpt1.train.engine import DEEPSPEED
from gpt1.train.launch import decide

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


def run(folder, processes=2, stage=0, launcher=None):
    """Train in a folder, the processes started by torchrun, at a stage of ZeRO."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    launcher = launcher or [sys.executable, *torchrun]
    (folder / "conf").mkdir(parents=True)
    config = json.loads((ROOT / DEEPSPEED).read_text())
    config["zero_optimization"]["stage"] = stage
    (folder / DEEPSPEED).write_text(json.dumps(config))
    done = subprocess.run(
        [*launcher, "-m", "many_processes", str(folder)],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "GPT1_DEVICE": "cpu"}
        | {"GPT1_THREADS": "1", "OMP_NUM_THREADS": "1"},
        timeout=400,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return json.loads((folder / "seen.json").read_text()) | {"said": done.stdout}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def plain(place):
    return run(place / "plain", processes=1)


@pytest.fixture(scope="module", params=(pytest.param(0, marks=pytest.mark.long), 1))
def two(request, place, plain):
    """Two processes at a stage, and where their states lie."""
    folder = place / f"stage-{request.param}"
    return run(folder, stage=request.param), folder


def apart(first, second):
    """The largest difference between two states."""
    one, other = load_file(first), load_file(second)
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


def test_losses_are_those_of_one_process(plain, two):
    seen, _ = two
    assert len(seen["losses"]) == UPDATES
    np.testing.assert_allclose(seen["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(seen["norms"], plain["norms"], rtol=1e-5)
    assert max(plain["norms"]) > many_processes.recipe().max_gradient_norm, (
        "no gradient was clipped: the test does not look at clipping"
    )


def test_the_state_is_whole_and_that_of_one_process(place, two):
    for name in ("half", "end"):
        assert apart(two[1] / f"{name}.safetensors", place / f"plain/{name}.safetensors") < 2e-6


def test_two_processes_go_on_from_one(plain, two):
    np.testing.assert_allclose(two[0]["resumed"], plain["losses"][HALF:], rtol=1e-5)


def test_one_process_goes_on_from_two(plain, two):
    engine = many_processes.make_engine(
        many_processes.objective(), many_processes.recipe(), decide({}, 0, 1), MICRO_BATCHES
    )
    many_processes.load(engine, two[1] / "half.safetensors", HALF)
    losses = many_processes.train(engine, range(HALF + 1, HALF + 6))[0]
    np.testing.assert_allclose(losses, plain["losses"][HALF : HALF + 5], rtol=1e-5)


def test_nothing_is_said_that_nobody_asked_for(two):
    assert two[0]["said"] == ""


def test_a_finished_seed_leaves_memory_to_the_next(two):
    assert two[0]["alive"] == 0
