"""A copy of what a run needs, in a folder of its own, and its command lines."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from gpt1.params.yaml import parse_yaml

ROOT = Path(__file__).parents[1]
COPIED = ("conf", "flows", "gpt1", "prefect.toml", "dvc.yaml", ".dvcignore", ".gitignore")


class Checkout:
    """What a run needs, and no more (`also`: further files of the project), under git and DVC."""

    def __init__(self, folder, *also):
        self.folder = folder / "checkout"
        self.folder.mkdir()
        for name in (*COPIED, *also):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source, self.folder / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, self.folder / name)
        for kept in (ROOT / "data").rglob(".gitkeep"):
            (target := self.folder / kept.relative_to(ROOT)).parent.mkdir(
                parents=True, exist_ok=True
            )
            target.touch()
        self.run("git", "init", "-q")
        self.run("dvc", "init", "-q")
        self.run("dvc", "config", "core.analytics", "false")

    def command(self, *words):
        programs = Path(sys.executable).parent
        # Not what Prefect's plug-in has set in the process of the tests: an address of its own.
        own = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
        environment = {
            **own,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "true",
            "PYTHONPATH": str(self.folder),
        }
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words, status=0):
        process = self.command(*words)
        output, _ = process.communicate()
        assert process.returncode == status, (
            f"{' '.join(words)} ended with {process.returncode}:\n{output}"
        )
        return output

    def gpt1(self, *words):
        return self.run(sys.executable, "-c", "from gpt1.cli import main; main()", *words)

    def hashes(self):
        """What dvc.lock says of every output."""
        return {
            name: stage["outs"]
            for name, stage in parse_yaml((self.folder / "dvc.lock").read_text(encoding="utf-8"))[
                "stages"
            ].items()
        }
