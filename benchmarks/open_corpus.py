"""From `acquire` to `shard` on a folder as PG-19's, of any size, made up here: MB/s, MB/s a core,
peak memory of each stage.

    python benchmarks/open_corpus.py [--megabytes 100] [--keep FOLDER]        in the root of the checkout

The folder has train/, validation/ and test/ with numbered books of some 400 kB and metadata.csv;
words are drawn by Zipf's law from 30,000 that all books share and 1,500 of a book's own, so that
word types grow with the corpus as in real text. Cores: those of this process (taskset -c 0 for
one). MB/s a core: by the processor seconds that all processes of a stage used.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil
from text import KEPT_WORDS, SYLLABLES, processor, show, watch

from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).resolve().parent.parent
SHARED_WORDS, OWN_WORDS, OWN_SHARE = 10 * KEPT_WORDS, 1500, 0.05
WORDS_A_BOOK, WORDS_A_LINE, LINES_A_PARAGRAPH = 72_000, 12, 6
STAGES = (["acquire", "books"], ["clean"], ["bpe"], ["shard"])


def made_words(generator: np.random.Generator, count: int) -> list[str]:
    """Pronounceable words of two to four syllables."""
    syllables = np.array(SYLLABLES)
    return [
        "".join(syllables[generator.integers(0, len(syllables), size)])
        for size in generator.integers(2, 5, count)
    ]


def drawn(generator: np.random.Generator, words: int, count: int) -> np.ndarray:
    """Numbers of `count` words by Zipf's law."""
    ends = np.cumsum(1.0 / (np.arange(words) + 2.7))
    return np.searchsorted(ends, generator.random(count) * ends[-1])


def book(number: int, shared: list[str]) -> str:
    """A book with words of its own: sentences, paragraphs, lines of a printed page."""
    generator = np.random.default_rng(number)
    own = [word.capitalize() for word in made_words(generator, OWN_WORDS)]
    words = np.array(shared, dtype=object)[drawn(generator, len(shared), WORDS_A_BOOK)]
    places = np.flatnonzero(generator.random(WORDS_A_BOOK) < OWN_SHARE)
    words[places] = np.array(own, dtype=object)[drawn(generator, OWN_WORDS, len(places))]
    marks = np.array(["", ",", ".", ";", "!", "?”", "’s", "--"], dtype=object)
    words = (
        words
        + marks[
            generator.choice(
                len(marks), WORDS_A_BOOK, p=[0.83, 0.07, 0.06, 0.01, 0.005, 0.005, 0.01, 0.01]
            )
        ]
    )
    lines = [
        " ".join(words[start : start + WORDS_A_LINE])
        for start in range(0, WORDS_A_BOOK, WORDS_A_LINE)
    ]
    return (
        "\n\n".join(
            "\n".join(lines[start : start + LINES_A_PARAGRAPH])
            for start in range(0, len(lines), LINES_A_PARAGRAPH)
        )
        + "\n"
    )


def make(folder: Path, megabytes: float) -> tuple[int, int]:
    """Fill `folder` with a corpus in PG-19's layout; its books and bytes."""
    shared = made_words(np.random.default_rng(0), SHARED_WORDS)
    rows, bytes_ = [], 0
    while bytes_ < megabytes * 1e6:
        number = len(rows) + 1
        place = folder / (
            "validation" if number % 100 == 1 else "test" if number % 100 == 2 else "train"
        )
        place.mkdir(parents=True, exist_ok=True)
        bytes_ += (place / f"{number}.txt").write_bytes(book(number, shared).encode())
        rows.append(f"{number},Book {number},1900,http://www.gutenberg.org/ebooks/{number}\n")
    (folder / "metadata.csv").write_text("".join(rows))
    return len(rows), bytes_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--keep", type=Path, help="work in this empty folder and leave all there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = arguments.keep or Path(name)
        books, bytes_ = make(work / "data" / "raw" / "books", arguments.megabytes)
        values = read_yaml(ROOT / "conf" / "paper.yaml")
        values["clean"]["corpus_name"] = "made up in PG-19's layout"
        values["bpe"]["source"], values["shard"]["heldout_fraction"] = "learn", 0.02
        (work / "params.yaml").write_text(json.dumps(values))
        print(
            f"{books:,} books, {bytes_ / 1e6:.1f} MB, {len(psutil.Process().cpu_affinity())} cores,"
            f" {processor()}, load {psutil.getloadavg()[0]:.1f}"
        )
        rows = []
        for stage in STAGES:
            rows.append(watch([sys.executable, "-m", "gpt1.stages", *stage], work))
            show(stage[0], bytes_, *rows[-1])
            print(f"       {bytes_ / 1e6 / rows[-1][1]:6.2f} MB/s a core", flush=True)
        used = sum(row[1] for row in rows)
        show(
            "sum",
            bytes_,
            sum(row[0] for row in rows),
            used,
            max(row[2] for row in rows),
            max(row[3] for row in rows),
        )
        print(f"       {bytes_ / 1e6 / used:6.2f} MB/s a core")
        meta = json.loads((work / "data/bpe/meta.json").read_text())
        counts = json.loads((work / "data/clean/counts.json").read_text())
        print(
            json.dumps(
                {
                    "recognised": counts.get("recognised"),
                    **counts["totals"],
                    "word_types": meta["word_types"],
                }
            )
        )


if __name__ == "__main__":
    main()
