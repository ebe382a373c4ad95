"""What a training says of its progress where stderr is no terminal, and notes of the machine."""

import json
import time

import pytest
import torch

from gpt1.train import outputs
from gpt1.train.outputs import MachineLog, ProgressBar
from gpt1.train.speed import NOT_COMPILED


@pytest.mark.parametrize("lacks", ["", NOT_COMPILED])
def test_every_line_says_why_a_training_is_slower_than_it_could_be(
    lacks, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outputs, "QUIET_SECONDS", -1.0)
    bar = ProgressBar("pretrain transformer", 4, 0, True, lacks)
    bar.advance(1, 100, 3.25)
    bar.close()
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("pretrain transformer: update 1 of 4, loss 3.250, ")
    assert f" tokens/s{', ' if lacks else ''}{lacks}, " in line


def noted(path, updates=1):
    """The lines of a machine's log once there are as many; a thread writes them."""
    for _ in range(100):
        if path.is_file() and path.read_text().count("\n") == updates:
            return [json.loads(line) for line in path.read_text().splitlines()]
        time.sleep(0.1)
    raise AssertionError(f"{path} did not get {updates} lines")


def test_the_machine_is_noted_as_mlflow_itself_would_note_it(tmp_path, monkeypatch):
    from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
    from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
    from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

    monkeypatch.setattr(outputs, "FIRST_SECONDS", 0.2)
    path = tmp_path / "pretrain" / "transformer-machine.jsonl"
    monitors, log = (CPUMonitor(), DiskMonitor(), NetworkMonitor()), MachineLog(path)
    log.advance(1, 100)
    assert not path.exists(), "too soon"
    until = time.monotonic() + 0.25
    while time.monotonic() < until:
        pass
    log.advance(2, 100)
    log.advance(3, 100)  # the next line is a minute away
    (line,) = noted(path)
    theirs = {}
    for monitor in monitors:
        monitor.collect_metrics()
        theirs |= monitor.aggregate_metrics()
    ours = {"time", "update", "tokens_per_second", "process_memory_megabytes"}
    by_gpu = {key for key in line if key.startswith("gpu_")}
    assert line.keys() - ours - by_gpu == theirs.keys() - {"disk_usage_megabytes"}
    assert line["update"] == 2
    assert 0 < line["tokens_per_second"] < 1000
    assert 0 < line["cpu_utilization_percentage"] <= 100
    assert line["process_memory_megabytes"] < line["system_memory_usage_megabytes"]
    used = "system_memory_usage_percentage"
    assert line[used] == pytest.approx(theirs[used], abs=20), "of a hundred"
    assert 0 <= line["network_receive_megabytes"] < 1000, "since the start of the training"
    assert bool(by_gpu) == torch.cuda.is_initialized()


def test_a_machine_log_that_cannot_be_written_disturbs_nobody(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(outputs, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(outputs, "MACHINE_SECONDS", 0.0)
    (tmp_path / "file").write_text("no folder")
    log = MachineLog(tmp_path / "file" / "transformer-machine.jsonl")
    log.advance(1, 100)
    log.path = path = tmp_path / "transformer-machine.jsonl"
    log.advance(2, 100)
    assert [line["update"] for line in noted(path)] == [2]
    assert not any(capfd.readouterr())
