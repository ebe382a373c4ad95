"""A tiny checkout for the real Makefile and set-up: one package to install from a folder of wheels,
no network, and a folder that is all of PATH.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASE = getattr(sys, "_base_executable", sys.executable)
TOOLS = "bash cat cmp dirname expand find flock grep ls make mkdir mount mv rm sed sh"

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "gpt1"
version = "0.1.0"
dependencies = ["tiny"]
optional-dependencies = {test = []}
"""
BACKEND = """
import pathlib, zipfile

def build_editable(folder, *_):
    name, info = "gpt1-0.1.0-py3-none-any.whl", "gpt1-0.1.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("gpt1.pth", str(pathlib.Path.cwd()))
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: gpt1\\nVersion: 0.1.0\\nRequires-Dist: tiny\\nProvides-Extra: test\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""


class Checkout:
    """A fresh clone as the set-up sees it."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self.folder, self.venv = folder, folder / ".venv"
        self.tools, self.wheels = aside / "tools", aside / "wheels"
        for made in (folder / "gpt1", self.tools, self.wheels):
            made.mkdir(parents=True)
        shutil.copy(ROOT / "Makefile", folder)
        (folder / "gpt1/__init__.py").touch()
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        self.pin("1.0")
        for name, version in (("tiny", "1.0"), ("tiny", "2.0"), ("torch", "1.0"), ("uv", "1.0")):
            info = f"{name}-{version}.dist-info"
            files = {
                f"{name}.py": f"version = {version!r}\n",
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"{info}/RECORD": "",
            }
            with zipfile.ZipFile(self.wheels / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
                for path, content in files.items():
                    wheel.writestr(path, content)
        for name in TOOLS.split():
            (self.tools / name).symlink_to(shutil.which(name) or name)
        self.tool("python3", f'#!/bin/sh\nexec "{BASE}" "$@"\n')
        self.environment = {
            "PATH": str(self.tools),
            "HOME": str(aside),
            "LC_ALL": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),
        }

    def pin(self, version: str) -> None:
        (self.folder / "constraints.txt").write_text(f"tiny=={version}\n")

    def tool(self, name: str, script: str) -> Path:
        path = self.tools / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    def start(self, *command: str, **settings: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command or ["make", "setup"],
            cwd=self.folder,
            env=self.environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def make(self, goal: str = "setup", **settings: str) -> tuple[int, list[str]]:
        """The exit status and what was said, without make's own words."""
        process = self.start("make", goal, **settings)
        output = process.communicate(timeout=120)[0]
        lines = [line for line in output.splitlines() if not line.startswith("make: ***")]
        return process.returncode, lines

    def installed(self) -> str:
        """The version of the one package, as the environment's Python takes it."""
        return subprocess.run(
            [self.venv / "bin/python", "-I", "-c", "import gpt1, tiny; print(tiny.version)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
