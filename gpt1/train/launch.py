"""Processes, device and threads. They change rounding and dropout's masks, not the mathematics."""

import logging
import os
import platform
import sys
from dataclasses import dataclass
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.interrupts import LIBC, end_with_parent
from gpt1.base.machine import (
    Settings,
    choice,
    cores,
    cpu_name,
    settings,
    usable_gpus,
    whole_number,
)

# tokens that go through the network at once where GPT1_MICRO_BATCH is not set; on a GPU those of
# an evaluation, which keeps nothing (of a training: gpt1.train.speed.rows_that_fit)
MICRO_BATCH_TOKENS = {"cpu": 4096, "cuda": 16384}


@dataclass(frozen=True)
class Machine:
    """What this process runs on."""

    device: str
    threads: int
    processes: int = 1
    rank: int = 0  # among the processes of the run
    local_rank: int = 0  # among those of this host
    launched: bool = False  # by a launcher
    micro_batch: int | None = None
    compiled: bool | None = None  # None: the amount of work decides
    deterministic: bool = False

    def micro_batch_for(self, tokens_per_row: int) -> int:
        """Return GPT1_MICRO_BATCH, or as many rows as make MICRO_BATCH_TOKENS."""
        return self.micro_batch or max(1, MICRO_BATCH_TOKENS[self.device] // tokens_per_row)


def read_machine() -> Machine:
    """Read the machine from the environment, else from `.env`."""
    given = settings()
    gpus = 0 if given.get("GPT1_DEVICE") == "cpu" else usable_gpus()
    return decide(given, gpus, cores())


def decide(given: Settings, gpus: int, cores_: int) -> Machine:
    """Return the machine that these settings choose (docs/parameters.md); a launcher's come first.
    Raises UserError.
    """
    device = choice(given, "GPT1_DEVICE", "cpu", "cuda") or ("cuda" if gpus else "cpu")
    if device == "cuda" and not gpus:
        raise UserError(
            "GPT1_DEVICE: expected a GPU that torch can use, found none; set GPT1_DEVICE=cpu or"
            " install a CUDA build of torch"
        )
    # torchrun and DeepSpeed's launcher set RANK for every process.
    launched = "RANK" in given
    if launched:
        processes = int(given.get("WORLD_SIZE") or 1)
        local_processes = int(given.get("LOCAL_WORLD_SIZE") or given.get("LOCAL_SIZE") or processes)
    else:
        processes = local_processes = whole_number(given, "GPT1_PROCESSES") or (
            gpus if device == "cuda" else 1
        )
    if device == "cuda" and local_processes > gpus:
        raise UserError(
            f"GPT1_PROCESSES: expected at most one process for each of the {gpus} GPUs, found"
            f" {local_processes}; lower it"
        )
    compiled = choice(given, "GPT1_COMPILE", "0", "1")
    return Machine(
        device,
        whole_number(given, "GPT1_THREADS") or max(1, cores_ // local_processes),
        processes,
        int(given.get("RANK") or 0),
        int(given.get("LOCAL_RANK") or 0),
        launched,
        whole_number(given, "GPT1_MICRO_BATCH"),
        None if compiled is None else compiled == "1",
        choice(given, "GPT1_DETERMINISTIC", "0", "1") == "1",
    )


def prepare(machine: Machine) -> None:
    """Set threads and how a GPU computes. A launched process ends with its launcher."""
    import torch

    if machine.launched:
        end_with_parent()
    # Threads change the order of sums, and so the last digit: their number is recorded.
    torch.set_num_threads(machine.threads)
    torch.backends.cudnn.allow_tf32 = False  # or cuDNN's LSTM would take it for fp32 products
    if machine.deterministic and machine.device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read with the first product
        torch.use_deterministic_algorithms(True)
    if platform.libc_ver()[0] == "glibc":  # have it keep freed memory for the next step
        mmap_max, trim_threshold, top_pad = -4, -1, -2
        for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**26)):
            LIBC.mallopt(option, value)


def run_in_all_processes(machine: Machine, *arguments: str) -> bool:
    """Run `python -m gpt1.stages arguments` in every process; return True when all have succeeded,
    False where this one is to do the work itself. Exits with the status of the first failure or
    signal.
    """
    if machine.launched or machine.processes == 1:
        return False
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.ERROR)  # torchrun's own words
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "110")  # seconds to save a checkpoint
    os.environ["OMP_NUM_THREADS"] = str(machine.threads)
    # A free port on this machine alone, and no restarts: a run goes on from its checkpoint.
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=machine.processes,
        run_id="gpt1",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        logs_specs=DefaultLogsSpecs(),
        max_restarts=0,
        monitor_interval=0.2,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "gpt1.stages", *arguments)
    except ChildFailedError as error:
        status = error.get_first_failure()[1].exitcode
        sys.exit(status if status > 0 else 128 - status)
    except SignalException as stopped:
        sys.exit(128 + stopped.sigval)
    return True


def facts(machine: Machine) -> dict[str, Any]:
    """Return processor, device, threads, processes and torch's version, for a log."""
    import torch

    return {
        "cpu": cpu_name(),
        "device": torch.cuda.get_device_name() if machine.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "processes": machine.processes,
        "torch": torch.__version__,
    }
