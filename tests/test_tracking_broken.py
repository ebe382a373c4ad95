"""MLflow that is not there, never answers or is broken: one line, and nothing waits for it."""

import os
import socket
import time
from pathlib import Path

import made_results
import pytest

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.tracking import live
from gpt1.tracking.address import problem
from gpt1.tracking.log import log_path, read_log
from gpt1.tracking.sync import sync

pytestmark = pytest.mark.slow

CURVE = log_path("pretrain", "transformer/seed-0")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    made_results.enter(tmp_path, monkeypatch)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def silent_port():
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield server.getsockname()[1]


def train_live(monkeypatch, close_seconds: float) -> float:
    """Seconds that a stage of thousand points takes, its closing included."""
    monkeypatch.setattr(live, "LIVE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(live, "CLOSE_SECONDS", close_seconds)
    began = time.monotonic()
    tracker = made_results.begin()
    for update in range(1000):
        tracker.log(update, {"loss": 1.0})
    assert time.monotonic() - began < 2
    tracker.close("FINISHED")
    assert len(read_log(CURVE)[1]) == 1000
    return time.monotonic() - began


@pytest.mark.parametrize("where", ["closed", "corrupt file", "corrupt inside"])
def test_a_broken_mlflow_warns_once_and_stops_nothing(where, closed_port, monkeypatch, capfd):
    if where == "closed":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://someone:hunter2@127.0.0.1:{closed_port}")
    else:
        Path("mlflow.db").write_bytes(
            (b"SQLite format 3\0" if where == "corrupt inside" else b"") + os.urandom(8192)
        )
    train_live(monkeypatch, close_seconds=40)
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert len(said.strip().splitlines()) == 1
    made_results.write_pretraining()
    began = time.monotonic()
    with pytest.raises(UserError, match=r"MLflow .*gpt1 sync") as caught:
        sync(read_params())
    assert time.monotonic() - began < 20
    assert "hunter2" not in said + str(caught.value)
    assert "someone" not in said + str(caught.value)


@pytest.mark.parametrize(
    ("address", "said", "line"),
    [
        ("http://me:a@host", "No module named 'database'", "No module named 'database'"),
        (
            "http://me:p%40ss@host",
            "me:p%40ss@host says p@ss is wrong",
            "***@host says *** is wrong",
        ),
        ("http://me:word@host", "http://me:word@host/api: word", "http://***@host/api: ***"),
    ],
)
def test_a_secret_is_blanked_and_nothing_else(address, said, line, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert problem(OSError(said)) == f"MLflow at http://***@host does not work ({line})"


def test_a_server_that_never_answers_is_not_waited_for(silent_port, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent_port}")
    assert train_live(monkeypatch, close_seconds=1) < 5
    said = capfd.readouterr().err
    assert said.count("warning:") == 1
    assert "gpt1 sync" in said


def test_a_broken_result_is_one_line():
    made_results.write_pretraining()
    Path("data/pretrain/transformer/seed-0/curve.jsonl").write_text('{"update": 1\n')
    with pytest.raises(UserError, match=r"data/.*dvc repro"):
        sync(read_params())
