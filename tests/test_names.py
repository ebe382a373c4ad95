"""Names of deployments as people type them, and what a service says before it starts anything."""

import asyncio
import socket
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prefect.client.base import ServerType
from prefect.client.orchestration import PrefectClient
from prefect.exceptions import ObjectNotFound

from flows.service.addresses import own_address, refuse_taken
from flows.service.programs import ServiceProgram
from gpt1.base.errors import UserError
from gpt1.pipeline import prefect_names as names


class Client:
    """A client that knows two deployments of one flow of ours, and one of somebody else's."""

    api_url = "http://127.0.0.1:4200/api/"
    server_type = ServerType.SERVER

    def __init__(self, workers: int = 1, answers: bool = True, version: str | None = None) -> None:
        self.workers, self.answers, self.version, self.flow = (
            workers,
            answers,
            version,
            uuid.uuid4(),
        )
        self.known = ["reproduce-table2/checkout", "reproduce-table2/small", "other/checkout"]

    async def read_deployment_by_name(self, name: str) -> str:
        if name in self.known:
            return name
        raise ObjectNotFound(Exception(name))

    async def api_version(self) -> str:
        import prefect

        if not self.answers:
            raise httpx.ConnectError("refused")
        return self.version or prefect.__version__

    async def read_flows(self, **_: Any) -> list[Any]:
        return [SimpleNamespace(id=self.flow, name="reproduce-table2")]

    async def read_deployments(self, **_: Any) -> list[Any]:
        return [
            SimpleNamespace(flow_id=self.flow, name="checkout"),
            SimpleNamespace(flow_id=self.flow, name="small"),
        ]

    async def create_flow_run_from_deployment(self, *_: Any, pool: str = "gpt1") -> Any:
        return SimpleNamespace(work_pool_name=pool)

    async def read_workers_for_work_pool(self, *_: Any, **__: Any) -> list[Any]:
        return ["a worker"] * self.workers


def find(client: Client, name: str) -> Any:
    return asyncio.run(names.finding(Client.read_deployment_by_name)(client, name))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("reproduce-table2", "reproduce-table2/checkout"),
        ("other/checkout", "other/checkout"),
        ("reproduce-table2/small", "reproduce-table2/small"),
    ],
)
def test_a_bare_name_means_the_checkout(said: str, meant: str) -> None:
    assert find(Client(), said) == meant


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("reproduce-tabel2", "did you mean reproduce-table2 "),
        ("foo", "expected one of reproduce-table2\n"),
        ("reproduce-table2/smal", "reproduce-table2/small"),
    ],
)
def test_a_name_that_is_not_there_is_one_line(
    said: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        find(Client(), said)
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert shown.startswith(f"error: no deployment {said!r} at http://127.0.0.1:4200/api; ")
    assert answer in shown
    assert shown.count("\n") == 1


def test_names_of_others_are_left_to_prefect() -> None:
    with pytest.raises(ObjectNotFound):
        find(Client(answers=False), "other/absent")


def test_no_server_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        find(Client(answers=False), "reproduce-table2")
    shown = capsys.readouterr().err
    assert (
        "no Prefect server answers at http://127.0.0.1:4200/api; start it with: make serve" in shown
    )
    assert shown.count("\n") == 1


def test_a_server_of_another_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert find(Client(version="3.0.1"), "reproduce-table2")
    assert capsys.readouterr().err.startswith(
        "warning: the Prefect server at http://127.0.0.1:4200/api is of version 3.0.1"
    )


@pytest.mark.parametrize(
    ("pool", "workers", "warned"), [("gpt1", 0, True), ("gpt1", 1, False), ("theirs", 0, False)]
)
def test_a_pool_without_a_worker_is_said(
    pool: str, workers: int, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    create = names.noting_idle_pool(Client.create_flow_run_from_deployment)
    asyncio.run(create(Client(workers), pool=pool))  # type: ignore[arg-type]
    assert (
        "nothing will run until one is started: make serve" in capsys.readouterr().err
    ) == warned


def test_the_hook_acts_for_one_command_only(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PrefectClient.read_deployment_by_name
    for words, acts in (
        (["flow-run", "ls"], False),
        (["deployment", "inspect", "run"], False),
        (["--no-prompt", "deployment", "run", "x"], True),
    ):
        monkeypatch.setattr(PrefectClient, "read_deployment_by_name", before)
        monkeypatch.setattr(
            PrefectClient,
            "create_flow_run_from_deployment",
            PrefectClient.create_flow_run_from_deployment,
        )
        monkeypatch.setattr(sys, "argv", ["prefect", *words])
        names.setup_environment(ctx=SimpleNamespace(api_url="http://there/api"))  # type: ignore[arg-type]
        assert (PrefectClient.read_deployment_by_name is not before) == acts, words


def test_a_taken_port_names_the_setting() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(
            UserError, match=f"port {port} is taken by something else .*GPT1_MLFLOW_PORT=1"
        ):
            refuse_taken(port, "GPT1_MLFLOW_PORT=1")


@pytest.mark.parametrize(
    "url", ["http://10.1.2.3:4200/api", "https://127.0.0.1:4200/api", "http://127.0.0.1:4200"]
)
def test_a_server_is_started_on_this_machine_only(url: str) -> None:
    assert own_address("http://localhost:4210/api") == ("127.0.0.1", 4210)
    with pytest.raises(UserError, match=r"set PREFECT_API_URL in \.env"):
        own_address(url)


def test_a_part_that_keeps_dying_ends_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    part = ServiceProgram(
        "server", [sys.executable, "-c", "print('no room'); raise SystemExit(3)"], {}, lambda: True
    )
    part.start("test")
    for _ in range(3):
        assert part.process is not None
        part.process.wait()
        assert part.died()
        part.start_again("test", said.append)
    assert part.process is not None
    part.process.wait()
    assert (
        said
        == ["server ended by itself (status 3); started again; its log: data/logs/serve/server.log"]
        * 3
    )
    with pytest.raises(UserError, match=r"server ended again, 3 times within a minute: .*no room"):
        part.start_again("test", said.append)
