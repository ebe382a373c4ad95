"""Where a program runs, and of which commit it is."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from gpt1.base.cores import cores, cpu_name


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
    """Return the git commit of a folder, and whether tracked files differ from it (params.yaml
    apart, which every run records).
    """
    git = ("git", "-C", str(folder))
    commit = output(*git, "rev-parse", "HEAD") or "unknown"
    status = output(*git, "status", "--porcelain", "--branch", "-uno", "--", ":!params.yaml")
    edited = str("\n" in status).lower()  # below the line of the branch
    return {"git_commit": commit, "dirty": edited if status else "unknown"}


def output(*command: str) -> str:
    """Return the output of a command; empty where it is missing, fails or takes more than five
    seconds.
    """
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
