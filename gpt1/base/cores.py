"""The processor, its name and how many cores there are for this process, what GPUs say of
themselves, a port that is free; no result depends on it but for rounding by the number of threads,
which is recorded.
"""

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

CONTAINER_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Cores that this process may use: those it is bound to, or as many as a container's quota of
    CPU time makes, at least one.
    """
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return (
        min(bound, quota_cores(CONTAINER_QUOTA.read_text(encoding="ascii")))
        if CONTAINER_QUOTA.is_file()
        else bound
    )


def quota_cores(quota: str) -> int:
    """Whole cores in a control group's `cpu.max`, as "150000 100000" (microseconds in each period;
    max: no limit), at least one.
    """
    share, _, period = quota.partition(" ")
    return sys.maxsize if share == "max" else max(1, int(share) // int(period))


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )


def nvidia_smi(field: str, gpus: Sequence[str] = ()) -> list[float]:
    """A number of each GPU, or of those with these identifiers, as nvidia-smi gives it (MiB,
    watts); empty where there is none. Not by torch, which takes seconds.
    """
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    command += [f"--id={','.join(gpus)}"] if gpus else []
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=10)
        return [float(line) for line in done.stdout.split("\n") if line.strip()]
    return []


def free_port() -> int:
    """A port of this host that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
