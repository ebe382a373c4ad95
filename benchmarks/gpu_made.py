"""For gpu.py's parts: the machine, and a folder in which the stage `pretrain` runs."""

import os
import subprocess
from pathlib import Path

import made_up_run
from side_by_side import machine_facts

from gpt1.train import launch
from gpt1.train.launch import Machine

BATCHES = {"117m": 64, "4m": 256, "1m": 256, "tiny": 8}


def this_machine(device: str, **settings: str) -> Machine:
    """One process on that device, ready to train."""
    os.environ |= {"GPT1_DEVICE": device, "GPT1_PROCESSES": "1", **settings}
    machine = launch.read_machine()
    launch.prepare(machine)
    return machine


def precision_on(device: str) -> str:
    """bf16 but where the CPU would only emulate it."""
    return "fp32" if device == "cpu" and machine_facts()["cpu_bf16"] == "emulated" else "bf16"


def prepared(folder: Path, size: str, device: str, tokens: int, *own: str) -> None:
    """A folder in which the stage `pretrain` runs."""
    made_up_run.prepare(
        folder,
        size,
        tokens,
        [
            "pretrain.epochs=null",
            f"pretrain.batch_size={BATCHES[size]}",
            "pretrain.warmup_updates=10",
            f"pretrain.precision={precision_on(device)}",
            "pretrain.heldout_windows=64",
            "pretrain.dropout=0.1",
            *own,
        ],
    )


def started(folder: Path, settings: dict[str, str]) -> "subprocess.Popen[str]":
    """The stage `pretrain`, begun."""
    return subprocess.Popen(
        made_up_run.COMMAND,
        cwd=folder,
        env=made_up_run.environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
