"""What becomes of flow runs whose process is no more, and of those that have ended: a real Prefect
server, workers that were heard of and are not any more.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.flows import flow
from prefect.states import Cancelling, Completed, Failed, Pending, Running, Scheduled
from prefect_server import prefect_server, until

from flows.service.server import LOOKS, look, lost_runs
from gpt1.pipeline.prefect_names import POOL

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(300)]


@flow(name="reproduce-table2")
def nothing() -> None:
    pass


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncPrefectClient]:
    """A server with our pool."""
    with prefect_server(tmp_path_factory.mktemp("server")) as made:
        made.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        yield made


def heard_of(client: SyncPrefectClient, worker: str, seconds: float) -> None:
    """A sign of life of a worker that gives one every so many seconds."""
    client.request(
        "POST",
        "/work_pools/{work_pool_name}/workers/heartbeat",
        path_params={"work_pool_name": POOL},
        json={"name": worker, "heartbeat_interval_seconds": seconds},
    )


def made(client: SyncPrefectClient, worker: str | None, *states: Any) -> UUID:
    """A run of our pool that a worker took, and that went through these states."""
    run = client.create_flow_run(nothing, state=Scheduled(), work_pool_name=POOL)
    if worker:
        client.update_flow_run_labels(run.id, {"prefect.worker.name": worker})
    for state in states:
        client.set_flow_run_state(run.id, state, force=True)
    return run.id


def state(client: SyncPrefectClient, run: UUID) -> str:
    found = client.read_flow_run(run).state
    return found.name if found else ""


def test_a_lost_run_is_marked_and_no_other(client: SyncPrefectClient) -> None:
    for worker, seconds in (("ours", 600), ("alive", 600), ("gone", 1)):
        heard_of(client, worker, seconds)
    lost = {
        made(client, "ours", Running()): "Crashed",
        made(client, "ours", Pending()): "Crashed",
        made(client, "gone", Running()): "Crashed",
        made(client, "gone", Running(), Cancelling()): "Cancelled",
    }
    kept = {
        made(client, "alive", Running()): "Running",
        made(client, None, Running()): "Running",
        made(client, "gone"): "Scheduled",
        **{
            made(client, worker, Running(), end): end.name
            for worker in ("ours", "gone")
            for end in (Completed(), Failed())
        },
    }
    until(lambda: {run.id for run in lost_runs(client, ["ours"])} == set(lost))
    seen = Counter[UUID]()
    for _ in range(LOOKS - 1):
        seen = look(client, ["ours"], seen)
    assert {state(client, run) for run in lost} <= {"Running", "Pending", "Cancelling"}, "too soon"
    for _ in range(3):
        seen = look(client, ["ours"], seen)
    assert {run: state(client, run) for run in lost | kept} == lost | kept


def test_a_run_that_ends_while_it_is_looked_at_keeps_its_end(
    client: SyncPrefectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(client, "ours", Running())
    seen = Counter({run: LOOKS})
    before = client.set_flow_run_state

    def late(*arguments: Any, **named: Any) -> Any:
        with suppress(Exception):
            before(run, Completed())
        return before(*arguments, **named)

    monkeypatch.setattr(client, "set_flow_run_state", late)
    look(client, ["ours"], seen)
    assert state(client, run) == "Completed"


def test_a_run_whose_process_lives_or_is_being_started_is_not_lost(
    client: SyncPrefectClient, tmp_path: Path
) -> None:
    before, running = made(client, "ours", Pending()), made(client, "ours", Running())
    time.sleep(1)

    def here(module: str, *words: str) -> "subprocess.Popen[bytes]":
        """A process with such a command, which sleeps."""
        path = tmp_path.joinpath(*module.split("."), "__main__.py")
        path.parent.mkdir(parents=True)
        path.write_text("import time\ntime.sleep(600)\n")
        environment = {"PREFECT__FLOW_RUN_ID": str(running)}
        return subprocess.Popen(
            [sys.executable, "-m", module, *words], cwd=tmp_path, env=environment
        )

    processes = [here("flows.engine"), here("prefect", "worker", "start", "--name", "ours")]
    starting = made(client, "ours", Pending())
    try:
        until(lambda: running not in {run.id for run in lost_runs(client, ["ours"])})
        lost = {run.id for run in lost_runs(client, ["ours"])}
        assert starting not in lost, "its worker is about to start its process"
        assert before in lost, "the worker that took it is no more"
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert {before, running, starting} <= {run.id for run in lost_runs(client, ["ours"])}
