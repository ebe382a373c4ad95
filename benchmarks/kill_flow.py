"""Is a run that is ended in every way the same run in the end? A graph of real, short trainings in
clones of this checkout, with `make serve` in each: undisturbed once, then ended so many times each
by Ctrl-C, SIGTERM, SIGKILL and `prefect flow-run cancel`, and by Ctrl-C after a DVC or a stage was
killed and its stage is at work again; all at random moments, and asked for again each time. Where
it comes to its end before that, in a further clone.

    python benchmarks/kill_flow.py [--times 10]

A line for each end: which stages were at work, which of them said that they had saved, and whether
anything was left; for each clone, the outputs in dvc.lock that are not those of the undisturbed run.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from flows.server import free_port
from gpt1.base.machine import cores, cpu_name
from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).parents[1]
SHORT = [
    "town.books=30",
    "shard.heldout_fraction=0.15",
    "pretrain.updates=250",
    "pretrain.warmup_updates=10",
    "pretrain.heldout_updates=100",
    "pretrain.checkpoint_minutes=0.03",
    "finetune.seeds=[0,1]",
    "tasks.cola.train_rows=600",
    "tasks.sst2.train_rows=600",
]
RUN = ("gpt1.cli", "run", "pretrain", "finetune")
SERVED = ("prefect", "deployment", "run", "reproduce-all", "-p", 'only=["pretrain","finetune"]')
KINDS = ["Ctrl-C", "SIGTERM", "SIGKILL", "cancel", "DVC killed", "stage killed"]
SAVED = re.compile(r"checkpoint saved|nothing to save yet|finished seeds are kept")
LATEST_SECONDS, PATIENCE_SECONDS = 18.0, 30.0


class Clone:
    """A clone of the checkout, its profile, its servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        (folder / ".env").write_text(f"PREFECT_API_URL=http://127.0.0.1:{free_port()}/api\n")
        self.call("gpt1.cli", "profile", "demo", "--tasks", "cola,sst2", *SHORT)
        self.service = self.start("flows.serve")
        assert any("next, in another" in line for line in self.service.stdout or [])
        self.lasting = set(self.processes())

    def start(self, *words: str) -> "subprocess.Popen[str]":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(self.folder), "GPT1_MLFLOW": "off"}
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def call(self, *words: str) -> str:
        """What a command says, to its end."""
        process = self.start(*words)
        said = process.communicate()[0]
        if process.returncode:
            sys.exit(f"{' '.join(words)} ended with {process.returncode}:\n{said}")
        return said

    def processes(self) -> list[psutil.Process]:
        """All that is at work in the clone: what has ended and waits for its parent has no folder."""
        everyone = psutil.process_iter(["cwd", "cmdline"])
        return [one for one in everyone if (one.info["cwd"] or "").startswith(str(self.folder))]

    def left(self) -> set[psutil.Process]:
        return set(self.processes()) - self.lasting

    def stages(self) -> dict[str, psutil.Process]:
        """Stages at work, by DVC's names."""
        found = {}
        for one in self.processes():
            with suppress(psutil.Error):  # it, or its DVC, has ended meanwhile
                dvc = one.parent() if "gpt1.stages" in (one.info["cmdline"] or []) else None
                if dvc and "repro" in (words := dvc.cmdline()):
                    found[words[-1]] = one
        return found

    def outputs(self) -> dict[str, str]:
        """md5 by path."""
        stages = read_yaml(self.folder / "dvc.lock")["stages"].values()
        return {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", [])}

    def finish(self) -> None:
        """A last run, and the end of the service by SIGTERM."""
        self.call(*RUN)
        self.service.terminate()
        gone = seconds_until(lambda: not self.processes())
        print(f"{self.folder.name}: the service ended in {gone:.1f} s", flush=True)


def seconds_until(done: Callable[[], object]) -> float:
    """How long it took, or longer than PATIENCE_SECONDS."""
    began = time.monotonic()
    while not done() and time.monotonic() - began < PATIENCE_SECONDS:
        time.sleep(0.1)
    return time.monotonic() - began


def end(clone: Clone, kind: str) -> bool:
    """Ask for a run and end it; whether it was still at work."""
    number = ""
    if kind == "cancel":
        number = next(word for word in clone.call(*SERVED).split() if len(word) == 36)
        seconds_until(clone.left)
    else:
        run = clone.start(*RUN)
    time.sleep(moment := random.uniform(1, LATEST_SECONDS))
    if "killed" in kind:
        seconds_until(lambda: clone.stages() or run.poll() is not None)
    if not clone.left():
        return False
    at_work = clone.stages()
    print(f"{kind} after {moment:.0f} s, at work {', '.join(at_work) or 'none'}", end="; ")
    if "killed" in kind:
        name, stage = random.choice(list(at_work.items()))
        (stage if kind == "stage killed" else stage.parent()).kill()
        again = seconds_until(lambda: clone.stages().get(name, stage) != stage)
        print(f"{name} at work again in {again:.1f} s", end="; ")
    if number:
        clone.start("prefect", "flow-run", "cancel", number).communicate()
    else:
        os.killpg(run.pid, getattr(signal, kind, signal.SIGINT))
    gone = seconds_until(lambda: not clone.left())
    logs = {name: clone.folder / f"data/logs/run/{name}.log" for name in at_work}
    said = {name: log.read_text("utf-8", "replace") for name, log in logs.items()}
    saved = [name for name, text in said.items() if SAVED.search(text)]
    lost = [text.splitlines()[-1:] for name, text in said.items() if name not in saved]
    print(f"saved {', '.join(saved) or 'none'}", end="; ")
    print(f"{len(clone.left())} left in {gone:.1f} s; {lost or ''}", flush=True)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    todo = KINDS * parser.parse_args().times
    random.shuffle(todo)
    print(f"{cpu_name()}, {cores()} cores", flush=True)
    with TemporaryDirectory() as folder:
        undisturbed = Clone(Path(folder, "undisturbed"))
        undisturbed.finish()
        expected = undisturbed.outputs()
        while todo:
            clone = Clone(Path(folder, f"ended-{len(todo)}"))
            while todo and end(clone, todo[-1]):
                todo.pop()
            clone.finish()
            differ = expected.items() ^ clone.outputs().items()
            print(f"{len(expected)} outputs, {len(differ)} differ: {sorted(differ)}", flush=True)


if __name__ == "__main__":
    main()
