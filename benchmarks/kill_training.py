"""Trainings that die by SIGKILL, and are started again: is what they leave in the end that of a run
which nothing disturbed, to the bit?

    python benchmarks/kill_training.py [--pretrainings 30] [--finetunings 10] [--updates 500] [--json FILE] [--keep FOLDER]

One network of a million parameters on made-up data, in fp32, with dropout, a checkpoint every two
seconds. Each trial begins from nothing and is killed once: at a moment of its training drawn at
random, every third pre-training while a checkpoint is being written. Then the same command goes on
to its end. Compared: every output file's bytes, and each point in MLflow, which the run sends while
it goes on and `gpt1 sync` completes.
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
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from made_stages import TASK, made_params, write_inputs

from gpt1.base.files import sha256_file, write_json

ROOT = Path(__file__).resolve().parents[1]
STAGES = {"pretrain": ("transformer", "0"), "finetune": (TASK,)}
POLL_SECONDS, AMID_SECONDS, PATIENCE_SECONDS = 0.001, 0.03, 600.0
LIVE = (
    "import runpy, gpt1.tracking.live as live; live.LIVE_AFTER_SECONDS = 2.0;"
    " runpy.run_module('gpt1.stages', run_name='__main__')"
)
SYNC = "from gpt1.cli import main; main()"
POINTS = """select runs.name, metrics.key, step, count(*), max(metrics.value), max(is_nan) from metrics
    join runs using (run_uuid) join params using (run_uuid)
    where params.key = 'stage' and params.value = ? and metrics.key != 'seconds'
    and metrics.key not like 'system/%' group by 1, 2, 3"""
Points = dict[tuple[str, str, int], tuple[float, bool]]


class Trial(NamedTuple):
    """One kill: when, how far the training had come, and what was not as it has to be."""

    stage: str
    moment: str
    killed_after: float
    checkpoint: int
    curve_lines: int
    faults: list[str]


class Place:
    """A folder with a copy of our code, the inputs of both stages, and an MLflow of its own that
    each trial finds empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(ROOT / "dvc.yaml", folder)
        for name in ("conf", "gpt1"):  # whoever edits meanwhile
            shutil.copytree(ROOT / name, folder / name)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "GPT1_DEVICE": "cpu",
            "GPT1_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        }
        self.environment.pop("GPT1_MLFLOW", None)

    def start(self, stage: str) -> "subprocess.Popen[bytes]":
        """A training, as `python -m gpt1.stages` runs it, but that it tells MLflow of itself from
        its first seconds on.
        """
        log = (self.folder / "said").open("ab")
        return subprocess.Popen(
            [sys.executable, "-c", LIVE, stage, *STAGES[stage]],
            cwd=self.folder,
            env=self.environment,
            stdout=log,
            stderr=log,
        )

    def trains(self) -> bool:
        """Whether the stage has come to its training, which begins with an empty curve."""
        return any(self.folder.glob("data/checkpoints/*/*.jsonl"))

    def end(self, stage: str) -> float:
        """Run a training to its end, tell MLflow what it has not; how many seconds it took once it
        trained.
        """
        process = self.start(stage)
        while not self.trains() and process.poll() is None:
            time.sleep(POLL_SECONDS)
        began = time.monotonic()
        self.check(process.wait(PATIENCE_SECONDS))
        seconds = time.monotonic() - began
        self.check(
            subprocess.run(
                [sys.executable, "-c", SYNC, "sync"],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                check=False,
            ).returncode
        )
        return seconds

    def check(self, status: int) -> None:
        """Raise RuntimeError with what was said last where a command has failed."""
        if status:
            raise RuntimeError(
                f"ended with {status}: {(self.folder / 'said').read_text(errors='replace')[-500:]}"
            )

    def reset(self, stage: str) -> None:
        """As though the stage had never run."""
        for path in (f"data/{stage}", "data/checkpoints", f"data/logs/{stage}"):
            shutil.rmtree(self.folder / path, ignore_errors=True)
        for old in self.folder.glob("mlflow.db*"):
            old.unlink()
        shutil.copy(self.folder / "empty.db", self.folder / "mlflow.db")

    def sums(self, stage: str) -> dict[str, str]:
        """sha256 of every output."""
        root = self.folder / "data" / stage
        return {
            path.relative_to(root).as_posix(): sha256_file(path)
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }

    def points(self, stage: str) -> tuple[Points, list[str]]:
        """The values in MLflow of this stage's runs by run, name and step, and those that are there
        more than once.
        """
        with sqlite3.connect(self.folder / "mlflow.db") as base:
            rows = base.execute(POINTS, [stage]).fetchall()
        return {row[:3]: (row[4], bool(row[5])) for row in rows}, [
            f"{row[1]} at {row[2]} {row[3]} times" for row in rows if row[3] != 1
        ]

    def state(self) -> tuple[int, int]:
        """Update of the newest checkpoint, lines of the curves."""
        saved = [
            int(path.name.removeprefix("update-"))
            for path in self.folder.glob("data/checkpoints/*/update-*")
        ]
        lines = 0
        for path in self.folder.glob("data/checkpoints/*/*.jsonl"):
            with suppress(FileNotFoundError):  # the run has ended meanwhile
                lines += len(path.read_bytes().splitlines())
        return max(saved, default=0), lines


def kill(place: Place, stage: str, lines: int, delay: float, amid: bool) -> float | None:
    """Kill a training so many seconds after its curves have so many lines; `amid`: then amid the
    writing of a checkpoint.

    Returns after how many seconds of training that was, None where it had ended before.
    """
    process = place.start(stage)

    def wait_for(there: Callable[[], object]) -> None:
        while process.poll() is None and not there():
            time.sleep(POLL_SECONDS)

    wait_for(place.trains)
    began = time.monotonic()
    wait_for(lambda: place.state()[1] >= lines)
    time.sleep(delay)
    if amid:
        wait_for(lambda: list(place.folder.glob("data/checkpoints/*/.update-*.partial")))
        time.sleep(random.uniform(0, AMID_SECONDS))
    process.send_signal(signal.SIGKILL)
    return time.monotonic() - began if process.wait() == -signal.SIGKILL else None


def expected_lines(points: Points) -> int:
    """How many lines the curves of a stage have where it is done: one for each update with a
    training loss, and for each evaluation.
    """
    return sum(key in ("loss", "heldout_loss", "dev_score") for _, key, _ in points)


def try_once(
    place: Place, stage: str, seconds: float, amid: bool, expected: tuple[dict[str, str], Points]
) -> Trial:
    """One trial against what an undisturbed run of `seconds` left."""
    killed = None
    while killed is None:  # which is when the training ended before it was killed
        place.reset(stage)
        lines = expected_lines(expected[1])
        killed = kill(
            place, stage, random.randrange(lines), random.uniform(0, seconds / lines), amid
        )
    partial = bool(list((place.folder / "data/checkpoints").glob("*/.update-*.partial")))
    checkpoint, lines = place.state()
    faults = []
    try:
        place.end(stage)
        if differ := sorted({name for name, _ in place.sums(stage).items() ^ expected[0].items()}):
            faults.append(f"not byte for byte: {', '.join(differ)}")
        points, double = place.points(stage)
        faults += [
            f"MLflow lacks {key} at {step} of {run}"
            for run, key, step in expected[1].keys() - points.keys()
        ][:3]
        faults += [
            f"MLflow has {key} at {step} of {run} too much"
            for run, key, step in points.keys() - expected[1].keys()
        ][:3]
        faults += [f"MLflow has {row}" for row in double][:3]
        faults += [
            f"MLflow has another {key} at {step}"
            for (run, key, step), value in expected[1].items()
            if points.get((run, key, step), value) != value
        ][:3]
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        faults.append(str(error))
    return Trial(
        stage,
        "checkpoint half written" if partial else "at random",
        killed,
        checkpoint,
        lines,
        faults,
    )


def main() -> None:
    """Print the table; status 1 where a trial has a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pretrainings", type=int, default=30)
    parser.add_argument("--finetunings", type=int, default=10)
    parser.add_argument(
        "--updates", type=int, default=500, help="of a pre-training (default 500, some 30 s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the trials there too")
    parser.add_argument("--keep", type=Path, help="an empty folder to work in, kept afterwards")
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    with tempfile.TemporaryDirectory() as temporary:
        place = Place((chosen.keep or Path(temporary)).resolve())
        trials = try_all(
            place, chosen.updates, {"pretrain": chosen.pretrainings, "finetune": chosen.finetunings}
        )
    if chosen.json:
        write_json(chosen.json, [trial._asdict() for trial in trials])
    sys.exit(any(trial.faults for trial in trials))


def try_all(place: Place, updates: int, wanted: dict[str, int]) -> list[Trial]:
    """All trials one after another, and their table."""
    os.chdir(ROOT)  # where the profiles are
    params = made_params(
        pretrain__seeds=[0],
        finetune__seeds=[0],
        pretrain__updates=updates,
        pretrain__epochs=None,
        pretrain__batch_size=8,
        pretrain__warmup_updates=10,
        pretrain__log_updates=2,
        pretrain__heldout_updates=50,
        pretrain__heldout_windows=32,
        pretrain__precision="fp32",
        pretrain__checkpoint_minutes=1 / 30,
        finetune__precision="fp32",
        finetune__epochs=1,
        finetune__log_updates=2,
    )
    write_inputs(place.folder, params)
    subprocess.run(
        [sys.executable, "-c", SYNC, "sync"],
        cwd=place.folder,
        env=place.environment,
        check=True,
        capture_output=True,
    )
    trials = []
    for stage, count in wanted.items():
        if stage == "pretrain" or count:
            if not (place.folder / "empty.db").exists():
                make_empty(place)
            place.reset(stage)
            seconds = place.end(stage)
            expected = place.sums(stage), place.points(stage)[0]
            print(
                f"{stage}, undisturbed: {seconds:.0f} s, {len(expected[0])} files,"
                f" {len(expected[1])} points in MLflow",
                flush=True,
            )
        for number in range(count):
            trials.append(
                try_once(place, stage, seconds, stage == "pretrain" and number % 3 == 2, expected)
            )
            print(f"{number + 1} of {count}: {trials[-1]}", file=sys.stderr, flush=True)
        if (
            stage == "pretrain" and count
        ):  # the last trial's weights, equal or not, are what the fine-tunings begin from
            shutil.rmtree(place.folder / "data/checkpoints", ignore_errors=True)
    print(
        "| stage | moment | killed after | newest checkpoint | lines of the curve | faults"
        " |\n|---|---|---|---|---|---|"
    )
    for trial in trials:
        print(
            f"| {trial.stage} | {trial.moment} | {trial.killed_after:.1f} s |"
            f" {trial.checkpoint or '-'} | {trial.curve_lines} |"
            f" {'; '.join(trial.faults) or 'none'} |"
        )
    for stage, count in Counter(trial.stage for trial in trials).items():
        good = sum(not trial.faults for trial in trials if trial.stage == stage)
        print(f"{stage}: {good} of {count} as if undisturbed")
    return trials


def make_empty(place: Place) -> None:
    """An MLflow without a run: making its tables takes longer than a trial."""
    code = "from mlflow import MlflowClient; MlflowClient().search_experiments()"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=place.folder,
        env=place.environment,
        check=True,
        capture_output=True,
    )
    shutil.move(place.folder / "mlflow.db", place.folder / "empty.db")


if __name__ == "__main__":
    main()
