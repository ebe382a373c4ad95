"""The processor, its name and how many cores there are for this process; no result depends on it
but for rounding by the number of threads, which is recorded.
"""

import os
import platform
from pathlib import Path

CONTAINER_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Cores that this process may use, at least one: those it is bound to, or as many as a
    container's quota of CPU time makes ("150000 100000": microseconds in each period).
    """
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = CONTAINER_QUOTA.read_text(encoding="ascii") if CONTAINER_QUOTA.is_file() else "max"
    share, _, period = quota.partition(" ")
    return bound if share.strip() == "max" else min(bound, max(1, int(share) // int(period)))


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
