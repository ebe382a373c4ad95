"""Time and memory of the stages clean, bpe and shard on a folder of books.

    python benchmarks/text.py FOLDER [--copies 10]

With --copies n the corpus is n times as large: each further copy of a book has made-up words,
seeded and pronounceable, in place of all but its commonest, so that word types grow with the corpus
as they do in real text.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from gpt1.base.files import stage_folder
from gpt1.base.machine import cores, cpu_name
from gpt1.params.profile import compose

COMMON_WORDS = 3000
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


def write_books(source: Path, target: Path, copies: int) -> int:
    """Fill `target` with the books of `source` and copies - 1 versions of each in made-up words;
    their bytes.
    """
    books = {path.stem: path.read_text("utf-8-sig") for path in sorted(source.rglob("*.txt"))}
    counts = Counter(word for text in books.values() for word in LETTERS.findall(text))
    common = {word for word, _ in counts.most_common(COMMON_WORDS)}
    bytes_ = 0
    for copy in range(copies):
        new = {word: made_up(word, copy) for word in counts if copy and word not in common}
        for name, text in books.items():
            text = LETTERS.sub(lambda word, new=new: new.get(word[0], word[0]), text)
            bytes_ += (target / f"{name}.{copy}.txt").write_bytes(text.encode())
    return bytes_


def watch(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command: seconds, and the peak of its processes' memory together in MB (PSS)."""
    began, peak = time.monotonic(), 0.0
    process = psutil.Popen(command, cwd=folder)
    while process.poll() is None:
        with suppress(psutil.Error):
            everyone = (process, *process.children(recursive=True))
            peak = max(peak, sum(one.memory_full_info().pss for one in everyone) / 1e6)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return time.monotonic() - began, peak


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("books", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        values = compose("small", ["bpe.source=learn"])
        (folder / "params.yaml").write_text(json.dumps(values))
        books = folder / stage_folder("acquire", "corpus", "books")
        books.mkdir(parents=True)
        bytes_ = write_books(given.books, books, given.copies)
        load = psutil.getloadavg()[0]
        print(f"{bytes_ / 1e6:.1f} MB, {cpu_name()}, {cores()} cores, load {load:.1f}")
        for stage in ("clean", "bpe", "shard"):
            seconds, peak = watch([sys.executable, "-m", "gpt1.stages", stage], folder)
            rate = bytes_ / 1e6 / seconds
            print(f"{stage:6} {seconds:6.1f} s  {rate:6.2f} MB/s  {peak:5.0f} MB")


if __name__ == "__main__":
    main()
