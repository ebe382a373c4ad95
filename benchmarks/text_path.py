"""Text to ids: our encoder against the authors' algorithm in plain Python, on the same books, in
turn; MB/s, and whether the ids are equal.

    python benchmarks/text_path.py [--books FOLDER] [--bpe FOLDER] [--megabytes 5]        in the root of the checkout

  plain       the algorithm of the paper's published encoder, written here in plain Python: ftfy, their standardisation by regular
              expressions, spaCy's tokenizer, lower case, byte pairs merged word by word and remembered; a book at a time
  ours        gpt1.corpus.bpe.Vocabulary.encode, a book at a time, one process
  ours-cores  gpt1.corpus.encoding.encode_texts, as the stage `encode` does: as many processes as cores and text are worth
Each round starts afresh (no word remembered, spaCy loaded anew). Without --books, books of the
made-up town; without --bpe (a folder as data/bpe), a vocabulary learned from the books by our
stages. Time and memory of the stages themselves: benchmarks/text.py.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import (
    finish,
    heading,
    in_turn,
    machine_facts,
    parser,
    rates,
    shown,
    table,
    times_faster,
)
from text import prepare

from gpt1.corpus.bpe import LINE_END, WORD_END, Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.demo.files import write_books
from gpt1.params.yaml import read_yaml

PLAIN = {"—": "-", "–": "-", "―": "-", "…": "...", "´": "'"}
MARKS = re.compile("|".join(re.escape(mark) + "+" for mark in '-~!";?+,)(/*[]}{|_'))
TOWN_PAGES = 400  # of a made-up book: some 0.25 MB
PIECES, HELDOUT = 40, 0.2
WAYS = ("plain", "ours", "ours-cores")


class PlainEncoder:
    """The published algorithm, one step after the other, with the pairs' ranks and the ids as
    dictionaries.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        import ftfy
        import spacy

        self.fix, self.words = ftfy.fix_text, spacy.blank("en")
        self.words.max_length = sys.maxsize
        self.ids = {piece: id_ for id_, piece in enumerate(vocabulary.pieces)}
        self.ranks = {pair: rank for rank, pair in enumerate(vocabulary.merges)}
        self.remembered: dict[str, list[int]] = {}

    def standardised(self, text: str) -> str:
        """Plain dashes, blanks around runs of punctuation, line breaks and blanks made single."""
        for found, plain in PLAIN.items():
            text = text.replace(found, plain)
        text = MARKS.sub(r" \g<0> ", text)
        return re.sub(r"[^\S\n]+", " ", re.sub(r"\s*\n\s*", " \n ", text)).strip()

    def pieces(self, word: str) -> list[str]:
        """A word's characters, the pair of the lowest rank merged everywhere, until no pair has a
        rank.
        """
        pieces = [*word[:-1], word[-1] + WORD_END]
        while len(pieces) > 1:
            pairs = set(pairwise(pieces))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            merged, place = [], 0
            while place < len(pieces):
                if tuple(pieces[place : place + 2]) == best:
                    merged.append(pieces[place] + pieces[place + 1])
                    place += 2
                else:
                    merged.append(pieces[place])
                    place += 1
            pieces = merged
        return pieces

    def encode(self, text: str) -> list[int]:
        """The ids of a text; an unknown piece is 0."""
        ids: list[int] = []
        for token in self.words.tokenizer(self.standardised(self.fix(text))):
            word = token.text.lower()
            if word not in self.remembered:
                found = (
                    [LINE_END] if word.strip(" ") == "\n" else self.pieces(word)
                )  # spaCy's line break holds the blank after it
                self.remembered[word] = [self.ids.get(piece, 0) for piece in found]
            ids += self.remembered[word]
        return ids


def texts_of(folder: Path, megabytes: float) -> list[str]:
    """Books in order of their names until they make so many megabytes; a book that goes beyond is
    cut at a line break.
    """
    texts, left = [], int(megabytes * 1e6)
    for path in sorted(folder.rglob("*.txt")):
        if left <= 0:
            break
        text = path.read_text(encoding="utf-8-sig")[:left]
        texts.append(text[: text.rfind("\n") + 1] or text)
        left -= len(text.encode())
    if not texts:
        raise SystemExit(f"{folder}: expected books as .txt files, found none")
    return texts


def learned(texts: list[str], work: Path, merges: int) -> Path:
    """The folder of a vocabulary that our stages learn from the texts, dealt out to PIECES books so
    that some can be held out.
    """
    pieces = [lines for text in texts for lines in text.splitlines(keepends=True)]
    (work / "texts").mkdir()
    for number in range(PIECES):
        (work / "texts" / f"{number:02d}.txt").write_text(
            "".join(pieces[number::PIECES]), encoding="utf-8"
        )
    prepare(work, work / "texts", 1, "small")
    values = read_yaml(work / "params.yaml")
    values["shard"]["heldout_fraction"], values["bpe"]["merges"] = HELDOUT, merges
    (work / "params.yaml").write_text(json.dumps(values))
    for stage in ("clean", "bpe"):
        subprocess.run([sys.executable, "-m", "gpt1.stages", stage], cwd=work, check=True)
    return work / "data" / "bpe"


def compare(texts: list[str], bpe: Path, rounds: int) -> dict[str, Any]:
    """Rates of the ways, and how many texts they encode alike."""
    ids: dict[str, list[list[int]]] = {}

    def kept(way: str, encode: Callable[[], list[list[int]]]) -> Callable[[], None]:
        return lambda: ids.update({way: encode()})

    def with_new(make: Callable[[], Any]) -> list[list[int]]:
        encoder = make()
        return [encoder.encode(text) for text in texts]

    ways: Mapping[str, Callable[[], list[list[int]]]] = {
        "plain": lambda: with_new(lambda: PlainEncoder(Vocabulary.load(bpe))),
        "ours": lambda: with_new(lambda: Vocabulary.load(bpe)),
        "ours-cores": lambda: list(map(encode_texts("texts", texts, bpe).__getitem__, texts)),
    }
    _, seconds = in_turn({way: kept(way, ways[way]) for way in WAYS}, 0, rounds)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    return {
        "texts": len(texts),
        "megabytes": megabytes,
        "tokens": sum(map(len, ids["plain"])),
        "ways": {
            way: {
                "seconds": seconds[way],
                "megabytes_per_second": rates(seconds[way], megabytes),
                "times_plain": times_faster(seconds[way], seconds["plain"]),
                "equal_texts": sum(
                    np.array_equal(mine, plain)
                    for mine, plain in zip(ids[way], ids["plain"], strict=True)
                ),
            }
            for way in WAYS
        },
    }


def main() -> None:
    options = parser(__doc__, 3)
    options.add_argument("--books", type=Path, help="a folder of .txt files")
    options.add_argument(
        "--bpe", type=Path, help="a folder with vocab.json and merges.txt, as data/bpe"
    )
    options.add_argument("--megabytes", type=float, default=5.0)
    options.add_argument(
        "--merges",
        type=int,
        default=2000,
        help="byte pairs to learn without --bpe (default 2000: few texts have more)",
    )
    arguments = options.parse_args()
    facts = machine_facts()
    with tempfile.TemporaryDirectory() as name:
        work, books = Path(name), arguments.books or Path(name) / "town"
        if arguments.books is None:
            write_books(books, 0, max(2, round(arguments.megabytes * 4)), TOWN_PAGES)
        texts = list(dict.fromkeys(texts_of(books, arguments.megabytes)))
        (work / "run").mkdir()
        bpe = (
            arguments.bpe.absolute()
            if arguments.bpe
            else learned(texts, work / "run", arguments.merges)
        )
        found = compare(texts, bpe, arguments.rounds)
        found["vocabulary"] = json.loads((bpe / "meta.json").read_text())
    print(
        f"{heading(facts)}\n{found['texts']} texts, {found['megabytes']:.1f} MB,"
        f" {found['tokens']:,} tokens, vocabulary of {found['vocabulary']['size']:,}\n"
    )
    print(
        table(
            ["way", "MB/s: median (least to most)", "times plain", "texts with equal ids"],
            [
                [
                    way,
                    shown(row["megabytes_per_second"], 2),
                    shown(row["times_plain"], 1),
                    f"{row['equal_texts']} of {found['texts']}",
                ]
                for way, row in found["ways"].items()
            ],
        )
    )
    finish(arguments.json, facts, found)
    if any(row["equal_texts"] < found["texts"] for row in found["ways"].values()):
        raise SystemExit("expected the same ids from all; they differ")


if __name__ == "__main__":
    main()
