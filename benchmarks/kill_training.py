"""Trainings that die by SIGKILL, and are started again: is what they leave in the end that of a run
which nothing disturbed, to the bit?

    python benchmarks/kill_training.py [--pretrainings 30] [--finetunings 10]

A network of half a million parameters in a clone of this checkout, in fp32, with dropout, a
checkpoint every two seconds. Each trial begins from nothing and is killed once: at a moment of its
training drawn at random, every third pre-training while a checkpoint is being written. Then the
same command goes on to its end. Compared: every output file's bytes, and each point in MLflow,
which the run sends while it goes on and `gpt1 sync` completes.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gpt1.base.files import sha256_file

ROOT = Path(__file__).resolve().parents[1]
STAGES = {"pretrain": ("transformer", "0"), "finetune": ("cola",)}
SETTINGS = [
    "pretrain.updates=500",
    "pretrain.batch_size=8",
    "pretrain.warmup_updates=10",
    "pretrain.log_updates=2",
    "pretrain.heldout_updates=50",
    "pretrain.heldout_windows=32",
    "pretrain.checkpoint_minutes=0.033",
    "finetune.epochs=1",
    "finetune.log_updates=2",
    "tasks.cola.train_rows=960",
]
POLL_SECONDS, AMID_SECONDS, PATIENCE_SECONDS = 0.001, 0.03, 600.0
LIVE = (
    "import runpy, gpt1.tracking.live as live; live.LIVE_AFTER_SECONDS = 2.0;"
    " runpy.run_module('gpt1.stages', run_name='__main__')"
)
POINTS = """select runs.name, metrics.key, step, max(metrics.value), max(is_nan), count(*)
    from metrics join runs using (run_uuid) join params using (run_uuid)
    where params.key = 'stage' and params.value = ? and metrics.key != 'seconds'
    and metrics.key not like 'system/%' group by 1, 2, 3"""


class Outcome(NamedTuple):
    """What a training leaves: sha256 of every output, and the points in MLflow (run, name, step,
    value, whether it is NaN, how often it is there).
    """

    sums: dict[str, str]
    points: set[tuple[str, str, int, float, int, int]]

    def curve_lines(self) -> int:
        """Of the whole training: one for each update with a loss, and for each evaluation."""
        return sum(name in ("loss", "heldout_loss", "dev_score") for _, name, *_ in self.points)


class Place:
    """A clone of the checkout with the inputs of both stages, and an MLflow of its own that each
    trial finds empty.
    """

    def __init__(self, folder: Path) -> None:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "GPT1_DEVICE": "cpu",
            "GPT1_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        }
        self.environment.pop("GPT1_MLFLOW", None)
        self.call("-m", "gpt1.cli", "profile", "demo", "--tasks", "cola", *SETTINGS)
        self.call("-m", "dvc", "repro", "-q", "shard", "encode@cola")
        tables = "from mlflow import MlflowClient; MlflowClient().search_experiments()"
        self.call("-c", tables)  # making them takes longer than a trial
        shutil.move(folder / "mlflow.db", folder / "empty.db")

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        with (self.folder / "said").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def call(self, *words: str) -> None:
        """Run a command to its end. Raises RuntimeError with its last words where it fails."""
        if status := self.start(*words).wait(PATIENCE_SECONDS):
            said = (self.folder / "said").read_text(errors="replace")[-500:]
            raise RuntimeError(f"{' '.join(words)} ended with {status}: {said}")

    def training(self, stage: str) -> tuple[str, ...]:
        """A training as `python -m gpt1.stages` runs it, but that it tells MLflow of itself from
        its first seconds on.
        """
        return ("-c", LIVE, stage, *STAGES[stage])

    def finish(self, stage: str) -> Outcome:
        """Run a training to its end and tell MLflow what it has not; what is there then."""
        self.call(*self.training(stage))
        self.call("-m", "gpt1.cli", "sync")
        root = self.folder / "data" / stage
        files = [path for path in root.rglob("*") if path.is_file()]
        with sqlite3.connect(self.folder / "mlflow.db") as base:
            points = base.execute(POINTS, [stage]).fetchall()
        return Outcome(
            {path.relative_to(root).as_posix(): sha256_file(path) for path in files}, set(points)
        )

    def reset(self, stage: str) -> None:
        """As though the stage had never run."""
        for path in (f"data/{stage}", "data/checkpoints", f"data/logs/{stage}"):
            shutil.rmtree(self.folder / path, ignore_errors=True)
        for old in self.folder.glob("mlflow.db*"):
            old.unlink()
        shutil.copy(self.folder / "empty.db", self.folder / "mlflow.db")

    def checkpoints(self, pattern: str) -> list[Path]:
        return list(self.folder.glob(f"data/checkpoints/*/{pattern}"))

    def curve_lines(self) -> int:
        lines = 0
        for path in self.checkpoints("*.jsonl"):
            with suppress(FileNotFoundError):  # the run has ended meanwhile
                lines += len(path.read_bytes().splitlines())
        return lines


def kill(place: Place, stage: str, lines: int, amid: bool) -> bool:
    """Kill a training once its curves have so many lines; `amid`: then amid the writing of a
    checkpoint. False where it had ended before.
    """
    process = place.start(*place.training(stage))

    def wait_for(there: Callable[[], object]) -> None:
        while process.poll() is None and not there():
            time.sleep(POLL_SECONDS)

    wait_for(lambda: place.curve_lines() >= lines)
    if amid:
        wait_for(lambda: place.checkpoints(".update-*.partial"))
    time.sleep(random.uniform(0, AMID_SECONDS))
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def try_once(place: Place, stage: str, amid: bool, expected: Outcome) -> list[str]:
    """What one trial leaves that is not as an undisturbed run's."""
    place.reset(stage)
    while not kill(place, stage, random.randint(1, expected.curve_lines()), amid):
        place.reset(stage)
    newest = max((path.name for path in place.checkpoints("update-*")), default="no checkpoint")
    half = "one half written" if place.checkpoints(".update-*.partial") else "none half written"
    print(f"{stage} killed with {place.curve_lines()} lines, {newest}, {half}", end="; ")
    try:
        found = place.finish(stage)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    files = {f"not byte for byte: {name}" for name, _ in found.sums.items() ^ expected.sums.items()}
    points = [f"MLflow differs in {point}" for point in found.points ^ expected.points]
    return [*sorted(files), *points[:3]]


def main() -> None:
    """Status 1 where a trial has a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pretrainings", type=int, default=30)
    parser.add_argument("--finetunings", type=int, default=10)
    given = parser.parse_args()
    good = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Place(Path(temporary).resolve() / "clone")
        for stage, trials in (("pretrain", given.pretrainings), ("finetune", given.finetunings)):
            place.reset(stage)
            expected = place.finish(stage)
            print(
                f"{stage}, undisturbed: {len(expected.sums)} files, {len(expected.points)} points"
                " in MLflow",
                flush=True,
            )
            for number in range(trials):
                amid = stage == "pretrain" and number % 3 == 2
                faults = try_once(place, stage, amid, expected)
                good += not faults
                print("; ".join(faults) or "then as if undisturbed", flush=True)
    wanted = given.pretrainings + given.finetunings
    print(f"{good} of {wanted} as if undisturbed")
    sys.exit(good < wanted)


if __name__ == "__main__":
    main()
