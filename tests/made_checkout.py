"""A bare clone for the set-up to work in, with stand-ins for what is slow or absent."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASE = getattr(sys, "_base_executable", sys.executable)
MAKE = shutil.which("make") or "make"

# Stands for an installer: notes each call; UV_PLAY says how it goes.
UV = """#!{base}
import os, pathlib, sys, time
venv = pathlib.Path(sys.argv[sys.argv.index("--python") + 1]).parents[1]
probe, play = "--dry-run" in sys.argv, os.environ.get("UV_PLAY", "")
with open("calls", "a") as calls:
    calls.write("probe\\n" if probe else "install\\n")
if play == "offline":
    sys.exit("error: Failed to fetch\\n  cause: error sending request for url (http://127.0.0.1:9/simple/torch/)")
if not probe:
    if play == "full":
        sys.exit("error: failed to copy: No space left on device (os error 28)")
    if play == "fail":
        sys.exit("  × No solution found:\\n  ╰─▶ Because torch has no wheels, it cannot be used.")
    while play == "wait" and not os.path.exists("go"):
        time.sleep(0.02)
    tool = venv / "bin" / "pytest"
    tool.write_text("#!/bin/sh\\necho the suite runs in $0\\n")
    tool.chmod(0o755)
print(" + torch==2.13.0+cpu")
"""


class Checkout:
    """A bare clone as far as the set-up sees it, and the folder that is all of PATH."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self.tools, self.venv = folder, tools, folder / ".venv"
        shutil.copytree(
            ROOT / "gpt1" / "install",
            folder / "gpt1" / "install",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "gpt1/__init__.py"):
            shutil.copy(ROOT / name, folder / name)
        tools.mkdir()
        self.tool("python3", f'exec "{BASE}" "$@"')
        self.tool("uv", "").write_text(UV.format(base=BASE))
        self.environment = {
            "PATH": str(tools),
            "HOME": str(folder.parent),
            "LC_ALL": "C.UTF-8",
            "UV_INDEX_URL": "http://127.0.0.1:9/simple",
        }

    def tool(self, name: str, script: str) -> Path:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def python_that_says(self, name: str, *words: str) -> None:
        """A Python that tells the set-up these words of itself."""
        self.tool(
            name,
            f'case "$*" in *find_spec*) echo {" ".join(words)}; echo "{BASE}";; *) exec "{BASE}"'
            ' "$@";; esac',
        )

    def start(self, command: list[str], **settings: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def make(self, goal: str = "setup", **settings: str) -> tuple[int, list[str]]:
        """The exit status and what was said, without make's own words."""
        process = self.start([MAKE, goal], **settings)
        output, errors = process.communicate(timeout=60)
        return process.returncode, [
            line for line in (output + errors).splitlines() if not line.startswith("make: ***")
        ]

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []
