"""Slurm itself: one training by two tasks of srun."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from slurm_cluster import needs_slurm, slurm_cluster
from test_many_processes import run as train

pytestmark = [needs_slurm, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")):
        yield


def test_two_tasks_of_srun_train_as_one_process(cluster: None, tmp_path: Path) -> None:
    """The line of docs/machines.md, over two nodes."""
    plain = train(tmp_path / "plain")
    launcher = ["srun", "--nodes=2", "--ntasks-per-node=1", sys.executable, "-m"]
    found = train(tmp_path / "srun", launcher, MASTER_ADDR="127.0.0.1")
    np.testing.assert_allclose(found["losses"], plain["losses"], rtol=1e-5)
    np.testing.assert_allclose(found["norms"], plain["norms"], rtol=1e-5)
