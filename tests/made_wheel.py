"""A wheel of this checkout, built from a copy of it by the real back end, and a virtual environment
that has it alone of ours and borrows the packages of this one.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


class Installation:
    """The copy, the environment, and commands in a folder of a user's own."""

    def __init__(self, folder: Path) -> None:
        self.source, self.venv, self.folder = folder / "source", folder / "venv", folder / "my run"
        passing = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "gpt1", self.source / "gpt1", ignore=passing)
        for name in FILES:
            shutil.copy(ROOT / name, self.source)
        venv.create(self.venv, with_pip=True)
        packages = next(self.venv.glob("lib/python*/site-packages"))
        borrowed = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "borrowed.pth").write_text("\n".join(borrowed))
        self.folder.mkdir()

    def build(self) -> Path:
        """A wheel of the copy."""
        subprocess.run([sys.executable, "-c", BUILD, self.folder], cwd=self.source, check=True)
        return next(self.folder.glob("*.whl"))

    def install(self, wheel: Path) -> None:
        """As a person installs it, without what it needs, which is borrowed."""
        self.run("python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))

    def run(self, *words: str) -> str:
        """What a command says, on both streams."""
        environment = {"PATH": f"{self.venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=environment | {"HOME": str(self.folder), "GPT1_MLFLOW": "off"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout
