"""Ten thousand bad inputs: everything that reads what others made gets valid files, damaged; each
must give a result or one line.

    python benchmarks/fuzz.py --inputs 10000 --seed 0 --keep FOLDER

Each input runs in a worker process with an alarm and a limit on memory above what its libraries
take; workers are used again. An input hangs on (seed, surface, number) alone. What went wrong is
kept in FOLDER. Prints a row a surface; exit status 1 where anything did.
"""

import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
SECONDS, MEMORY_BYTES = 10.0, 2 << 30
BAD = ("uncaught", "hang", "died", "escaped", "terminal")


def surfaces() -> dict[str, Any]:
    from made_surfaces import SURFACES
    from made_surfaces_of_corpora import SURFACES_OF_CORPORA
    from made_surfaces_of_runs import SURFACES_OF_RUNS

    return {
        surface.name: surface for surface in (*SURFACES, *SURFACES_OF_CORPORA, *SURFACES_OF_RUNS)
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def damage(seeds: dict[str, bytes], chance: Random) -> dict[str, bytes]:
    """The files that differ: mostly one of them, damaged once or more."""
    from made_damage import damaged

    changed: dict[str, bytes] = {}
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        name = chance.choice(sorted(seeds))
        changed[name] = damaged(chance, name, changed.get(name, seeds[name]), list(seeds.values()))
    return changed


def attempt(
    surface: Any, seeds: dict[str, bytes], changed: dict[str, bytes], root: Path
) -> dict[str, Any]:
    """Read damaged files in a folder of their own; what came of it."""
    from made_surfaces import inside, outcome

    shutil.rmtree(root, ignore_errors=True)
    for name, content in (seeds | changed).items():
        (root / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "in" / name).write_bytes(content)
    began, said = time.perf_counter(), io.StringIO()
    try:
        with (
            inside(root / "in"),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(said),
        ):
            line = outcome(surface)
        found = {"kind": "result" if line == "result" else "line", "line": line}
        if any(not letter.isprintable() and letter not in "\n\t" for letter in said.getvalue()):
            found = {"kind": "terminal", "line": repr(said.getvalue())}
    except BaseException as error:
        ours = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "/gpt1/" in frame.filename
        ]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "elsewhere"
        told = "".join(traceback.format_exception(error))
        found = {
            "kind": "uncaught",
            "line": f"{type(error).__name__} at {place}",
            "more": told[-3000:],
        }
    if {path.name for path in root.iterdir()} != {"in"} or Path("/tmp/escaped").exists():
        found = {"kind": "escaped", "line": str(sorted(root.iterdir()))}
    return found | {
        "seconds": time.perf_counter() - began,
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def work(pipe: Connection, seed: int) -> None:
    """A worker: names of surfaces and numbers in, outcomes out, as JSON."""
    from made_surfaces import inside

    warnings.simplefilter("ignore")
    known, spare = surfaces(), Path(tempfile.mkdtemp(prefix="gpt1-fuzz-"))
    seeds: dict[str, dict[str, bytes]] = {}
    limited = False
    try:
        while True:
            name, number = json.loads(pipe.recv_bytes())
            if not limited:
                for one in known.values():  # their files, and every library, before the limit
                    (spare / "seeds" / one.name).mkdir(parents=True)
                    with inside(spare / "seeds" / one.name):
                        one.write()
                    seeds[one.name] = files_of(spare / "seeds" / one.name)
                    found = attempt(one, seeds[one.name], {}, spare / "try")
                    if found["kind"] != "result":
                        found["line"] += " (undamaged!)"
                        pipe.send_bytes(json.dumps(found | {"kind": "uncaught"}).encode())
                        return
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                resource.setrlimit(
                    resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_BYTES,) * 2
                )
                pipe.send_bytes(b"{}")
                limited = True
                continue
            changed = damage(seeds[name], Random(f"{seed}/{name}/{number}"))
            pipe.send_bytes(
                json.dumps(attempt(known[name], seeds[name], changed, spare / "try")).encode()
            )
    except EOFError:
        shutil.rmtree(spare, ignore_errors=True)


class Worker:
    """A process that reads damaged files, replaced when it hangs or dies."""

    def __init__(self, seed: int) -> None:
        self.seed, self.process, self.pipe = seed, None, None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.seed), daemon=True)
        self.process.start()
        theirs.close()
        ready = self.ask(["", 0], 300.0)
        if ready:
            sys.exit(f"a surface does not read its own undamaged files: {ready}")

    def ask(self, what: list[Any], seconds: float) -> dict[str, Any]:
        self.pipe.send_bytes(json.dumps(what).encode())
        try:
            if not self.pipe.poll(seconds):
                return {"kind": "hang", "line": f"more than {seconds:.0f} s"}
            found: dict[str, Any] = json.loads(self.pipe.recv_bytes())
            return found
        except (EOFError, ConnectionError):
            self.process.join(5)
            return {"kind": "died", "line": f"status {self.process.exitcode}"}

    def read(self, name: str, number: int) -> dict[str, Any]:
        if self.process is None:
            self.start()
        found = self.ask([name, number], SECONDS)
        if found["kind"] in ("hang", "died"):
            self.process.kill()
            self.process.join()
            self.process = None
        return found


def keep(folder: Path, name: str, number: int, seed: int, found: dict[str, Any]) -> None:
    """Write down a bad input and what came of it."""
    place = folder / name.replace(" ", "_").replace(",", "") / f"{seed}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "what.json").write_text(json.dumps(found, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--surface", action="append", help="only these; all by default")
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()) / "gpt1-fuzz-finds"
    )
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    names = arguments.surface or sorted(surfaces())
    worker, counts, places, slowest, largest = (
        Worker(arguments.seed),
        {name: Counter() for name in names},
        Counter(),
        Counter(),
        0,
    )
    began = time.perf_counter()
    for number in range(arguments.inputs):
        name = names[number % len(names)]
        found = worker.read(name, number)
        counts[name][found["kind"]] += 1
        slowest[name] = max(slowest[name], found.get("seconds", SECONDS))
        largest = max(largest, found.get("bytes", 0))
        if found["kind"] in BAD:
            if not places[name, found["line"][:120]]:
                print(f"{found['kind']}: {name} {number}: {found['line'][:300]}", flush=True)
            places[name, found["line"][:120]] += 1
            keep(arguments.keep, name, number, arguments.seed, found)
    print(f"\n{'surface':24} inputs result   line  " + "  ".join(BAD) + "  slowest")
    for name, count in counts.items():
        row = "  ".join(f"{count[kind]:{len(kind)}}" for kind in BAD)
        print(
            f"{name:24} {count.total():6} {count['result']:6} {count['line']:6}  {row} "
            f" {slowest[name]:.2f} s"
        )
    total: Counter[str] = sum(counts.values(), Counter())
    print(
        f"{'all':24} {total.total():6} {total['result']:6} {total['line']:6}  "
        + "  ".join(f"{total[kind]:{len(kind)}}" for kind in BAD)
    )
    print(
        f"{time.perf_counter() - began:.0f} s; largest resident memory of a worker"
        f" {largest / 1e9:.2f} GB; seed {arguments.seed}; sha256 of the table"
        f" {hashlib.sha256(str(sorted(total.items())).encode()).hexdigest()[:12]}"
    )
    return int(any(total[kind] for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
