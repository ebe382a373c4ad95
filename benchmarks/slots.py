"""24 short stages on 8 slots, ten times: none lost, each run exactly once, dvc.lock right; beside
it what bare parallel DVC makes of them. And what the engine holds while it goes through them:
memory, open files and threads after its first fifth and at its end; processes that outlive it.

    python benchmarks/slots.py [--times 10] [--slots 8] [--stages 24]
    python benchmarks/slots.py --times 1 --slots 2 --stages 100      # does a long run leak?

A made DVC repository in a temporary folder: each stage reads one word, waits a moment, writes a
folder of two files and a journal line. The word changes each time, so all are out of date. What
dvc.lock has to say is computed from the bytes that the stages have to write.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import psutil

from gpt1.params.yaml import parse_yaml

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("first", "second")
WORK = """
import pathlib, sys, time
name = sys.argv[1]
word = pathlib.Path("word").read_text()
time.sleep(0.2)
out = pathlib.Path("out", name)
out.mkdir(parents=True)
for part in ("first", "second"):
    (out / part).write_text(f"{name} {part} {word}")
with open("journal", "a") as journal:
    journal.write(name + "\\n")
"""


def make(folder: Path, names: list[str]) -> None:
    """A DVC repository of these stages, none of which needs another: all that is between them is
    DVC itself.
    """
    (folder / ".dvc").mkdir(parents=True)
    (folder / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (folder / "work.py").write_text(WORK)
    rows = [
        f"  {name}:\n    cmd: python work.py {name}\n    deps: [word, work.py]\n    outs:"
        f" [out/{name}]"
        for name in names
    ]
    (folder / "dvc.yaml").write_text("\n".join(["stages:", *rows, ""]))


def md5(content: bytes) -> str:
    """Hexadecimal md5, as DVC names contents."""
    return hashlib.md5(content).hexdigest()


def contents(name: str, word: str) -> dict[str, bytes]:
    """The files that a stage has to write."""
    return {part: f"{name} {part} {word}".encode() for part in PARTS}


def folder_md5(files: dict[str, bytes]) -> str:
    """What DVC writes down for a folder: the md5 of a JSON list of its files."""
    listed = [{"md5": md5(files[name]), "relpath": name} for name in sorted(files)]
    return md5(json.dumps(listed, sort_keys=True).encode()) + ".dir"


def wrong_in_lock(folder: Path, names: list[str], word: str) -> tuple[list[str], list[str]]:
    """Stages that dvc.lock does not have, or not as they are now; and those whose files are not
    there, or others.
    """
    path = folder / "dvc.lock"
    locked = parse_yaml(path.read_text(encoding="utf-8"))["stages"] if path.exists() else {}
    deps = {"word": md5(word.encode()), "work.py": md5((folder / "work.py").read_bytes())}
    unrecorded, spoilt = [], []
    for name in names:
        entry, wanted = locked.get(name, {}), contents(name, word)
        right = (
            entry.get("cmd") == f"python work.py {name}"
            and {dep["path"]: dep["md5"] for dep in entry["deps"]} == deps
            and [(out["path"], out["md5"]) for out in entry["outs"]]
            == [(f"out/{name}", folder_md5(wanted))]
        )
        if not right:
            unrecorded.append(name)
        found = {path.name: path.read_bytes() for path in (folder / "out" / name).glob("*")}
        if found != wanted:
            spoilt.append(name)
    if strangers := locked.keys() - set(names):
        unrecorded += sorted(strangers)
    return unrecorded, spoilt


def environment() -> dict[str, str]:
    """The environment of a command: this Python first, this checkout's gpt1."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "GPT1_DEVICE": "cpu"}


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A command of this Python, which tells all by one pipe."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def call(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status of a command of this Python, and all it said."""
    process = begin(folder, *words)
    said, _ = process.communicate()
    return process.returncode, said


class Held(NamedTuple):
    """What a process holds at one moment."""

    megabytes: float
    files: int
    threads: int


def watch(engine: psutil.Process, seen: list[Held]) -> None:
    """Note twice a second what the engine holds, until it has ended."""
    with suppress(psutil.Error):
        while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE:
            with engine.oneshot():
                memory = engine.memory_info().rss / 1e6
            seen.append(Held(memory, engine.num_fds(), engine.num_threads()))
            time.sleep(0.5)


def by_gpt1(folder: Path, names: list[str], slots: int) -> int:
    """One `gpt1 run`, watched; how many commands failed."""
    process = begin(folder, "-c", "from gpt1.cli import main; main()", "run", "-j", str(slots))
    seen = list[Held]()
    watcher = Thread(target=watch, args=(psutil.Process(process.pid), seen))
    watcher.start()
    said, _ = process.communicate()
    watcher.join()
    if process.returncode or not re.search(rf"^{len(names)} stages run in", said, re.MULTILINE):
        print(said, file=sys.stderr)
    left = [other for other in psutil.process_iter() if works_in(other, folder)]
    fifth = len(seen) // 5 or 1
    early, late = (
        Held(*map(max, zip(*part, strict=True))) for part in (seen[:fifth], seen[-fifth:])
    )
    print(
        f"engine: {early.megabytes:.0f} MB, {early.files} files, {early.threads} threads at most in"
        f" its first fifth, {late.megabytes:.0f}, {late.files}, {late.threads} in its last;"
        f" {len(left)} processes left",
        file=sys.stderr,
    )
    return int(process.returncode != 0) + len(left)


def works_in(process: psutil.Process, folder: Path) -> bool:
    """Whether a process is at work in this folder."""
    with suppress(psutil.Error):
        return Path(process.cwd()).is_relative_to(folder)
    return False


def by_bare_dvc(folder: Path, names: list[str], slots: int) -> int:
    """A plain `dvc repro -s` a stage, as many side by side; how many failed."""
    with ThreadPoolExecutor(slots) as threads:
        return sum(
            status != 0
            for status, _ in threads.map(
                lambda name: call(folder, "-m", "dvc", "repro", "-s", name), names
            )
        )


def measure(
    folder: Path,
    names: list[str],
    word: str,
    slots: int,
    run: Callable[[Path, list[str], int], int],
) -> tuple[str, bool]:
    """Cells of a row of the table, and whether all was as it has to be."""
    journal = folder / "journal"
    journal.unlink(missing_ok=True)
    (folder / "word").write_text(word)
    began = time.monotonic()
    failed = run(folder, names, slots)
    took = time.monotonic() - began
    ran = journal.read_text().split() if journal.exists() else []
    once, twice = (
        sum(ran.count(name) == 1 for name in names),
        sum(ran.count(name) > 1 for name in names),
    )
    unrecorded, spoilt = wrong_in_lock(folder, names, word)
    lost = [name for name in unrecorded if name in ran]
    right = not failed and once == len(names) and not unrecorded and not spoilt
    cells = [
        failed,
        once,
        twice,
        len(lost),
        len(names) - len(unrecorded),
        len(names) - len(spoilt),
        f"{took:.0f}",
    ]
    return " | ".join(map(str, cells)), right


def main() -> None:
    """Print the table; status 1 where `gpt1 run` lost anything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--stages", type=int, default=24)
    chosen = parser.parse_args()
    names, all_right = [f"stage-{number:03d}" for number in range(chosen.stages)], True
    print(f"{chosen.stages} stages, {chosen.slots} slots")
    print(
        "| how | commands failed | stages run once | more than once | run but not in dvc.lock |"
        " right in dvc.lock | right on disk | s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        slotted, bare = Path(temporary).resolve() / "slotted", Path(temporary).resolve() / "bare"
        for folder in (slotted, bare):
            make(folder, names)
        for number in range(1, chosen.times + 1):
            cells, right = measure(slotted, names, f"word {number}", chosen.slots, by_gpt1)
            print(f"| gpt1 run, {number} | {cells} |", flush=True)
            all_right = all_right and right
        for beside in (chosen.slots, chosen.stages):
            cells, _ = measure(bare, names, f"word {beside}", beside, by_bare_dvc)
            print(f"| bare dvc repro -s, {beside} side by side | {cells} |", flush=True)
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
