"""Ten thousand bad inputs: everything that reads what others made gets valid files, damaged; each
must give a result or one line.

    python benchmarks/fuzz.py [--inputs 10000] [--seed 0] [--surface NAME] [--keep FOLDER]

Each input runs in a worker process with an alarm and a limit on memory above what its libraries
take; workers are used again. An input hangs on (seed, surface, number) alone. What went wrong is
kept in FOLDER. Prints a row a surface; exit status 1 where anything did.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from made_damage import damaged
from made_surfaces import SURFACES, inside, outcome
from made_surfaces_of_corpora import SURFACES_OF_CORPORA
from made_surfaces_of_runs import SURFACES_OF_RUNS

SURFACE_OF = {one.name: one for one in (*SURFACES, *SURFACES_OF_CORPORA, *SURFACES_OF_RUNS)}
SECONDS, MEMORY_BYTES = 10, 2 << 30
GOOD, BAD = ("result", "line"), ("uncaught", "hang", "died", "escaped", "terminal")
SEEDS: dict[str, dict[str, bytes]] = {}  # of a worker: every surface's undamaged files


def damage(seeds: dict[str, bytes], chance: Random) -> dict[str, bytes]:
    """The files, mostly one of them damaged, once or more."""
    files = dict(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        name = chance.choice(sorted(seeds))
        files[name] = damaged(chance, name, files[name], list(seeds.values()))
    return files


def read(name: str, files: dict[str, bytes], root: Path) -> tuple[str, str]:
    """Read files in a folder of their own; a kind of outcome, and more of it."""
    shutil.rmtree(root, ignore_errors=True)
    for file, content in files.items():
        (root / "in" / file).parent.mkdir(parents=True, exist_ok=True)
        (root / "in" / file).write_bytes(content)
    said = io.StringIO()
    try:
        with (
            inside(root / "in"),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(said),
        ):
            line = outcome(SURFACE_OF[name])
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/gpt1/" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "elsewhere"
        last = "".join(traceback.format_exception(error))[-3000:]
        return "uncaught", f"{type(error).__name__} at {place}\n{last}"
    if {path.name for path in root.iterdir()} != {"in"} or Path("/tmp/escaped").exists():
        return "escaped", str(sorted(root.iterdir()))
    if any(not letter.isprintable() and letter not in "\n\t" for letter in said.getvalue()):
        return "terminal", repr(said.getvalue())
    return "result" if line == "result" else "line", line


def prepare(folder: Path) -> None:
    """What a worker does first: write and read every surface's files, which imports the libraries,
    then limit its memory.
    """
    warnings.simplefilter("ignore")
    for name, surface in SURFACE_OF.items():
        root = folder / str(os.getpid()) / name
        root.mkdir(parents=True)
        with inside(root):
            surface.write()
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        SEEDS[name] = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
        kind, more = read(name, SEEDS[name], folder / "try")
        if kind != "result":
            raise SystemExit(f"{name} does not read its own undamaged files: {more}")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def attempt(name: str, number: int, seed: int, folder: Path) -> tuple[str, str]:
    """In a worker: read an input; the alarm ends the worker."""
    files = damage(SEEDS[name], Random(f"{seed}/{name}/{number}"))
    signal.alarm(SECONDS)
    try:
        return read(name, files, folder / "try")
    finally:
        signal.alarm(0)


class Reader:
    """One worker, replaced when it hangs or dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, context, prepare, (self.folder,))
        self.pool.submit(os.getpid).result()

    def read(self, name: str, number: int, seed: int) -> tuple[str, str, float]:
        """The kind of outcome, more of it, and how many seconds it took."""
        began = time.perf_counter()
        try:
            found = self.pool.submit(attempt, name, number, seed, self.folder).result()
            return *found, time.perf_counter() - began
        except BrokenProcessPool:
            seconds = time.perf_counter() - began
            self.start()
            return "hang" if seconds >= SECONDS else "died", f"after {seconds:.1f} s", seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--surface", action="append", choices=sorted(SURFACE_OF), help="only these; all by default"
    )
    parser.add_argument("--keep", type=Path, default=Path("data/logs/fuzz"), metavar="FOLDER")
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    names = given.surface or sorted(SURFACE_OF)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder))
        for number in range(given.inputs):
            name = names[number % len(names)]
            kind, more, seconds = reader.read(name, number, given.seed)
            counts[name][kind] += 1
            slowest[name] = max(slowest[name], seconds)
            if kind in BAD:
                print(f"{kind}: {name} {number}: {more.splitlines()[0][:300]}", flush=True)
                kept = given.keep / name.replace(" ", "_") / f"{given.seed}-{number}.json"
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps({"kind": kind, "more": more}, indent=1))
        reader.pool.shutdown()
    counts["all"] = sum(counts.values(), Counter())
    slowest["all"] = max(slowest.values())
    print(f"\n{'surface':24} {'  '.join(GOOD + BAD)}  slowest")
    for name, count in counts.items():
        row = "  ".join(f"{count[kind]:{len(kind)}}" for kind in GOOD + BAD)
        print(f"{name:24} {row}  {slowest[name]:.2f} s")
    sys.exit(any(counts["all"][kind] for kind in BAD))


if __name__ == "__main__":
    main()
