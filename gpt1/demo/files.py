"""The world on disk: books, and every task in its official file format, so that the readers of the
real files read these.
"""

import csv
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from gpt1.demo.books import write_book
from gpt1.demo.choices import Story, passages, pronouns, stories
from gpt1.demo.pairs import (
    ENTAILMENT,
    NLI,
    RTE_CLAIMS,
    SCITAIL_CLAIMS,
    Pair,
    answers,
    duplicate,
    entailment,
    follows,
    paraphrase,
    similarity,
)
from gpt1.demo.sides import Row, Side, clauses, distinct, sentences
from gpt1.demo.singles import Single, acceptability, sentiment
from gpt1.demo.tales import ORDER

SIZES = {  # rows of train, dev and test; where the official test has no labels the tables score dev
    "snli": (1000, 200, 500),
    "mnli": (900, 600, 300),
    "qnli": (400, 500, 200),
    "rte": (400, 400, 200),
    "scitail": (400, 200, 500),
    "race": (400, 200, 600),
    "story_cloze": (1000, 0, 500),
    "mrpc": (400, 100, 500),
    "qqp": (600, 500, 200),
    "stsb": (1000, 200, 500),
    "sst2": (200, 500, 200),
    "cola": (600, 500, 200),
    "dprd": (200, 0, 300),
}
MATCHED = ("story", "letter", "report")
MISMATCHED = ("talk", "diary", "notice")
MISMATCHED_SEED = 1_000_003  # added to the seed
NAMES = ("train", "dev", "test")
NO_DEV = ("train", "", "test")

Splits = tuple[list[Row], list[Row], list[Row]]
Write = Callable[[Path, Any], None]


def write_books(folder: Path, seed: int, books: int, pages: int) -> set[str]:
    """Write the books; every clause and every sentence in them."""
    folder.mkdir(parents=True)
    said: set[str] = set()
    for number in range(books):
        book = write_book(f"{seed}/books/{number}", pages)
        (folder / f"town {number:03d}.txt").write_text(book.text, encoding="utf-8")
        said.update(clauses(book.text), sentences(book.text))
    return said


def draw(
    seed: int, task: str, make: Callable[[Side, int], list[Row]], known: set[str]
) -> Splits[Row]:
    """Train on one side, dev and test on the other."""
    train, dev, test = SIZES[task]
    learn, check = (Side(number, Random(f"{seed}/{task}/{number}"), known) for number in (0, 1))
    tested = distinct(lambda number: make(check, number), dev + test, known)
    return distinct(lambda number: make(learn, number), train, known), tested[:dev], tested[dev:]


def write_world(folder: Path, seed: int, books: int, pages: int) -> None:
    """Write <folder>/<source> for the books, every task and the pronouns. Equal arguments give
    equal bytes.
    """
    known = write_books(folder / "books", seed, books, pages)
    for task, (make, write) in TASKS.items():
        (folder / task).mkdir()
        write(folder / task, draw(seed, task, make, known))
    _, mismatched, _ = draw(seed + MISMATCHED_SEED, "mnli", partial(_mnli, MISMATCHED), known)
    _jsonl(folder / "mnli/multinli_1.0_dev_mismatched.jsonl", mismatched)


def _mnli(genres: tuple[str, ...], side: Side, number: int) -> list[Pair]:
    return entailment(side, "mnli", NLI[number % 3], genres[number // 3 % 3])


def _each(
    write: Callable[[Path, Any], object], pattern: str, names: tuple[str, str, str] = NAMES
) -> Write:
    """Write each split into a file of its own; one without a name is left out."""

    def write_all(folder: Path, splits: Splits[Any]) -> None:
        for name, rows in zip(names, splits, strict=True):
            if name:
                write(folder / pattern.format(name), rows)

    return write_all


def _tsv(path: Path, rows: Iterable[Iterable[object]], start: str = "") -> None:
    path.write_text(
        start + "".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8"
    )


def _jsonl(path: Path, pairs: Iterable[Pair]) -> None:
    """The genre is "captions" (SNLI), or what stands last in the file's name (MNLI)."""
    genre = "captions" if path.stem.startswith("snli") else path.stem.rpartition("_")[2]
    rows = (
        {
            "gold_label": pair.label,
            "sentence1": pair.first,
            "sentence2": pair.second,
            "pairID": f"{path.stem}-{number}",
            "genre": genre,
        }
        for number, pair in enumerate(pairs)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _pairs_of_glue(*header: str) -> Write:
    """GLUE's files: numbered rows, in test without their last column, the label."""

    def write(path: Path, pairs: list[Pair]) -> None:
        width = len(header) - (path.stem == "test")
        rows = [header, *((number, *pair) for number, pair in enumerate(pairs))]
        _tsv(path, (row[:width] for row in rows))

    return _each(write, "{}.tsv")


def _singles_of_glue(start: str, cells: Callable[[Single], tuple[str, ...]]) -> Write:
    """GLUE's files of single sentences: `start` and such cells, in test numbers and sentences."""

    def write(path: Path, rows: list[Single]) -> None:
        if path.stem == "test":
            _tsv(path, ((number, row.text) for number, row in enumerate(rows)), "index\tsentence\n")
        else:
            _tsv(path, map(cells, rows), start)

    return _each(write, "{}.tsv")


def _race(folder: Path, splits: Splits[Any]) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, questions in zip(("train", "dev", "test"), splits, strict=True):
            for number, row in enumerate(questions):
                level = ("middle", "high")[number % 2]
                text = json.dumps(
                    {
                        "id": f"{level}{number}.txt",
                        "article": row.passage,
                        "questions": [row.question],
                        "options": [list(row.options)],
                        "answers": ["ABCD"[row.right]],
                    }
                ).encode()
                about = tarfile.TarInfo(f"RACE/{name}/{level}/{number}.txt")
                about.size = len(text)
                tar.addfile(about, io.BytesIO(text))
    # A gzip file by zlib: the header of gzip.compress differs between Python 3.12 and 3.13.
    (folder / "RACE.tar.gz").write_bytes(zlib.compress(packed.getvalue(), 9, wbits=31))


def _stories(path: Path, stories: list[Story]) -> None:
    name = path.stem.split("_")[2]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            [
                "InputStoryid",
                *(f"InputSentence{number}" for number in range(1, 5)),
                "RandomFifthSentenceQuiz1",
                "RandomFifthSentenceQuiz2",
                "AnswerRightEnding",
            ]
        )
        table.writerows(
            [f"{name}-{number}", *row.sentences, *row.endings, row.right + 1]
            for number, row in enumerate(stories)
        )


def _mrpc(folder: Path, splits: Splits[Pair]) -> None:
    """GLUE's files of train and dev beside the official test: shares of one file would part
    twins.
    """
    for name, pairs in zip(
        ("train.tsv", "dev.tsv", "msr_paraphrase_test.txt"), splits, strict=True
    ):
        rows = (
            (pair.label, 2 * number, 2 * number + 1, pair.first, pair.second)
            for number, pair in enumerate(pairs)
        )
        _tsv(folder / name, rows, "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n")


def _stsb(path: Path, pairs: list[Pair]) -> None:
    about = ("main-town", "town", "2018")
    rows = (
        (*about, number, f"{float(pair.label):.3f}", pair.first, pair.second)
        for number, pair in enumerate(pairs)
    )
    _tsv(path, rows)


def _pronouns(path: Path, rows: list[Any]) -> None:
    blocks = (
        f"{row.sentence}\n{row.pronoun}\n{','.join(row.candidates)}\n{row.right}\n\n"
        for row in rows
    )
    path.write_text("".join(blocks), encoding="utf-8")


# how a side's row of a number is made, and how the three splits are written
TASKS: dict[str, tuple[Callable[[Side, int], list[Any]], Write]] = {
    "snli": (
        lambda side, number: entailment(side, "snli", NLI[number % 3], "story"),
        _each(_jsonl, "snli_1.0_{}.jsonl"),
    ),
    "mnli": (
        partial(_mnli, MATCHED),
        _each(_jsonl, "multinli_1.0_{}.jsonl", ("train", "dev_matched", "")),
    ),
    "qnli": (
        lambda side, _: answers(side),
        _pairs_of_glue("index", "question", "sentence", "label"),
    ),
    "rte": (
        lambda side, _: follows(side, ORDER, RTE_CLAIMS, ENTAILMENT),
        _pairs_of_glue("index", "sentence1", "sentence2", "label"),
    ),
    "scitail": (
        lambda side, _: follows(side, ORDER, SCITAIL_CLAIMS, ("entails", "neutral")),
        _each(_tsv, "scitail_1.0_{}.tsv"),
    ),
    "race": (lambda side, number: passages(side, number % 2), _race),
    "story_cloze": (
        lambda side, number: stories(side, number % 2),
        _each(_stories, "cloze_test_{0}__spring2016 - cloze_test_ALL_{0}.csv", ("val", "", "test")),
    ),
    "mrpc": (
        lambda side, _: paraphrase(side),
        _mrpc,
    ),
    "qqp": (
        lambda side, number: duplicate(side, number % 2 == 0),
        _pairs_of_glue("id", "question1", "question2", "is_duplicate"),
    ),
    "stsb": (lambda side, number: similarity(side, number % 3), _each(_stsb, "sts-{}.csv")),
    "sst2": (
        lambda side, number: sentiment(side, number % 2 == 0),
        _singles_of_glue("sentence\tlabel\n", lambda row: row),
    ),
    "cola": (
        lambda side, _: acceptability(side),
        _singles_of_glue(
            "", lambda row: ("town", row.label, "" if row.label == "1" else "*", row.text)
        ),
    ),
    "dprd": (
        lambda side, _: pronouns(side),
        _each(_pronouns, "{}.c.txt", NO_DEV),
    ),
}
