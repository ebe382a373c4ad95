"""Slurm itself: one pre-training by torchrun in two tasks of srun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_data import SETTINGS, json_lines, write_params, write_shards
from slurm_cluster import needs_slurm, slurm_cluster
from test_stages_train import ROOT

from flows.server import free_port

pytestmark = [needs_slurm, pytest.mark.slow, pytest.mark.timeout(400)]
STAGE = ("pretrain", "transformer", "0")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm")):
        yield


def test_two_tasks_of_srun_train_as_one_process(cluster, tmp_path, monkeypatch, run_here):
    """The line of docs/machines.md, over two nodes."""
    launcher = ["srun", "--nodes=2", "--ntasks-per-node=1", sys.executable]
    launcher += ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    launcher += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    curves = []
    for name in ("alone", "srun"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("conf").symlink_to(ROOT / "conf")
        write_params(Path(), pretrain__dropout=0.0, pretrain__precision="fp32")
        write_shards(Path("data/shard"))
        if name == "alone":
            run_here(*STAGE)
        else:
            environment = os.environ | SETTINGS | {"PYTHONPATH": str(ROOT)}
            words = [*launcher, "-m", "gpt1.stages", *STAGE]
            subprocess.run(words, env=environment, timeout=300, check=True)
        curves.append(json_lines("data/pretrain/transformer/seed-0/curve.jsonl"))
    for alone, together in zip(*curves, strict=True):
        assert together == pytest.approx(alone, rel=1e-5)
