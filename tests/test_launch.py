"""Launching: what the environment says, and how many rows a GPU has room for."""

import pytest
import torch
from made_data import paper

from gpt1.base.errors import UserError
from gpt1.base.machine import usable_gpus
from gpt1.model.gpt import Decoder
from gpt1.train.launch import decide, read_machine
from gpt1.train.speed import rows_that_fit, token_bytes

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}


def test_one_process_on_a_cpu_and_one_for_each_gpu():
    alone = decide({}, 0, 8)
    assert (alone.device, alone.processes, alone.threads, alone.launched) == ("cpu", 1, 8, False)
    assert decide({"GPT1_PROCESSES": "2"}, 0, 8).threads == 4
    gpus = decide({}, 4, 16)
    assert (gpus.device, gpus.processes, gpus.threads) == ("cuda", 4, 4)
    assert decide({"GPT1_DEVICE": "cpu"}, 4, 16).processes == 1


def test_torchrun_and_the_launcher_of_deepspeed_are_understood():
    for there in ({}, {"GPT1_PROCESSES": "3"}):
        machine = decide(TORCHRUN | there, 0, 8)
        assert machine.launched
        assert (machine.processes, machine.rank, machine.local_rank) == (8, 5, 1)
        assert machine.threads == 2
    theirs = {name: value for name, value in TORCHRUN.items() if name != "LOCAL_WORLD_SIZE"}
    assert decide(theirs | {"LOCAL_SIZE": "4"}, 0, 8).threads == 2


def test_settings_that_make_no_sense():
    for settings, gpus, match in [
        ({"GPT1_DEVICE": "tpu"}, 1, "GPT1_DEVICE: expected cpu or cuda, found 'tpu'"),
        ({"GPT1_DEVICE": "cuda"}, 0, "GPT1_DEVICE: expected a GPU that torch can use, found none"),
        ({"GPT1_PROCESSES": "3"}, 2, "expected at most one process for each of the 2 GPUs"),
        ({"GPT1_THREADS": "0"}, 0, "GPT1_THREADS: expected a whole number above 0, found '0'"),
        ({"GPT1_COMPILE": "yes"}, 0, "GPT1_COMPILE: expected 0 or 1, found 'yes'"),
    ]:
        with pytest.raises(UserError, match=match):
            decide(settings, gpus, 4)


def test_gpus_that_torch_cannot_use_are_named(monkeypatch, capfd):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    if not usable_gpus():
        assert "can use none of the GPUs 0, 1" in capfd.readouterr().err
    monkeypatch.setenv("GPT1_DEVICE", "cpu")
    assert read_machine().device == "cpu"
    assert not capfd.readouterr().err


def test_the_machine_is_read_from_env_files_and_the_environment_wins(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("GPT1_DEVICE=cpu\nGPT1_PROCESSES=3\nGPT1_MICRO_BATCH=5\n")
    monkeypatch.setenv("GPT1_PROCESSES", "2")
    monkeypatch.delenv("GPT1_DEVICE", raising=False)
    machine = read_machine()
    assert (machine.device, machine.processes, machine.micro_batch_for(512)) == ("cpu", 2, 5)
    assert decide({}, 0, 1).micro_batch_for(512) == 8
    assert decide({"RANK": "0"}, 0, 1).processes == 1


def test_rows_that_fit_a_gpu_by_hand():
    network = Decoder(paper().model, 40_478, torch.Generator())
    layer = 30 * 768 + 4 * 3072 + 12 * 12 * 512
    assert token_bytes(network) == 12 * layer == pytest.approx(1.31e6, rel=2e-3)
    for gigabytes, rows, tokens, fitting in (
        (85.5, 64, 512, 64),  # 43 GB in .9 x 85.5 - 5.2
        (25.8, 64, 512, 16),  # 32 would be 21.4 GB in 18
        (8.5, 64, 512, 2),
        (25.8, 32, 4 * 512, 4),  # RACE
        (25.8, 5, 20_000, 1),
    ):
        assert rows_that_fit(network, rows, tokens, 1e9 * gigabytes) == fitting
