"""A DVC repository of tiny stages, which fail, wait or are killed as files in it say."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]

WORK = """
import json, os, pathlib, sys, time
name, out = sys.argv[1:3]
began = time.time()
print("at work on", name, flush=True)
print(f"train {name}: update 1200 of 9000, loss 1.234, 1.5 min left", flush=True)
try:
    part = pathlib.Path(f"part-{os.getpid()}")
    part.write_text(str(os.getpid()))
    part.rename("pid-" + name)
    if pathlib.Path("fail-" + name).exists():
        sys.exit(pathlib.Path("fail-" + name).read_text() or "error: made to fail")
    if pathlib.Path("lose-" + name).exists():
        pathlib.Path("lose-" + name).unlink()
        os.kill(os.getpid(), 9)
    time.sleep(0.1)
    awaited = pathlib.Path("await-" + name)
    while awaited.exists() and not pathlib.Path(awaited.read_text()).exists():
        time.sleep(0.02)
except KeyboardInterrupt:
    pathlib.Path("checkpoint-" + name).touch()
    sys.exit(130)
pathlib.Path(out).parent.mkdir(exist_ok=True)
pathlib.Path(out).write_text(name + (pathlib.Path("word").read_text() if name == "first" else ""))
with open("journal", "a") as journal:
    journal.write(json.dumps([name, began, time.time(), os.environ.get("GPT1_THREADS"), sys.executable]) + "\\n")
from gpt1.pipeline import completion
completion.leave()
if pathlib.Path("kill-after-" + name).exists():
    import psutil, signal
    for parent in psutil.Process().parents():
        if parent.cwd() != os.getcwd():
            break  # from here on they are those who run the tests
        if parent.cmdline()[1:3] == ["-m", "gpt1.pipeline.dvc"] or pathlib.Path("kill-after-" + name).read_text() == "all":
            parent.send_signal(signal.SIGKILL)
"""

GRAPH = """
stages:
  first:
    cmd: python work.py first out/first
    deps: [word, work.py]
    outs: [out/first]
  quiet:
    cmd: python work.py quiet out/quiet
    deps: [out/first]
    outs: [out/quiet]
  pretrain:
    cmd: python work.py pretrain out/pretrain
    deps: [out/quiet, gpt1/model]
    outs: [out/pretrain]
  finetune:
    foreach: [cola, rte]
    do:
      cmd: python work.py finetune@${item} out/finetune/${item}
      deps: [out/pretrain, gpt1/model]
      outs: ["out/finetune/${item}"]
  table:
    cmd: python work.py table out/table
    deps: [out/finetune]
    outs: [out/table]
"""


class Repository:
    """A DVC repository of tiny stages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".dvc").mkdir()
        (folder / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
        (folder / "gpt1/model").mkdir(parents=True)
        (folder / "gpt1/model/code").touch()
        (folder / "out/finetune").mkdir(parents=True)
        (folder / "work.py").write_text(WORK)
        (folder / "word").write_text("one")
        (folder / "dvc.yaml").write_text(GRAPH)

    def start(self, *words: str, before: str = "", **environment: str) -> "subprocess.Popen[str]":
        inherited = {name: value for name, value in os.environ.items() if name != "GPT1_THREADS"}
        return subprocess.Popen(
            [sys.executable, "-c", f"{before}\nfrom gpt1.cli import main; main()", "run", *words],
            cwd=self.folder,
            text=True,
            env={**inherited, "PYTHONPATH": str(ROOT), "GPT1_DEVICE": "cpu", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, status: int = 0, **environment: str) -> tuple[str, str]:
        process = self.start(*words, **environment)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == status, f"ended with {process.returncode}:\n{output}{errors}"
        return output, errors

    def journal(self) -> dict[str, tuple[float, float, str | None, str]]:
        """What ran since the last call: when it began, when it ended, its GPT1_THREADS and
        python.
        """
        path = self.folder / "journal"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        assert len({name for name, *_ in rows}) == len(rows), "a stage ran twice"
        return {name: tuple(facts) for name, *facts in rows}

    def wait_for(self, name: str) -> Path:
        deadline = time.monotonic() + 60
        while not (path := self.folder / name).exists():
            assert time.monotonic() < deadline, f"no {name} within a minute"
            time.sleep(0.02)
        return path

    def processes(self) -> list[list[str]]:
        """The command lines of all that is at work in this folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == self.folder:
                    found.append(process.cmdline())
            except (psutil.Error, OSError):
                continue
        return found
