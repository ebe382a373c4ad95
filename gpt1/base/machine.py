"""Where a program runs: processor, cores, GPUs, settings, commit."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from dotenv import dotenv_values

from gpt1.base.errors import UserError

Settings = Mapping[str, str | None]


def machine() -> dict[str, str]:
    """Describe CPU, cores, GPU and versions in words."""
    gpu = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return {
        "cpu": cpu_name(),
        "cores": str(cores()),
        "gpu": ", ".join(gpu.splitlines()) or "none",
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
    }


def checkout(folder: Path) -> dict[str, str]:
    """Return a folder's git commit, and whether tracked files but params.yaml differ from it."""
    git = ("git", "-C", str(folder))
    commit = output(*git, "rev-parse", "HEAD") or "unknown"
    status = output(*git, "status", "--porcelain", "--branch", "-uno", "--", ":!params.yaml")
    edited = str("\n" in status).lower()  # below the line of the branch
    return {"git_commit": commit, "dirty": edited if status else "unknown"}


def output(*command: str) -> str:
    """Return a command's output, "" where it fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()


INSTRUCTION_SETS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}  # the widest first
CONTAINER_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "150000 100000": microseconds a period


def cores() -> int:
    """Return how many cores this process may use."""
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = CONTAINER_QUOTA.read_text(encoding="ascii") if CONTAINER_QUOTA.is_file() else "max"
    share, _, period = quota.partition(" ")
    return bound if share.strip() == "max" else min(bound, max(1, int(share) // int(period)))


def cpu_name() -> str:
    """Return the processor and its widest instruction set, which decides the bits of results."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    named = re.search(r"^model name\s*:\s*(.*\S)", text, re.MULTILINE)
    name = named[1] if named else platform.processor() or platform.machine()
    sets = [words for flag, words in INSTRUCTION_SETS.items() if f" {flag}" in text]
    return f"{name} ({sets[0]})" if sets else name


def usable_gpus() -> int:
    """Return how many GPUs torch can use; warn where it can use none of them."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count and (there := visible_gpus()):
        print(
            f"warning: torch {torch.__version__} can use none of the GPUs {', '.join(there)}, and"
            " networks run on the CPU: install a driver and a build of torch that fit, or set"
            " GPT1_DEVICE=cpu",
            file=sys.stderr,
            flush=True,
        )
    return count


def visible_gpus() -> list[str]:
    """Return the GPUs of CUDA_VISIBLE_DEVICES, else of nvidia-smi, by number."""
    if setting("GPT1_DEVICE") == "cpu":
        return []
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return named.split(",") if named not in ("", "-1") else []
    found = output("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()
    return found or sorted(path.name[6:] for path in Path("/dev").glob("nvidia[0-9]*"))


def settings() -> Settings:
    """Return all settings, of the environment, else of `.env`."""
    return {**dotenv_values(".env"), **os.environ}


def setting(name: str) -> str | None:
    """Return a setting from environment or .env."""
    return settings().get(name)


def whole_number(given: Settings, name: str) -> int | None:
    """Return a setting that is a whole number above 0. Raises UserError."""
    value = given.get(name)
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise UserError(
            f"{name}: expected a whole number above 0, found {value!r}; set it in the environment"
            " or in .env"
        )
    return int(value)


def choice(given: Settings, name: str, *choices: str) -> str | None:
    """Return a setting that is one of some choices. Raises UserError."""
    value = given.get(name) or None
    if value and value not in choices:
        raise UserError(
            f"{name}: expected {' or '.join(choices)}, found {value!r}; set it in the environment"
            " or in .env"
        )
    return value
