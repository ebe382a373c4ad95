"""Ranks 0, 7 and 63 of 64 call the same collectives in the same order, with the same sizes, else all
would wait for ever; and DeepSpeed takes our settings where its accelerator is CUDA.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fake_ranks import RANKS, UPDATES

ROOT = Path(__file__).parents[1]
MOST = {  # sums of all and collections of all, at stage 0 and 1; a checkpoint collects two moments
    "pretraining": ({"allreduce_": 12}, {"allreduce_": 68, "_allgather_base_": 6}),
    "finetuning": ({"allreduce_": 6}, {"allreduce_": 6, "_allgather_base_": 4}),
}

pytestmark = pytest.mark.slow


def run(*words, **settings):
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | environment | settings,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    run("-m", "fake_ranks", str(folder), DS_ACCELERATOR="cpu")
    return {
        (stage, rank): json.loads((folder / f"{stage}-{rank}.json").read_text())
        for stage in (0, 1)
        for rank in RANKS
    }


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("what", ["pretraining", "finetuning"])
def test_all_ranks_call_the_same(noted, what, stage):
    first, *others = (noted[stage, rank][what] for rank in RANKS)
    for other in others:
        for number, (one, its) in enumerate(zip(first, other, strict=True)):
            assert one == its, f"call {number}"
    calls = Counter(call[0].split(".")[1] for call in first if "broadcast" not in call[0])
    assert calls["allreduce_"]
    assert calls <= Counter(MOST[what][stage]), calls


@pytest.mark.parametrize("stage", [0, 1])
def test_an_update_is_one_exchange_of_gradients_and_one_message(noted, stage):
    sums = Counter(call[1] for call in noted[stage, 0]["pretraining"] if "allreduce_" in call[0])
    gradients = max(sums, key=lambda said: int(said.split("(")[1].split(",")[0]))
    assert gradients.endswith("float32")
    assert sums[gradients] == sums["(4,) torch.float64"] == UPDATES


ON_CUDA = """
import json, sys
from pathlib import Path
from unittest import mock
import torch
import deepspeed
from deepspeed.runtime import constants
from deepspeed.runtime.config import DeepSpeedConfig
from gpt1.params.schema import validate
from gpt1.params.yaml import read_yaml
from gpt1.train.engine import DeepSpeedEngine
from gpt1.train.launch import Machine

class Seen(Exception):
    pass

def initialize(*, config, **_):
    assert deepspeed.accelerator.get_accelerator().device_name() == "cuda"
    read = DeepSpeedConfig(config)
    known = {"zero_optimization", *(name for name in vars(constants).values() if isinstance(name, str))}
    zero = read.zero_config
    print(json.dumps({
        "unknown": sorted(config.keys() - known), "stage": zero.stage, "overlap_comm": zero.overlap_comm,
        "bf16": read.bfloat16_config.enabled, "fp16": read.float16_config.enabled,
        "clipping": read.gradient_clipping, "autocast": read.torch_autocast_enabled}))
    raise Seen

recipe = validate(read_yaml(Path(sys.argv[1]))).pretrain
for stage in (0, 1):
    machine = Machine("cuda", 2, 1, 1, 1, None, True, False, zero_stage=stage)
    with (mock.patch.object(deepspeed, "initialize", initialize),
          mock.patch.object(deepspeed, "init_distributed"),
          mock.patch.object(torch.cuda, "set_device"),
          mock.patch.object(torch.nn.Module, "to", lambda module, *_, **__: module)):
        try:
            DeepSpeedEngine(torch.nn.Linear(2, 2), recipe, machine)
        except Seen:
            pass
"""


def test_deepspeed_on_a_gpu_takes_our_settings():
    """It refuses a wrong key within a section by itself, and passes over one at the top."""
    said = run(
        "-c",
        ON_CUDA,
        str(ROOT / "conf/paper.yaml"),
        DS_ACCELERATOR="cuda",
        WORLD_SIZE="2",
        RANK="1",
    )
    expected = {
        "unknown": [],
        "overlap_comm": True,
        "bf16": False,  # weights and moments stay float32
        "fp16": False,
        "clipping": 0.0,  # ours, which is the authors'
        "autocast": False,
    }
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert found == [{**expected, "stage": stage} for stage in (0, 1)]
