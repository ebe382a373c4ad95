"""Flows over a graph of tiny stages, with a real Prefect server: what its API says of each task."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_graph import ROOT, Repository
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.states import Cancelling
from prefect_server import prefect_server, until, without_prefect

from gpt1.pipeline.job import Ended
from gpt1.pipeline.run_state import Plan, RunState
from gpt1.pipeline.schedule import Allocation, Slots, Stage

STAGES = ("first", "quiet", "pretrain", "finetune@cola", "finetune@rte", "table")
FLOW = """
import pathlib
from flows import reproduce
reproduce.ROOT = pathlib.Path.cwd()
reproduce.reproduction("these", (), "a graph of tiny stages")(return_state=True)
"""
slow = [pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncPrefectClient]:
    with prefect_server(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path.resolve())
    yield made
    assert made.processes() == [], "processes were left behind"


def start(repository: Repository, client: SyncPrefectClient) -> "subprocess.Popen[str]":
    """A flow over the whole graph, two stages side by side."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "GPT1_DEVICE": "cpu",
        "GPT1_THREADS": "1",
        "PREFECT_HOME": str(repository.folder / "prefect"),
        "PREFECT_API_URL": str(client.api_url),
    }
    return subprocess.Popen(
        [sys.executable, "-c", FLOW],
        cwd=repository.folder,
        env=without_prefect() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def last_run(client: SyncPrefectClient) -> Any:
    (run,) = client.read_flow_runs(sort="START_TIME_DESC", limit=1)  # type: ignore[arg-type]
    return run


def tasks(client: SyncPrefectClient) -> dict[str, Any]:
    """The tasks of the last flow run, by name; the server writes down their states a little later."""
    run = FlowRunFilter.model_validate({"id": {"any_": [last_run(client).id]}})
    return {each.name: each for each in client.read_task_runs(flow_run_filter=run)}


def states(client: SyncPrefectClient) -> dict[str, str]:
    return {name: each.state_name for name, each in tasks(client).items()}


def run(repository: Repository, client: SyncPrefectClient, *wanted: str) -> Any:
    """Run the flow to its end; its tasks are to be in these states, in the order of STAGES."""
    process = start(repository, client)
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    expected = dict(zip(STAGES, wanted, strict=True))
    deadline = time.monotonic() + 20
    while states(client) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert states(client) == expected, said
    return last_run(client)


@pytest.mark.usefixtures("repository")
class TestFlow:
    pytestmark = slow

    def test_a_failed_stage_a_lost_one_and_then_the_rest(
        self, repository: Repository, client: SyncPrefectClient
    ) -> None:
        (repository.folder / "fail-finetune@cola").touch()
        (repository.folder / "lose-quiet").touch()
        ended = run(repository, client, *["Completed"] * 3, "Failed", "Completed", "NotReady")
        assert ended.state_name == "Failed"
        assert "finetune@cola: made to fail" in ended.state.message
        assert "1 stage failed; not run, because they need what failed: table" in (
            ended.state.message
        )
        found = tasks(client)
        assert {name: each.run_count for name, each in found.items()} == dict(
            zip(STAGES, (1, 2, 1, 1, 1, 0), strict=True)
        ), "what was lost is tried again, bad input is not"
        assert {each.id for each in found["table"].task_inputs["wait_for"]} == {
            found[f"finetune@{task}"].id for task in ("cola", "rte")
        }, "Prefect does not know what depends on what"
        assert set(repository.journal()) == {"first", "quiet", "pretrain", "finetune@rte"}

        (repository.folder / "fail-finetune@cola").unlink()
        ended = run(repository, client, *["Cached"] * 3, "Completed", "Cached", "Completed")
        assert (ended.state_name, ended.state.message) == ("Completed", "stages run: 2")
        ended = run(repository, client, *["Cached"] * 6)
        assert ended.state.message == "everything is up to date"

        repository.journal()
        (repository.folder / "word").write_text("two")
        run(repository, client, "Completed", "Completed", *["Cached"] * 4)
        assert set(repository.journal()) == {"first", "quiet"}, "quiet wrote what it wrote before"

    def test_cancelled_its_stages_end_with_a_checkpoint(
        self, repository: Repository, client: SyncPrefectClient
    ) -> None:
        (repository.folder / "await-pretrain").write_text("never")
        process = start(repository, client)
        repository.wait_for("pid-pretrain")
        client.set_flow_run_state(last_run(client).id, Cancelling(), force=True)
        process.send_signal(signal.SIGTERM)  # as a worker does, which was asked to cancel
        process.communicate(timeout=100)
        assert (repository.folder / "checkpoint-pretrain").exists()
        assert last_run(client).state_name == "Cancelled"
        until(lambda: states(client).get("pretrain") == "Cancelled")
        assert {states(client)[name] for name in STAGES[3:]} <= {"NotReady", "Pending"}

    def test_killed_it_leaves_nothing_behind(
        self, repository: Repository, client: SyncPrefectClient
    ) -> None:
        (repository.folder / "await-quiet").write_text("never")
        process = start(repository, client)
        repository.wait_for("pid-quiet")
        process.kill()
        process.communicate()
        until(lambda: not repository.processes())
        assert (repository.folder / "checkpoint-quiet").exists()


def plan(needs: dict[str, str], slots: Slots, **shares: Allocation) -> Plan:
    """A plan of stages that all are out of date; one lane each where nothing else is said."""
    stages = {
        name: Stage(name, frozenset(text.split()), stale=True) for name, text in needs.items()
    }
    share = {name: shares.get(name, Allocation(1, None)) for name in needs}
    urgency = {name: float(len(needs) - place) for place, name in enumerate(needs)}
    return Plan(stages, list(needs), set(needs), slots, share, urgency)


def test_no_more_stages_hold_lanes_and_devices_than_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty threads, as Prefect's tasks are, two GPUs: no GPU is held twice, all come to their
    turn.
    """
    monkeypatch.chdir(tmp_path)
    names = [f"stage{number}" for number in range(40)]
    shares = {name: Allocation(0, None, 1 + (number % 5 == 0)) for number, name in enumerate(names)}
    state = RunState(plan(dict.fromkeys(names, ""), Slots(1, ("a", "b")), **shares))
    held, seen = dict[str, str](), list[str]()

    def work(name: str) -> None:
        variables = state.turn(name)
        assert variables is not None
        devices = variables["CUDA_VISIBLE_DEVICES"].split(",")
        for device in devices:
            assert held.setdefault(device, name) == name, f"{device} is held twice"
        time.sleep(0.002)
        for device in devices:
            del held[device]
        seen.append(name)
        state.end(name, Ended("unchanged"))

    threads = [threading.Thread(target=work, args=[name]) for name in reversed(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(seen) == sorted(names)
    assert sorted(state.free.devices) == ["a", "b"]
    assert state.conclude() == {}


def test_a_lane_is_kept_for_the_most_urgent_though_another_asks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = RunState(plan({"urgent": "", "other": ""}, Slots(1)))
    order = list[str]()

    def work(name: str) -> None:
        state.turn(name)
        order.append(name)
        state.end(name, Ended("run"))

    other = threading.Thread(target=work, args=["other"])
    other.start()
    time.sleep(0.1)
    work("urgent")
    other.join(30)
    assert order == ["urgent", "other"]


@pytest.mark.parametrize(
    ("of_machine", "not_run"), [(False, {"after"}), (True, {"after", "apart"})]
)
def test_what_a_failure_means_for_those_that_wait(
    of_machine: bool, not_run: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = RunState(plan({"first": "", "after": "first", "apart": ""}, Slots(1)))
    assert state.turn("first") == {}
    assert state.turn("first") == {}, "another attempt keeps its lane"
    state.end("first", Ended("failed", "why", of_machine=of_machine))
    assert state.not_run == not_run
    assert state.turn("after") is None
    assert (state.turn("apart") is None) == of_machine


def test_whoever_waits_for_a_lane_ends_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = RunState(plan({"first": "", "second": ""}, Slots(1)))
    state.turn("first")
    given = list[object]()
    thread = threading.Thread(target=lambda: given.append(state.turn("second")))
    thread.start()
    time.sleep(0.1)
    assert not given
    state.stop()
    thread.join(10)
    assert given == [None]
    with pytest.raises(KeyboardInterrupt):
        state.conclude()
