"""Text to ids: our encoder against the authors' algorithm in plain Python, on the same books, in
turn; MB/s, and whether the ids are equal.

    python benchmarks/text_path.py [--books FOLDER] [--bpe FOLDER] [--megabytes 5]

In the root of a run's checkout, whose books and vocabulary are the default.
  plain       the algorithm of the paper's published encoder, written here in plain Python: ftfy, their standardisation by regular
              expressions, spaCy's tokenizer, lower case, byte pairs merged word by word and remembered; a book at a time
  ours        gpt1.corpus.bpe.Vocabulary.encode, a book at a time, one process
  ours-cores  gpt1.corpus.encoding.encode_texts, as the stage `encode` does: as many processes as cores and text are worth
Each round starts afresh (no word remembered, spaCy loaded anew).
"""

import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import ftfy
import numpy as np
import spacy
from measuring import heading, in_turn, parser, rates, spread, table, times_faster

from gpt1.base.files import stage_folder
from gpt1.corpus.bpe import LINE_END, WORD_END, Vocabulary
from gpt1.corpus.encoding import encode_texts

PLAIN = {"—": "-", "–": "-", "―": "-", "…": "...", "´": "'"}
MARKS = re.compile("|".join(re.escape(mark) + "+" for mark in '-~!";?+,)(/*[]}{|_'))


class PlainEncoder:
    """The published algorithm, one step after the other, with the pairs' ranks and the ids as
    dictionaries.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.words = spacy.blank("en")
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
            best = min(pairwise(pieces), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            merged, place = [], 0
            while place < len(pieces):
                size = 2 if tuple(pieces[place : place + 2]) == best else 1
                merged.append("".join(pieces[place : place + size]))
                place += size
            pieces = merged
        return pieces

    def encode(self, text: str) -> list[int]:
        """The ids of a text; an unknown piece is 0."""
        ids: list[int] = []
        for token in self.words.tokenizer(self.standardised(ftfy.fix_text(text))):
            word = token.text.lower()
            if word not in self.remembered:
                line = word.strip(" ") == "\n"  # spaCy's line break holds the blank after it
                pieces = [LINE_END] if line else self.pieces(word)
                self.remembered[word] = [self.ids.get(piece, 0) for piece in pieces]
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
    return list(dict.fromkeys(texts))


def main() -> None:
    options = parser(__doc__, rounds=3)
    books = stage_folder("acquire", "corpus", "books")
    options.add_argument("--books", type=Path, default=books, help="a folder of .txt files")
    options.add_argument("--bpe", type=Path, default=stage_folder("bpe"), help="a vocabulary's")
    options.add_argument("--megabytes", type=float, default=5.0)
    given = options.parse_args()
    print(heading())
    texts = texts_of(given.books, given.megabytes)

    def one_by_one(encoder: Any) -> list[list[int]]:
        return [encoder.encode(text) for text in texts]

    ways: dict[str, Callable[[], list[Any]]] = {
        "plain": lambda: one_by_one(PlainEncoder(Vocabulary.load(given.bpe))),
        "ours": lambda: one_by_one(Vocabulary.load(given.bpe)),
        "ours-cores": lambda: list(map(encode_texts("texts", texts, given.bpe).get, texts)),
    }
    ids: dict[str, list[Any]] = {}
    seconds = in_turn(
        {way: lambda way=way: ids.update({way: ways[way]()}) for way in ways}, 0, given.rounds
    )
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    equal = {way: sum(map(np.array_equal, ids[way], ids["plain"])) for way in ways}
    print(f"{len(texts)} texts, {megabytes:.1f} MB, {sum(map(len, ids['plain'])):,} tokens\n")
    rows = [
        [
            way,
            spread(rates(seconds[way], megabytes), 2),
            times_faster(seconds[way], seconds["plain"]),
            f"{equal[way]} of {len(texts)}",
        ]
        for way in ways
    ]
    header = ["way", "MB/s: median (least to most)", "times plain", "texts with equal ids"]
    print(table(header, rows))
    if min(equal.values()) < len(texts):
        raise SystemExit("expected the same ids from all; they differ")


if __name__ == "__main__":
    main()
