"""Flow runs that nobody would end: their machine died, or their process and its worker together.

A worker tells when the process of a run dies, and a run ends itself with its worker
(flows/place.py). So a run is lost when its worker is no more; and when its worker is one of this
service, which starts it anew under its name, but the run has no process here.
"""

import math
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from uuid import UUID

from flows.names import POOL
from flows.service.ending import ENGINE, WORKER, runs

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
            mark(client, run)
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


def mark(client: Any, run: Any) -> None:
    """Tell the server that a run is lost. Not forced: it refuses this for a run that has ended."""
    from prefect.states import Cancelled, Crashed

    client.set_flow_run_state(
        run.id,
        Cancelled(message=MESSAGE) if run.state.is_cancelling() else Crashed(message=MESSAGE),
    )
