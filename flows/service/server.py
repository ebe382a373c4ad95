"""What the service makes on Prefect's server, each made once and kept: work pool, queues,
deployments; and what it ends there: flow runs that nobody would end, for their machine died, or
their process and its worker together.

A worker tells when the process of a run dies, and a run ends itself with its worker
(flows/engine.py). So a run is lost when its worker is no more; and when its worker is one of this
service, which starts it anew under its name, but the run has no process here.
"""

import math
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from flows.service.programs import ENGINE, WORKER, runs
from gpt1.base.cores import nvidia_smi
from gpt1.base.files import fingerprint, sha256_file
from gpt1.base.settings import setting
from gpt1.pipeline.prefect_names import POOL
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
    """GPUs of this machine, or those that CUDA_VISIBLE_DEVICES names; 0 where GPT1_DEVICE says
    cpu.
    """
    if setting("GPT1_DEVICE") == "cpu":
        return 0
    found, visible = len(nvidia_smi("index")), os.environ.get("CUDA_VISIBLE_DEVICES")
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


AT_WORK = ("PENDING", "RUNNING", "CANCELLING")
LOOK_SECONDS, LOOKS = 5.0, 8  # a worker that is being started again, or reached again, has so long
MESSAGE = "its process has died. Run the same again: what is finished is kept."


def watch_runs(own: Collection[str]) -> None:
    """Mark lost runs as long as this process lives. `own`: the workers of this service, by name.

    Looks are counted, not seconds: a machine that was asleep, or a server that did not answer,
    makes no run lost.
    """
    from prefect.client.orchestration import get_client

    seen = Counter[UUID]()
    while True:
        time.sleep(LOOK_SECONDS)
        try:
            with get_client(sync_client=True) as client:
                seen = look(client, own, seen)
        except Exception:  # no server, or one that is being started again
            seen.clear()


def look(client: Any, own: Collection[str], seen: Counter[UUID]) -> Counter[UUID]:
    """Mark the runs that are lost now and were at each look before; returns how often each was."""
    lost = lost_runs(client, own)
    now = Counter({run.id: seen[run.id] + 1 for run in lost})
    for run in lost:
        if now[run.id] >= LOOKS:
            mark_lost(client, run)
    return now


def lost_runs(client: Any, own: Collection[str]) -> list[Any]:
    """The runs of our pool that have not ended, as the server has it, but have no process."""
    from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter

    at_work = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate({"state": {"type": {"any_": AT_WORK}}}),
        work_pool_filter=WorkPoolFilter.model_validate({"name": {"any_": [POOL]}}),
    )
    workers = client.read_workers_for_work_pool(POOL)
    online = {each.name for each in workers if each.status == "ONLINE"}
    here, since = processes_here()

    def is_lost(run: Any) -> bool:
        worker = run.labels.get("prefect.worker.name")
        if worker not in own:
            return worker is not None and worker not in online
        taken = run.state.timestamp.timestamp()
        starting = run.state.is_pending() and since.get(worker, math.inf) < taken
        return str(run.id) not in here and not starting

    return [run for run in at_work if is_lost(run)]


def processes_here() -> tuple[set[str], dict[str, float]]:
    """The ids of the flow runs whose process lives on this machine; since when, in seconds of the
    epoch, each worker does, by name.
    """
    import psutil

    flow_runs, workers = set(), {}
    for process in psutil.process_iter():
        with suppress(OSError, ValueError, psutil.Error):
            if runs(process, ENGINE):
                flow_runs.add(process.environ().get("PREFECT__FLOW_RUN_ID", ""))
            elif runs(process, WORKER):
                words = process.cmdline()
                workers[words[words.index("--name") + 1]] = process.create_time()
    return flow_runs, workers


def mark_lost(client: Any, run: Any) -> None:
    """Tell the server that a run is lost. Not forced: it refuses this for a run that has ended."""
    from prefect.states import Cancelled, Crashed

    client.set_flow_run_state(
        run.id,
        Cancelled(message=MESSAGE) if run.state.is_cancelling() else Crashed(message=MESSAGE),
    )
