"""Profile `evening` rehearsed on the CPU at a thousandth of its size: every stage of it by `gpt1
run`, in two clones of this checkout on the same made-up books and task files. One is undisturbed;
in the other the whole process group is killed by SIGKILL in a stage of text, a pre-training, a
fine-tuning, an ablation, a layer transfer and a report, and the run is asked for again each time.

    python benchmarks/evening.py [--tasks rte,race] [--keep FOLDER]

In the root of the checkout. Updates and rows are a thousandth, the network has twelve layers of 32
units. It tells seconds, where each kill came, and every file of an output or report that differs.
--keep leaves the two clones there, and takes up those that it finds.
"""

import argparse
import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from killed_run import (
    GPT1,
    ORPHAN_SECONDS,
    POLL_SECONDS,
    ROOT,
    call,
    finish,
    left,
    locked,
    start,
    wait,
)

from gpt1.base.cores import cpu_name
from gpt1.demo import files

TASK_ROWS, BOOKS, PAGES = 50, 12, 60  # rows: a thousandth of the profile's 50,000
SHORT = [
    "model.context=64",
    "model.width=32",
    "model.heads=2",
    "model.feed_forward=128",
    "lstm.units=32",
    "lstm_equal.units=64",
    "bpe.merges=400",
    "bpe.alphabet_size=60",
    "shard.heldout_fraction=0.2",
    "pretrain.updates=20",
    "pretrain.warmup_updates=2",
    "pretrain.batch_size=16",
    "pretrain.heldout_updates=5",
    "pretrain.heldout_windows=8",
    "pretrain.checkpoint_minutes=0.005",
    "finetune.batch_size=8",
    *(f"tasks.{task}.train_rows={TASK_ROWS}" for task in ("snli", "mnli", "qnli", "qqp")),
    "tasks.race.train_rows=20",
    "baselines.words=500",
]
# In the order in which stages begin, the longest first: a kill is for a stage that is still to come.
# Group of stages, seconds after the sign: that the stage's log, or a checkpoint of it, is there
KILLS = (
    ("clean", "data/logs/run/{}*.log", 1.0),
    ("pretrain", "data/checkpoints/{}-*/update-*", 0.1),
    ("transfer", "data/logs/run/{}@*.log", 3.0),
    ("finetune", "data/logs/run/{}@*.log", 3.0),
    ("ablate", "data/logs/run/{}@*.log", 3.0),
    ("table5", "data/logs/run/{}*.log", 1.0),
)


def clone(folder: Path, data: Path, tasks: str | None) -> None:
    """A clone of the checkout with its params.yaml, unless it is there."""
    if not folder.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        chosen = ("--tasks", tasks) if tasks else ()
        wanted = tasks.split(",") if tasks else None
        short = [
            one
            for one in SHORT
            if wanted is None or not one.startswith("tasks.") or one.split(".")[1] in wanted
        ]
        call(folder, *GPT1, "profile", "evening", "--data", str(data), *chosen, *short)


def at_work(folder: Path, group: str, sign: str, since: float) -> str | None:
    """The stage of a group that runs now: its sign is newer than the run, and dvc.lock lacks it."""
    found = [path for path in folder.glob(sign.format(group)) if path.stat().st_mtime >= since]
    logs = (folder / "data/logs/run").glob(f"{group}*.log")
    done = locked(folder) if found else {}
    running = [log.stem for log in logs if log.stat().st_mtime >= since and log.stem not in done]
    return running[0] if found and running else None


def kill(folder: Path, group: str, sign: str, seconds: float) -> str:
    """Start a run, kill it while a stage of the group is at work; what was seen, in words."""
    since, run = time.time(), start(folder)
    while run.poll() is None:
        stage = at_work(folder, group, sign, since)
        if stage is not None:
            time.sleep(seconds)
            done = locked(folder)
            if stage not in done:  # else it was quicker: the next one of its group
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                gone = wait(ORPHAN_SECONDS, lambda: not left(folder))
                late = " (it had just ended)" if stage in locked(folder) else ""
                return (
                    f"{stage}: killed at work{late}, {len(done)} stages done; {len(left(folder))}"
                    f" processes left after {gone:.1f} s"
                )
        time.sleep(POLL_SECONDS)
    return f"{group}: missed, the run had ended"


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of every output in dvc.lock; not of DVC's .gitignore."""
    found = {}
    for outputs in locked(folder).values():
        for name in outputs:
            place = folder / name
            for path in [place] if place.is_file() else sorted(place.rglob("*")):
                if path.is_file() and path.name != ".gitignore":
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    found[path.relative_to(folder).as_posix()] = digest
    return found


def rehearse(keep: Path, tasks: str | None) -> None:
    """Both runs, and what differs between them."""
    data, undisturbed, killed = keep / "corpora", keep / "undisturbed", keep / "killed"
    if not data.exists():
        files.SIZES |= {  # where dev is a part of the training file, that has rows for both
            task: (TASK_ROWS * (1 if dev else 2), 20 * bool(dev), 20 * bool(test))
            for task, (_, dev, test) in files.SIZES.items()
        }
        files.write_world(data, 0, BOOKS, PAGES)
    for folder in (undisturbed, killed):
        clone(folder, data, tasks)
    print(f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores", flush=True)
    print(f"undisturbed: {finish(undisturbed):.0f} s", flush=True)
    began = time.monotonic()
    for one in KILLS:
        print(f"killed: {kill(killed, *one)}", flush=True)
    finish(killed)
    print(f"killed {len(KILLS)} times: {time.monotonic() - began:.0f} s", flush=True)
    here, there = digests(undisturbed), digests(killed)
    differ = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    print("\n".join(differ) or "no difference")
    print(f"{len(locked(undisturbed))} stages, {len(here)} files; {len(differ)} differ")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--tasks", help="names with commas between; all twelve where none are given"
    )
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        rehearse(asked.keep.resolve(), asked.tasks)
        return
    with TemporaryDirectory() as folder:
        rehearse(Path(folder).resolve(), asked.tasks)


if __name__ == "__main__":
    main()
