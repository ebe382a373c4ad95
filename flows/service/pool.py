"""What the service makes on Prefect's server, each made once and kept: work pool, queues,
deployments.
"""

import os
import shutil
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from flows.names import POOL
from gpt1.base.files import fingerprint, sha256_file
from gpt1.pipeline.settings import setting
from gpt1.pipeline.slots import lanes_of_cpu

QUEUES = {
    "default": "flows, in the checkout of the worker that takes one",
    "cpu": "stages sent by a flow of any machine",
    "gpu": "stages that train, for machines with a GPU",
}


def prepare_pool() -> None:
    """Make the pool and its queues where they are absent: a worker of a queue that is not there
    would find nothing, in silence.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
    from prefect.workers.process import ProcessWorker

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(POOL)
        except ObjectNotFound:
            template = ProcessWorker.get_default_base_job_template()
            client.create_work_pool(
                WorkPoolCreate(name=POOL, type=ProcessWorker.type, base_job_template=template)
            )
        for name, description in QUEUES.items():
            try:
                client.read_work_queue_by_name(name, POOL)
            except ObjectNotFound:
                try:
                    client.create_work_queue(name, description, work_pool_name=POOL)
                except ObjectAlreadyExists:
                    continue  # another worker was quicker


def worker_name(root: Path, part: str) -> str:
    """The name of a worker of this clone: the same each time, another for every clone."""
    return f"{socket.gethostname()} {root.name} {fingerprint(str(root))[:4]} {part}"


def worker_since(name: str, since: datetime) -> bool:
    """Whether the worker has given a sign of life since then."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        workers: list[Any] = client.read_workers_for_work_pool(POOL)
    return any(
        worker.name == name and worker.last_heartbeat_time and worker.last_heartbeat_time >= since
        for worker in workers
    )


def gpus() -> int:
    """GPUs of this machine, or those that CUDA_VISIBLE_DEVICES names; 0 where GPT1_DEVICE says cpu.
    Not by torch, which takes seconds.
    """
    program = shutil.which("nvidia-smi")
    if setting("GPT1_DEVICE") == "cpu" or not program:
        return 0
    found = subprocess.run(
        [program, "-L"], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout.count("GPU ")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else min(found, len(list(filter(None, visible.split(",")))))


def stage_queues() -> list[str]:
    """The queues from which this machine takes stages: `gpu` only where there is one."""
    return ["cpu", "gpu"] if gpus() else ["cpu"]


def stage_slots() -> int:
    """How many stages this machine takes at once."""
    return gpus() or lanes_of_cpu()


def deployed_mark(root: Path, address: str) -> str:
    """What stands for the deployments of this clone at a server: they are as they were while
    nothing of it changes.
    """
    import prefect

    files = [root / "prefect.yaml", *sorted((root / "flows").glob("*.py"))]
    profiles = sorted(path.name for path in (root / "conf").glob("*.yaml"))
    return fingerprint(
        [
            address,
            sys.version,
            prefect.__version__,
            profiles,
            *(sha256_file(path) for path in files),
        ]
    )


def all_deployed(root: Path) -> bool:
    """Whether the server has a deployment by each name of prefect.yaml."""
    from prefect.client.orchestration import get_client

    from gpt1.params.yaml import read_yaml

    wanted = sorted(str(row["name"]) for row in read_yaml(root / "prefect.yaml")["deployments"])
    with get_client(sync_client=True) as client:
        found = client.read_deployments(limit=200)
    return sorted(one.name for one in found if one.work_pool_name == POOL) == wanted
