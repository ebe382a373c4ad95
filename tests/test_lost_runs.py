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

import httpx
import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import flow
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling, Completed, Failed, Pending, Running, Scheduled
from prefect_server import prefect_server, until

from flows import remote
from flows.service.server import LOOKS, look, lost_runs
from gpt1.base.errors import UserError
from gpt1.pipeline.prefect_names import POOL
from gpt1.train.launch import free_port

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


def test_what_a_server_was_asked_and_gave_no_answer_to_is_asked_again_and_done_once(
    client: SyncPrefectClient,
) -> None:
    """As flows/remote.py sends a stage: the first answer is lost."""
    deployment = client.create_deployment(
        client.create_flow(nothing), "lost-answers", work_pool_name=POOL
    )
    lost = [httpx.RemoteProtocolError("the server was ended"), httpx.ReadTimeout("it is busy")]

    def send() -> Any:
        run: Any = run_deployment(deployment, timeout=0, idempotency_key="one", as_subflow=False)
        if lost:
            raise lost.pop()
        return run

    with temporary_settings({PREFECT_API_URL: str(client.api_url)}):
        run = remote.answer(send, "finetune@rte")
    assert not lost
    assert [one.id for one in client.read_flow_runs() if one.deployment_id == deployment] == [
        run.id
    ]


def test_a_refusal_is_told_at_once_and_silence_after_a_while(
    client: SyncPrefectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match=r"^finetune@rte: Prefect's server gave no answer") as told:
        remote.answer(lambda: client.read_flow_run(UUID(int=0)), "finetune@rte")
    assert isinstance(told.value.__cause__, ObjectNotFound)
    assert time.monotonic() - began < remote.PATIENCE_SECONDS / 2
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 2.0)
    with (
        SyncPrefectClient(f"http://127.0.0.1:{free_port()}/api") as nobody,
        pytest.raises(UserError, match=r"ConnectError: .* asked for up to 2 s; see that it runs"),
    ):
        remote.answer(nobody.read_deployments, "finetune@rte")
