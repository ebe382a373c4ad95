"""Where a program runs, and of which commit it is."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from gpt1.base.cores import cores, cpu_name


def machine() -> dict[str, str]:
    """CPU, cores, GPU and versions, as words."""
    gpu = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = "none"
    return {
        "cpu": cpu_name(),
        "cores": str(cores()),
        "gpu": ", ".join(gpu.splitlines()) or "none",
        "python": platform.python_version(),
        "torch": torch,
    }


def checkout(folder: Path) -> dict[str, str]:
    """The git commit of a folder and whether tracked files differ from it, as words."""
    git = ("git", "-C", str(folder))
    if not (commit := _output(*git, "rev-parse", "HEAD")):
        return {"git_commit": "unknown", "dirty": "unknown"}
    changes = _output(*git, "status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "dirty": "true" if changes else "false"}


def _output(*command: str) -> str:
    """What a command prints; nothing where it is absent, fails or takes more than five seconds."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
