"""Slurm itself: one training by torchrun in two tasks of srun."""

import sys

import numpy as np
import pytest
from slurm_cluster import needs_slurm, slurm_cluster
from test_many_processes import run as train

from flows.server import free_port

pytestmark = [needs_slurm, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm")):
        yield


def test_two_tasks_of_srun_train_as_one_process(cluster, tmp_path):
    """The line of docs/machines.md, over two nodes."""
    plain = train(tmp_path / "plain", processes=1)
    launcher = ["srun", "--nodes=2", "--ntasks-per-node=1", sys.executable]
    launcher += ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    launcher += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    slurm = train(tmp_path / "srun", launcher=launcher)
    np.testing.assert_allclose(slurm["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(slurm["norms"], plain["norms"], rtol=1e-5)
