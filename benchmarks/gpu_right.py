"""For gpu.py: the parts that ask whether a GPU is right; each raises RuntimeError where it is not."""

import json
import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up_run
from gpu_made import prepared, started, this_machine
from our_step import named_size, our_step
from side_by_side import output_of

from gpt1.model.weights import read_tensors

UPDATES = {"117m": 240, "4m": 400, "1m": 400, "tiny": 120}  # of a resumed pre-training
AGREE_UPDATES = 20
MOST_APART = {"fp32": 1e-5, "bf16": 3e-3}  # losses of two devices, relative


def tests(device: str, _size: str, _folder: Path, _seconds: float, _shards: str) -> Any:
    """tests/test_gpu.py; without a GPU a rehearsal, in which nothing is compiled."""
    own = ["-k", "not compiled"] if device == "cpu" else []
    os.environ["GPT1_REHEARSE"] = str(int(device == "cpu"))
    return passed(*own, "tests/test_gpu.py")


def passed(*own: str) -> dict[str, int]:
    """How many tests passed and how many were skipped."""
    command = ["-m", "pytest", "-x", "-q", "--noconftest", "--override-ini=addopts=", *own]
    said = output_of(command, None)
    counted = {what: int(n) for n, what in re.findall(r"(\d+) (passed|skipped)", said)}
    return {"passed": 0, "skipped": 0} | counted


def agree(device: str, size: str, _folder: Path, _seconds: float, _shards: str) -> Any:
    """Losses of the same updates by this device and the CPU's engine; without dropout, of which
    fused attention draws its own.
    """
    return agreement(device, size, 0.0, False)


def agreement(device: str, size: str, dropout: float, kernels: bool) -> dict[str, Any]:
    """The same in float32, not compiled, and in bf16 as a run has it, with our kernels or not."""
    named, found = "tiny" if size == "tiny" else "1m", dict[str, Any]()
    for precision, compiled in (("fp32", False), ("bf16", device == "cuda")):
        chosen = named_size(named, 8, None, precision, dropout)
        machine = replace(this_machine(device), compiled=compiled, kernels=kernels)
        ours = our_step(chosen, chosen.network(), machine, False)
        here = replace(machine, device="cpu", compiled=False, kernels=False)
        plain = our_step(chosen, chosen.network(), here, False)
        losses = [(ours.take()["loss"], plain.take()["loss"]) for _ in range(AGREE_UPDATES)]
        apart = max(abs(a - b) / b for a, b in losses)
        found[precision] = {"updates": AGREE_UPDATES, "apart": apart, **ours.chosen}
        if apart > MOST_APART[precision]:
            raise RuntimeError(
                f"{precision}: losses of {device} and CPU are apart by {apart:.1e}, expected at"
                f" most {MOST_APART[precision]}: {losses}"
            )
    return found


def processes(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """Two processes that share this device by gloo, at ZeRO stage 0 and 1, against one: the curve's
    losses.
    """
    size = "tiny" if size == "tiny" else "1m"
    settings = {"GPT1_DEVICE": device, "GPT1_ATTENTION": "reference", "GPT1_COMPILE": "0"}
    own = ("pretrain.updates=20", "pretrain.heldout_updates=20", "pretrain.log_updates=1")
    prepared(folder, size, device, 100_000, *own, "pretrain.precision=fp32")
    found, curves = dict[str, float](), []
    for count, stage in (("1", "0"), ("2", "0"), ("2", "1")):
        two = {"GPT1_PROCESSES": count, "GPT1_BACKEND": "gloo", "GPT1_ZERO_STAGE": stage}
        made_up_run.pretrain(folder, settings | two)
        lines = (folder / made_up_run.OUT / "curve.jsonl").read_text().splitlines()
        curves.append([point["loss"] for point in map(json.loads, lines) if "loss" in point])
        apart = max(abs(a - b) / b for a, b in zip(curves[-1], curves[0], strict=True))
        found[f"{count} processes, stage {stage}"] = apart
        if apart > MOST_APART["fp32"]:
            raise RuntimeError(f"{count} processes at stage {stage} are apart by {apart:.1e}")
    return found


def resume(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """The stage's weights after an undisturbed run, and after one that was killed and went on; with
    its sums in one order, so to the bit.
    """
    settings = {"GPT1_DEVICE": device, "GPT1_PROCESSES": "1", "GPT1_DETERMINISTIC": "1"}
    settings |= {"GPT1_COMPILE": "1"} if device == "cuda" else {}
    tokens = 2_000_000 if device == "cuda" else 100_000
    own = (f"pretrain.updates={UPDATES[size]}", f"pretrain.heldout_updates={UPDATES[size]}")
    prepared(folder, size, device, tokens, *own, "pretrain.checkpoint_minutes=0.02")
    undisturbed = made_up_run.pretrain(folder, settings)
    _, expected = read_tensors(folder / made_up_run.OUT / "weights.safetensors")
    shutil.rmtree(folder / made_up_run.OUT)
    killed_at = kill_after_a_checkpoint(folder, settings)
    resumed = made_up_run.pretrain(folder, settings)
    _, found = read_tensors(folder / made_up_run.OUT / "weights.safetensors")
    apart = max(float((found[name] - expected[name]).abs().max()) for name in expected)
    if undisturbed["sha256"] != resumed["sha256"]:
        raise RuntimeError(f"killed at {killed_at} and gone on: weights apart by {apart:.1e}")
    return {
        "updates": UPDATES[size],
        "killed_after_checkpoint_of_update": killed_at,
        "tokens_per_second": undisturbed["tokens_per_second"],
        "stage_seconds": undisturbed["stage_seconds"],
    }


def kill_after_a_checkpoint(folder: Path, settings: dict[str, str]) -> int | None:
    """Start the stage and kill it and its children a moment after its first checkpoint; that one's
    update, None if the run was faster.
    """
    child = started(folder, settings)
    newest = None
    while child.poll() is None and newest is None:
        newest = max(folder.glob("data/checkpoints/pretrain-transformer-*/update-*"), default=None)
        time.sleep(0.05)
    time.sleep(0.3)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    return int(newest.name.rpartition("-")[2]) if newest else None
