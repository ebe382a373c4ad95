"""One process or many, on which device, with how many threads: read from the machine and the environment, never from params.yaml.

Nothing here may change a result: the global batch is fixed, and micro-batches and processes only share it out.
"""

import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from dotenv import dotenv_values

from gpt1.cores import cores
from gpt1.errors import UserError

MICRO_BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}  # tokens that go through the network at once where GPT1_MICRO_BATCH is not set
TERMINATION_SECONDS = 30.0


@dataclass(frozen=True)
class Machine:
    """What this process runs on. `rank` counts all processes of the run, `local_rank` those of this host."""

    device: str
    processes: int
    rank: int
    local_rank: int
    threads: int
    micro_batch: int | None
    launched: bool
    accept_checkpoint: bool

    def micro_batch_for(self, tokens_per_row: int) -> int:
        """Rows that go through the network at once: GPT1_MICRO_BATCH, or as many as make MICRO_BATCH_TOKENS, at least one."""
        return self.micro_batch or max(1, MICRO_BATCH_TOKENS[self.device] // tokens_per_row)


def _whole_number(settings: Mapping[str, str | None], name: str) -> int | None:
    value = settings.get(name)
    if value is None or value == "":
        return None
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise UserError(f"{name}: expected a whole number above 0, found {value!r}; set it in the environment or in .env")
    return int(value)


def read_machine() -> Machine:
    """What the environment (or else `.env`) and the machine say.

    GPT1_DEVICE cpu or cuda (default: cuda where torch sees one), GPT1_PROCESSES (default: one for each GPU, one on a CPU),
    GPT1_THREADS (default: the cores of this process, shared among processes), GPT1_MICRO_BATCH (rows), GPT1_ACCEPT_CHECKPOINT=1.
    RANK, LOCAL_RANK and WORLD_SIZE, where set, come from a launcher and hold. Raises UserError for values that make no sense.
    """
    settings = {**dotenv_values(".env"), **os.environ}
    device = settings.get("GPT1_DEVICE") or _best_device()
    if device not in MICRO_BATCH_TOKENS:
        raise UserError(f"GPT1_DEVICE: expected cpu or cuda, found {device!r}; set it in the environment or in .env")
    if device == "cuda" and _best_device() != "cuda":
        raise UserError("GPT1_DEVICE: expected a GPU that torch can use, found none; set GPT1_DEVICE=cpu or install a CUDA build of torch")
    launched = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    processes = int(os.environ["WORLD_SIZE"]) if launched else _whole_number(settings, "GPT1_PROCESSES") or _device_count(device)
    on_this_host = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
    threads = _whole_number(settings, "GPT1_THREADS") or max(1, cores() // on_this_host)
    return Machine(device, processes, int(os.environ["RANK"]) if launched else 0, int(os.environ.get("LOCAL_RANK", "0")), threads,
                   _whole_number(settings, "GPT1_MICRO_BATCH"), launched, settings.get("GPT1_ACCEPT_CHECKPOINT") == "1")


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _device_count(device: str) -> int:
    import torch

    return max(1, torch.cuda.device_count()) if device == "cuda" else 1


def prepare(machine: Machine) -> None:
    """Set this process's threads, and tell glibc to keep freed memory: a step asks for the same large blocks again and again.

    On a CPU attention goes by plain matrix products: torch's fused kernel has a slow gradient there, and none at all with dropout.
    """
    import torch

    torch.set_num_threads(machine.threads)
    if machine.device == "cpu":
        torch.backends.cuda.enable_flash_sdp(False)  # for all its name, this one rules CPUs too
    if platform.libc_ver()[0] == "glibc":
        import ctypes

        mmap_max, trim_threshold, top_pad = -4, -1, -2
        libc = ctypes.CDLL(None)
        for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**26)):
            libc.mallopt(option, value)


def spread(machine: Machine, module: str, *arguments: str) -> bool:
    """Where several processes are wanted and no launcher made them: run `python -m module arguments` in each.

    Returns False where this process is to do the work itself, True when all have succeeded; otherwise ends this process with the status
    of the first that failed. Only the first process's stderr is shown, or the last line of another that failed by itself.
    """
    if machine.launched or machine.processes == 1:
        return False
    errors = [tempfile.TemporaryFile() for _ in range(machine.processes - 1)]  # noqa: SIM115 (open as long as the processes)
    shared = {**os.environ, "WORLD_SIZE": str(machine.processes), "LOCAL_WORLD_SIZE": str(machine.processes),
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": str(machine.threads)}
    children = [subprocess.Popen([sys.executable, "-m", module, *arguments], env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                                 stderr=errors[rank - 1] if rank else None) for rank in range(machine.processes)]

    def forward(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        failed = _wait(children)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failed is None:
        return True
    if failed:
        print(_last_line(errors[failed - 1]) or f"error: process {failed} of {machine.processes} ended without a word", file=sys.stderr)
    status = children[failed].returncode
    sys.exit(status if status > 0 else 128 - status)


def free_port() -> int:
    """A port of this host that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait(children: list["subprocess.Popen[bytes]"]) -> int | None:
    """Wait for all; end the others when one fails. Returns the rank that failed first (the first process where several did), or None."""
    while True:
        failed = [rank for rank, child in enumerate(children) if child.poll() not in (None, 0)]
        if failed:
            break
        if all(child.returncode == 0 for child in children):
            return None
        time.sleep(0.1)
    time.sleep(1.0)  # where all fail of one cause, let the first process say it
    failed = [rank for rank, child in enumerate(children) if child.poll() not in (None, 0)]
    deadline = time.monotonic() + TERMINATION_SECONDS
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return failed[0]


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor() or "unknown")


def facts(machine: Machine) -> dict[str, Any]:
    """What a log says beside every time: processor, device, threads, processes, torch, peak memory of this process so far."""
    import torch

    return {"cpu": cpu_name(), "device": torch.cuda.get_device_name() if machine.device == "cuda" else "cpu",
            "threads": machine.threads, "processes": machine.processes, "torch": torch.__version__,
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)}
