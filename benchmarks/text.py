"""Time and memory of the stages clean, bpe and shard on a folder of books.

    python benchmarks/text.py FOLDER [--copies 10] [--profile small]

With --copies n the corpus is n times as large: each further copy of a book has made-up words,
seeded and pronounceable, in place of all but its commonest, so that word types grow with the corpus
as they do in real text.
"""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).resolve().parent.parent
KEPT_WORDS = 3000
PR_SET_CHILD_SUBREAPER = 36  # of Linux: prctl(2)
SYLLABLES = [
    consonant + vowel
    for consonant in "bcdfghjklmnprstvwz"
    for vowel in ("a", "e", "i", "o", "u", "ar", "en", "il", "or", "ul")
]
LETTERS = re.compile(r"[a-z]+")


def made_up(word: str, copy: int) -> str:
    """A pronounceable word that depends on the word and the copy alone."""
    generator = random.Random(f"{copy} {word}")
    return "".join(generator.choice(SYLLABLES) for _ in range(2 + len(word) // 3))


def grow(source: Path, target: Path, copies: int) -> None:
    """Fill `target` with the books of `source` and copies - 1 versions of each in made-up words."""
    books = sorted(source.rglob("*.txt"))
    counts: Counter[str] = Counter()
    for book in books:
        counts.update(LETTERS.findall(book.read_text(encoding="utf-8-sig")))
    kept = {word for word, _ in counts.most_common(KEPT_WORDS)}
    for copy in range(copies):
        new = {word: made_up(word, copy) for word in counts if copy and word not in kept}
        for book in books:
            text = book.read_text(encoding="utf-8-sig")
            (target / f"{book.stem}.{copy}.txt").write_text(
                LETTERS.sub(lambda found, new=new: new.get(found[0], found[0]), text),
                encoding="utf-8",
            )


def processor_seconds() -> float:
    """Of all processes that this one has started and waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def watch(command: list[str], folder: Path) -> tuple[float, float, float, float]:
    """Run a command: its seconds, processor seconds, peaks of memory in MB: all its processes
    (PSS), the largest one (RSS).
    """
    # what the command leaves (datatrove's processes are none of its children) is waited for here
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begun, used = time.monotonic(), processor_seconds()
    process = psutil.Popen(command, cwd=folder)
    total = largest = 0.0
    while process.poll() is None:
        shares, sizes = [0], [0]
        try:
            for each in (process, *process.children(recursive=True)):
                memory = each.memory_full_info()
                shares.append(getattr(memory, "pss", memory.rss))
                sizes.append(memory.rss)
        except psutil.Error:
            continue
        total, largest = max(total, sum(shares) / 1e6), max(largest, max(sizes) / 1e6)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    seconds = time.monotonic() - begun
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return seconds, processor_seconds() - used, total, largest


def prepare(work: Path, books: Path, copies: int, profile: str) -> int:
    """A working folder with params.yaml and the books; bytes of the books."""
    values = read_yaml(ROOT / "conf" / "paper.yaml")
    if profile != "paper":
        own = read_yaml(ROOT / "conf" / f"{profile}.yaml")
        for section in ("clean", "bpe", "shard"):
            values[section].update(own.get(section, {}))
    values["bpe"]["source"] = "learn"
    (work / "params.yaml").write_text(json.dumps(values))
    target = work / "data" / "acquire" / "corpus" / "books"
    target.mkdir(parents=True)
    if copies == 1:
        for book in books.rglob("*.txt"):
            shutil.copy(book, target)
    else:
        grow(books, target, copies)
    return sum(book.stat().st_size for book in target.iterdir())


def processor() -> str:
    for line in (
        Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ()
    ):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def show(name: str, bytes_: int, seconds: float, used: float, total: float, largest: float) -> None:
    print(
        f"{name:6} {seconds:6.1f} s ({used:6.1f} s of processors)  {bytes_ / 1e6 / seconds:6.2f}"
        f" MB/s  all processes {total:5.0f} MB  largest {largest:5.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("books", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--profile", default="small")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bytes_ = prepare(Path(name), arguments.books, arguments.copies, arguments.profile)
        print(
            f"{bytes_ / 1e6:.1f} MB, {len(psutil.Process().cpu_affinity())} cores, {processor()},"
            f" load {psutil.getloadavg()[0]:.1f}"
        )
        rows = []
        for stage in ("clean", "bpe", "shard"):
            rows.append(watch([sys.executable, "-m", "gpt1.stages", stage], Path(name)))
            show(stage, bytes_, *rows[-1])
        show(
            "sum",
            bytes_,
            sum(row[0] for row in rows),
            sum(row[1] for row in rows),
            max(row[2] for row in rows),
            max(row[3] for row in rows),
        )
        print(json.dumps(json.loads((Path(name) / "data/bpe/meta.json").read_text())))


if __name__ == "__main__":
    main()
