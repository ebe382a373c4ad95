"""How long the demo takes, in small, by each of the ways to run it, in turn; and whether they come
to the same bytes.

    python benchmarks/ways_to_run.py [--pairs 3] [--ways flow dvc dvc-one-thread run direct] [--whole]

Each run starts from nothing (no results, no cache) in a clone of its own folder; the service that a
flow needs runs already, as it would. Without --whole, 84 stages with a tenth of the demo's
training. "flow" is `prefect deployment run reproduce-all`, two slots on two cores; "dvc" and
"dvc-one-thread" are `dvc repro`, one stage after the other; "run" is `gpt1 run`; "direct" is
`python -m flows.reproduce all`.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.cores import cpu_name
from gpt1.params.yaml import parse_yaml
from gpt1.train.launch import free_port

ROOT = Path(__file__).resolve().parents[1]
PREFECT = [sys.executable, "-m", "prefect"]
WAYS = {
    "flow": ([*PREFECT, "deployment", "run", "reproduce-all", "--watch"], {}),
    "dvc": ([sys.executable, "-m", "dvc", "repro"], {}),
    "dvc-one-thread": ([sys.executable, "-m", "dvc", "repro"], {"GPT1_THREADS": "1"}),
    "run": ([sys.executable, "-m", "gpt1.cli", "run"], {}),
    "direct": ([sys.executable, "-m", "flows.reproduce", "all"], {}),
}
TENTH = [
    "world.town.books=20",
    "shard.heldout_fraction=0.2",
    "pretrain.updates=200",
    "pretrain.warmup_updates=20",
    "pretrain.heldout_updates=100",
    "finetune.seeds=[0]",
    "finetune.epochs=1",
]


def call(folder: Path, command: list[str], **variables: str) -> float:
    """Seconds that a command takes in a clone; ends this script where it fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PREFECT_HOME": str(folder / ".prefect"),
        **variables,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(
            f"{' '.join(command)} ended with"
            f" {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return time.monotonic() - began


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """The service of a clone."""
    (folder / ".env").write_text(
        f"PREFECT_API_URL=http://127.0.0.1:{free_port()}/api\nGPT1_MLFLOW_PORT={free_port()}\n"
    )
    service = subprocess.Popen(
        [sys.executable, "-m", "flows.serve"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert service.stdout is not None
    while not (line := service.stdout.readline()).startswith("Ctrl-C here"):
        if not line:
            sys.exit("the service did not start; see data/logs/serve in the clone")
    try:
        yield
    finally:
        service.send_signal(signal.SIGINT)
        service.communicate()


def start_over(folder: Path) -> None:
    """Back to a fresh clone, but for params.yaml and Prefect's own files."""
    subprocess.run(
        ["git", "clean", "-fdxq", "-e", "params.yaml", "-e", ".prefect", "-e", ".env"],
        cwd=folder,
        check=True,
    )
    shutil.rmtree(folder / ".dvc/cache", ignore_errors=True)


def measure(folder: Path, way: str) -> tuple[float, float, dict[str, object]]:
    """Seconds of a run from nothing, of a second one that finds everything current, and what
    dvc.lock says of all outputs.
    """
    command, variables = WAYS[way]
    start_over(folder)
    if way != "flow":
        first, second = call(folder, command, **variables), call(folder, command, **variables)
    else:
        with serving(folder):
            first, second = call(folder, command), call(folder, command)
    lock = parse_yaml((folder / "dvc.lock").read_text(encoding="utf-8"))
    return first, second, {name: stage["outs"] for name, stage in lock["stages"].items()}


def main() -> None:
    """Measure, print a row for each run, compare the bytes of those with equal threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--whole", action="store_true", help="the demo as it is")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "gpt1"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        call(
            folder,
            [sys.executable, "-m", "gpt1.cli", "profile", "demo", *([] if asked.whole else TENTH)],
        )
        print(f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores", flush=True)
        outputs: dict[str, dict[str, object]] = {}
        for pair in range(asked.pairs):
            for way in asked.ways:
                first, second, found = measure(folder, way)
                same = (
                    ""
                    if outputs.setdefault(way, found) == found
                    else ", outputs differ from those of the first time"
                )
                print(f"{pair + 1} {way}: {first:.0f} s, again {second:.1f} s{same}", flush=True)
    for one, other in (
        ("flow", "dvc-one-thread"),
        ("flow", "run"),
        ("flow", "direct"),
    ):  # two slots on two cores: a thread each
        if {one, other} <= outputs.keys():
            differ = [
                name for name in outputs[one] if outputs[one][name] != outputs[other].get(name)
            ]
            print(
                f"{one} and {other}: {len(outputs[one])} stages, outputs differ in"
                f" {', '.join(differ) or 'none'}"
            )


if __name__ == "__main__":
    main()
