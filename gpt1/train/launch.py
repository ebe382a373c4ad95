"""One process or many, on which device, with how many threads: read from the machine and the
environment, never from params.yaml.

Nothing here may change a result: the global batch is fixed, and micro-batches and processes only
share it out.
"""

import math
import os
import platform
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dotenv import dotenv_values

from gpt1.base.cores import cores, cpu_name, free_port
from gpt1.base.errors import UserError
from gpt1.train.launchers import read_hostfile, torch_variables
from gpt1.train.supervisor import join, run_together

MICRO_BATCH_TOKENS = {
    "cpu": 4096,
    "cuda": 65536,
}  # tokens that go through the network at once where GPT1_MICRO_BATCH is not set
# From how much work on compiling pays: blocks take half a minute the first time, and save a quarter
# of the time where a processor has a unit for matrices, so that most of a step is what lies between
# products. Where vector instructions multiply bfloat16 numbers (AVX512), compiled blocks take 1.3
# to 1.5 times as long as torch's operators, and masks as long. On others (AVX2) blocks take as
# long, and masks less.
COMPILING_PAYS_FLOP = {"cpu": 1e14, "cuda": 2e16}
FLOP_A_PARAMETER = 6  # and token: forward and backward (Kaplan et al. 2020)
# after which a process that gives no sign of life counts as hung, where GPT1_SILENT_SECONDS is not
# set
SILENT_SECONDS = 120
# variables that processes on other hosts are given, beside those that DeepSpeed's launcher exports
# itself (MLFLOW*, NCCL*, PYTHON*, UCX*)
EXPORTED = (
    "GPT1_",
    "GLOO_",
    "TORCHINDUCTOR_",
    "TORCH_NCCL_",
    "CXX",
    "CUBLAS_WORKSPACE_CONFIG",
    "DEEPSPEED_",
)
Value = TypeVar("Value", bool, int, str)


@dataclass(frozen=True)
class Machine:
    """What this process runs on. `rank` counts all processes of the run, `local_rank` those of this
    host (and its GPUs).

    `zero_stage` is None where the model's size is to decide, `compiled` where the amount of work
    is, `hostfile` where there is but this host, or a launcher did its work.
    """

    device: str
    processes: int
    rank: int
    local_rank: int
    threads: int
    micro_batch: int | None
    launched: bool
    accept_checkpoint: bool
    zero_stage: int | None = None
    hostfile: Path | None = None
    hosts: int = 1
    silent_seconds: int = SILENT_SECONDS
    compiled: bool | None = None
    reference_attention: bool = False
    deepspeed: bool = False
    deterministic: bool = False
    backend: str = "gloo"

    def micro_batch_for(self, tokens_per_row: int) -> int:
        """Rows that go through the network at once: GPT1_MICRO_BATCH, or as many as make
        MICRO_BATCH_TOKENS, at least one.
        """
        return self.micro_batch or max(1, MICRO_BATCH_TOKENS[self.device] // tokens_per_row)


def _whole_number(settings: Mapping[str, str | None], name: str) -> int | None:
    value = settings.get(name)
    if value is None or value == "":
        return None
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise UserError(
            f"{name}: expected a whole number above 0, found {value!r}; set it in the environment"
            " or in .env"
        )
    return int(value)


def _choice(
    settings: Mapping[str, str | None], name: str, choices: Mapping[str, Value]
) -> Value | None:
    value = settings.get(name)
    if value and value not in choices:
        raise UserError(
            f"{name}: expected {' or '.join(choices)}, found {value!r}; set it in the environment"
            " or in .env"
        )
    return choices[value] if value else None


def read_machine(over_hosts: bool = False) -> Machine:
    """What the environment (or else `.env`) and the machine say; the environment alone, of what
    launchers set. See `decide`.
    """
    settings = {**dotenv_values(".env"), **os.environ}
    device = settings.get("GPT1_DEVICE") or _best_device()
    launcher, devices = torch_variables(os.environ), _device_count(device)
    return decide(settings, launcher, device, devices, cores(), over_hosts)


def decide(
    settings: Mapping[str, str | None],
    launcher: Mapping[str, str],
    device: str,
    devices: int,
    cores_: int,
    over_hosts: bool = False,
) -> Machine:
    """The machine of these settings, a launcher's variables (none: {}), and so many devices (0: not
    to be had) and cores.

    GPT1_DEVICE cpu or cuda (default: cuda where torch sees one), GPT1_PROCESSES (default: one for
    each GPU, one on a CPU), GPT1_HOSTFILE instead for what may run `over_hosts`, GPT1_THREADS
    (default: the cores of this process, shared among processes), GPT1_MICRO_BATCH (rows),
    GPT1_ZERO_STAGE 0 or 1, GPT1_SILENT_SECONDS, GPT1_ACCEPT_CHECKPOINT=1, GPT1_COMPILE 0 or 1,
    GPT1_ATTENTION fused or reference (on a GPU), GPT1_DEEPSPEED=1 (for one process too),
    GPT1_DETERMINISTIC=1 (on a GPU), GPT1_BACKEND nccl (default on GPUs) or gloo.
    What a launcher says of processes holds. Raises UserError for values that make no sense.
    """
    if device not in MICRO_BATCH_TOKENS:
        raise UserError(
            f"GPT1_DEVICE: expected cpu or cuda, found {device!r}; set it in the environment or in"
            " .env"
        )
    if devices == 0:
        raise UserError(
            "GPT1_DEVICE: expected a GPU that torch can use, found none; set GPT1_DEVICE=cpu or"
            " install a CUDA build of torch"
        )
    backend = _choice(settings, "GPT1_BACKEND", {"nccl": "nccl", "gloo": "gloo"}) or (
        "nccl" if device == "cuda" else "gloo"
    )
    if backend == "nccl" and device == "cpu":
        raise UserError(
            "GPT1_BACKEND: expected gloo for processes of a CPU, found 'nccl'; unset it"
        )
    named_hosts = (
        Path(str(settings["GPT1_HOSTFILE"]))
        if over_hosts and settings.get("GPT1_HOSTFILE") and not launcher
        else None
    )
    if launcher:
        names = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "GROUP_WORLD_SIZE")
        processes, here, local_rank, hosts = (int(launcher[name]) for name in names)
    elif named_hosts is not None:
        slots = read_hostfile(named_hosts)
        processes, here, local_rank, hosts = sum(slots.values()), max(slots.values()), 0, len(slots)
        named_hosts = None if slots.keys() <= {"localhost", socket.gethostname()} else named_hosts
    else:
        processes = here = _whole_number(settings, "GPT1_PROCESSES") or devices
        local_rank, hosts = 0, 1
        if backend == "nccl" and processes > devices:
            raise UserError(
                f"GPT1_PROCESSES: expected at most one process for each of the {devices} GPUs,"
                f" found {processes}; lower it, or set GPT1_BACKEND=gloo, by which several share"
                " one, slowly"
            )
    return Machine(
        device,
        processes,
        int(launcher.get("RANK", "0")),
        local_rank % devices if device == "cuda" else local_rank,
        _whole_number(settings, "GPT1_THREADS") or max(1, cores_ // here),
        _whole_number(settings, "GPT1_MICRO_BATCH"),
        bool(launcher),
        settings.get("GPT1_ACCEPT_CHECKPOINT") == "1",
        _choice(settings, "GPT1_ZERO_STAGE", {"0": 0, "1": 1}),
        named_hosts,
        hosts,
        _whole_number(settings, "GPT1_SILENT_SECONDS") or SILENT_SECONDS,
        _choice(settings, "GPT1_COMPILE", {"0": False, "1": True}),
        bool(_choice(settings, "GPT1_ATTENTION", {"fused": False, "reference": True})),
        bool(_choice(settings, "GPT1_DEEPSPEED", {"0": False, "1": True})),
        bool(_choice(settings, "GPT1_DETERMINISTIC", {"0": False, "1": True})),
        backend,
    )


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _device_count(device: str) -> int:
    """GPUs that torch sees, 0 where it can use none; a CPU counts as one."""
    if device != "cuda":
        return 1
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def prepare(machine: Machine) -> None:
    """Set this process's threads, keep fp32 products of a GPU in fp32 (cuDNN's LSTM would take
    TF32), and its sums in one order where GPT1_DETERMINISTIC asks it; tell glibc to keep freed
    memory: a step asks for the same large blocks again and again.

    One of several processes then knows where the others are, and beats for its launcher.
    """
    import torch

    os.environ.update(torch_variables(os.environ))
    join()
    torch.set_num_threads(machine.threads)
    torch.backends.cudnn.allow_tf32 = False
    if machine.deterministic and machine.device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read with the first product
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if platform.libc_ver()[0] == "glibc":
        import ctypes

        mmap_max, trim_threshold, top_pad = -4, -1, -2
        libc = ctypes.CDLL(None)
        for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**26)):
            libc.mallopt(option, value)


def spread(machine: Machine, module: str, *arguments: str) -> bool:
    """Where several processes are wanted and no launcher made them: run `python -m module
    arguments` in each.

    Returns False where this process is to do the work itself, True when all have succeeded;
    otherwise ends this process, see `run_together`. Processes on several hosts are started and
    watched by DeepSpeed's launcher. Raises UserError where that needs more.
    """
    if machine.launched or machine.processes == 1:
        return False
    if machine.hostfile is not None:
        _spread_over_hosts(machine.hostfile, {"DS_ACCELERATOR": machine.device}, module, *arguments)
        return True
    shared = {
        **os.environ,
        "WORLD_SIZE": str(machine.processes),
        "LOCAL_WORLD_SIZE": str(machine.processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": str(machine.threads),
    }
    run_together(
        [sys.executable, "-m", module, *arguments],
        [
            shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            for rank in range(machine.processes)
        ],
        machine.silent_seconds,
    )
    return True


def _spread_over_hosts(
    hostfile: Path, own: Mapping[str, str], module: str, *arguments: str
) -> None:
    """By DeepSpeed's launcher, by way of pdsh and ssh; our settings hold on all hosts, which need
    this folder at the same place.
    """
    if shutil.which("pdsh") is None:
        raise UserError(
            "GPT1_HOSTFILE: expected the command pdsh, by which DeepSpeed reaches other hosts,"
            " found none; install pdsh, or start the processes by srun, mpirun or torchrun"
        )
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(EXPORTED) and name != "GPT1_HOSTFILE"
    }
    with tempfile.NamedTemporaryFile("w", suffix=".deepspeed_env") as exported:
        exported.writelines(f"{name}={value}\n" for name, value in {**settings, **own}.items())
        exported.flush()
        run_together(
            [
                sys.executable,
                "-m",
                "deepspeed.launcher.runner",
                "--hostfile",
                str(hostfile),
                "--master_port",
                str(free_port()),
                "--no_local_rank",
                "--module",
                module,
                *arguments,
            ],
            [{**os.environ, **own, "DS_ENV_FILE": exported.name}],
            math.inf,
        )


def peak_memory_bytes() -> int:
    """Most memory that this process has held. Linux's getrusage would count what its parent held
    too.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        return next(
            int(line.split()[1]) * 1024
            for line in status.read_text(encoding="ascii").splitlines()
            if line.startswith("VmHWM")
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def facts(machine: Machine) -> dict[str, Any]:
    """What a log says beside every time: processor, device, threads, processes, hosts, torch, peak
    memory of this process so far.
    """
    import torch

    return {
        "cpu": cpu_name(),
        "device": torch.cuda.get_device_name() if machine.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "processes": machine.processes,
        "hosts": machine.hosts,
        "torch": torch.__version__,
        "peak_memory_bytes": peak_memory_bytes(),
    }
