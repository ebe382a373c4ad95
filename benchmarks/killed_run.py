"""Is a run that is killed three times the same run in the end? Profile small on real text, in
small, twice in clones of this checkout by `gpt1 run`: once undisturbed, once killed by SIGKILL, the
whole process group, in the middle of the stage of clean text, of a pre-training and of a
fine-tuning, and asked for again each time.

    python benchmarks/killed_run.py --data FOLDER [--keep FOLDER] [--books 12]

FOLDER holds books and task files as for `gpt1 profile small --data`; the first so many books are
read, and two tasks. It tells seconds, where each kill came, how far the killed stage had got, and
every output of dvc.lock and every file of a report that differs. --keep leaves the two clones there,
and takes up those that it finds.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from gpt1.base.cores import cpu_name
from gpt1.params.yaml import parse_yaml

ROOT = Path(__file__).resolve().parents[1]
GPT1 = [sys.executable, "-m", "gpt1.cli"]
TASKS = ("rte", "sst2")
SHORT = [
    "shard.heldout_fraction=0.2",  # of so few books .05 holds out none
    "pretrain.updates=60",
    "pretrain.warmup_updates=10",
    "pretrain.heldout_updates=30",
    "pretrain.heldout_windows=16",
    "pretrain.snapshots_per_decade=1",
    "pretrain.checkpoint_minutes=0.02",
    "pretrain.seeds=[0]",
    "finetune.seeds=[0]",
    "tasks.rte.train_rows=150",
    "tasks.sst2.train_rows=600",
    *(f"tasks.{task}.eval_rows=100" for task in TASKS),
    "zero_shot.sst2.rows=20",
]
POLL_SECONDS, ORPHAN_SECONDS = 0.05, 30.0


class Moment(NamedTuple):
    """When to kill: a stage whose sign has been there for so many seconds."""

    stage: str
    sign: str  # a pattern of paths
    seconds: float


MOMENTS = (
    Moment("clean", "data/logs/run/clean.log", 4.0),
    Moment("pretrain@transformer-0", "data/checkpoints/pretrain-transformer*/update-*", 1.0),
    Moment("finetune@sst2", "data/logs/run/finetune@sst2.log", 6.0),
)


def environment(folder: Path) -> dict[str, str]:
    """A clone's own code, this interpreter's programs."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PYTHONPATH": str(folder), "PATH": programs, "DVC_NO_ANALYTICS": "true"}


def call(folder: Path, *words: str) -> None:
    """One command in a clone; ends this script where it fails."""
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def clone(folder: Path, data: Path, books: int) -> None:
    """A clone of the checkout with its params.yaml, unless it is there."""
    if folder.exists():
        return
    few = folder.with_name(f"{folder.name}-data")
    (few / "books").mkdir(parents=True)
    for path in sorted(data.iterdir()):
        if path.name != "books":
            (few / path.name).symlink_to(path)
    for path in sorted((data / "books").glob("*.txt"))[:books]:
        (few / "books" / path.name).symlink_to(path)
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    words = ("profile", "small", "--data", str(few), "--tasks", ",".join(TASKS))
    call(folder, *GPT1, *words, *SHORT)


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """`gpt1 run` in a clone, leader of a session; what it says goes to a file beside it."""
    with folder.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [*GPT1, "run"],
            cwd=folder,
            env=environment(folder),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish(folder: Path) -> float:
    """Seconds until a run ends well; ends this script where it does not."""
    began = time.monotonic()
    if status := start(folder).wait():
        sys.exit(f"gpt1 run ended with {status}; see {folder.with_suffix('.log')}")
    return time.monotonic() - began


def locked(folder: Path) -> dict[str, dict[str, str]]:
    """What dvc.lock says of every output: md5 by path, by stage."""
    path = folder / "dvc.lock"
    # read_yaml refuses one as large as that of all stages of evening
    stages = parse_yaml(path.read_text("utf-8"), str(path))["stages"] if path.is_file() else {}
    return {
        name: {out["path"]: out["md5"] for out in stage.get("outs", [])}
        for name, stage in stages.items()
    }


def left(folder: Path) -> list[psutil.Process]:
    """Processes that are at work in a clone."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(folder)):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait(seconds: float, until: Callable[[], bool]) -> float:
    """Seconds until something is so, so many at most."""
    began = time.monotonic()
    while not until() and time.monotonic() - began < seconds:
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def kill(folder: Path, moment: Moment) -> str:
    """Start a run, kill its group at the moment; returns what was seen, in words."""
    run = start(folder)
    while run.poll() is None and not any(folder.glob(moment.sign)):
        time.sleep(POLL_SECONDS)
    time.sleep(moment.seconds)
    if run.poll() is not None:
        return f"{moment.stage}: missed, the run had ended"
    done = len(locked(folder))
    missed = moment.stage in locked(folder)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    gone = wait(ORPHAN_SECONDS, lambda: not left(folder))
    reached = [path.name for path in sorted(folder.glob(moment.sign)) if path.is_dir()]
    return (
        f"{moment.stage}: {'missed, it had ended' if missed else 'killed at work'}, {done} stages"
        f" done{f', checkpoint {reached[-1]}' if reached else ''}; {len(left(folder))} processes"
        f" left after {gone:.1f} s"
    )


def report_files(folder: Path) -> dict[str, bytes]:
    """Every file of a report; not DVC's .gitignore, whose lines stand in the order in which stages
    ended.
    """
    place = folder / "data/report"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != ".gitignore"
    }


def differences(one: Path, other: Path) -> Iterator[str]:
    """A line for each output and each file of a report that two runs do not have alike."""
    for kind, read in (
        ("output", lambda folder: {k: v for o in locked(folder).values() for k, v in o.items()}),
        ("file", report_files),
    ):
        here, there = read(one), read(other)
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                yield f"{kind} {name}"


def compare(keep: Path, data: Path, books: int) -> None:
    """Both runs, and what differs between them."""
    undisturbed, killed = keep / "undisturbed", keep / "killed"
    for folder in (undisturbed, killed):
        clone(folder, data, books)
    print(f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores", flush=True)
    print(f"undisturbed: {finish(undisturbed):.0f} s", flush=True)
    began = time.monotonic()
    for moment in MOMENTS:
        print(f"killed: {kill(killed, moment)}", flush=True)
    finish(killed)
    print(f"killed {len(MOMENTS)} times: {time.monotonic() - began:.0f} s", flush=True)
    differ = list(differences(undisturbed, killed))
    outputs = sum(map(len, locked(undisturbed).values()))
    print("\n".join(differ) or "no difference")
    print(
        f"{len(locked(undisturbed))} stages, {outputs} outputs,"
        f" {len(report_files(undisturbed))} files of reports; {len(differ)} differ"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--books", type=int, default=12)
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        compare(asked.keep.resolve(), asked.data.resolve(), asked.books)
        return
    with TemporaryDirectory() as folder:
        compare(Path(folder).resolve(), asked.data.resolve(), asked.books)


if __name__ == "__main__":
    main()
