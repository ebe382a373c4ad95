"""The processor: its name, and how many cores this process may use. Results depend on it only
through rounding by the number of threads, which is recorded.
"""

import os
import platform
import re
from pathlib import Path

INSTRUCTION_SETS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}  # the widest first
CONTAINER_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Return how many cores this process may use, at least one: those it is bound to, or the quota
    of CPU time of a container ("150000 100000": microseconds in each period).
    """
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = CONTAINER_QUOTA.read_text(encoding="ascii") if CONTAINER_QUOTA.is_file() else "max"
    share, _, period = quota.partition(" ")
    return bound if share.strip() == "max" else min(bound, max(1, int(share) // int(period)))


def cpu_name() -> str:
    """Return the processor's name as the system gives it, with the widest of its instruction sets
    for which torch has kernels: the bits of a result depend on that.
    """
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    named = re.search(r"^model name\s*:\s*(.*\S)", text, re.MULTILINE)
    name = named[1] if named else platform.processor() or platform.machine()
    sets = [words for flag, words in INSTRUCTION_SETS.items() if f" {flag}" in text]
    return f"{name} ({sets[0]})" if sets else name
