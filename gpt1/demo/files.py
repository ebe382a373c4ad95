"""The world on disk: books, and every task in its official file format, so that the readers of the
real files read these.
"""

import csv
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from gpt1.demo.books import write_book
from gpt1.demo.choices import passage, pronoun, story
from gpt1.demo.pairs import Pair, answers, duplicate, entailment, paraphrase, similarity
from gpt1.demo.sides import Row, Side, clauses, distinct
from gpt1.demo.singles import acceptability, sentiment

SIZES = {  # rows of train, dev and test; where the official test has no labels the tables score dev
    "snli": (1000, 200, 500),
    "mnli": (1000, 500, 200),
    "qnli": (800, 500, 200),
    "rte": (200, 300, 200),
    "scitail": (800, 200, 500),
    "race": (400, 200, 600),
    "story_cloze": (500, 0, 500),
    "mrpc": (800, 0, 500),
    "qqp": (600, 500, 200),
    "stsb": (1000, 200, 500),
    "sst2": (200, 500, 200),
    "cola": (600, 500, 200),
    "dprd": (200, 0, 300),
}
MATCHED = ("story", "letter", "report")
MISMATCHED = ("talk", "diary", "notice")
NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")

Splits = tuple[list[Row], list[Row], list[Row]]


def write_books(folder: Path, seed: int, books: int, pages: int) -> set[str]:
    """Write the books; every clause in them."""
    folder.mkdir(parents=True)
    said: set[str] = set()
    for number in range(books):
        book = write_book(f"{seed}/books/{number}", pages)
        (folder / f"town {number:03d}.txt").write_text(book.text, encoding="utf-8")
        said.update(clauses(book.text))
    return said


def draw(seed: int, task: str, make: Callable[[Side, int], Row], known: set[str]) -> Splits[Row]:
    """Train on one side, dev and test on the other."""
    train, dev, test = SIZES[task]
    learn, check = (Side(number, Random(f"{seed}/{task}/{number}")) for number in (0, 1))
    tested = distinct(lambda number: make(check, number), dev + test, known)
    return distinct(lambda number: make(learn, number), train, known), tested[:dev], tested[dev:]


def write_world(folder: Path, seed: int, books: int, pages: int) -> None:
    """Write <folder>/<source> for the books, every task and the pronouns. Equal arguments give
    equal bytes.
    """
    known = write_books(folder / "books", seed, books, pages)
    for task, write in WRITERS.items():
        (folder / task).mkdir()
        write(folder / task, seed, known)


def _tsv(path: Path, rows: Iterable[Iterable[object]], start: str = "") -> None:
    path.write_text(
        start + "".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8"
    )


def _jsonl(path: Path, pairs: Iterable[Pair], genre: str) -> None:
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


def _glue(folder: Path, splits: Splits[Pair], header: tuple[str, ...]) -> None:
    train, dev, test = splits
    for name, pairs in (("train", train), ("dev", dev)):
        _tsv(
            folder / f"{name}.tsv",
            [header, *((number, *pair) for number, pair in enumerate(pairs))],
        )
    _tsv(
        folder / "test.tsv",
        [header[:-1], *((number, *pair[:-1]) for number, pair in enumerate(test))],
    )


def _snli(folder: Path, seed: int, known: set[str]) -> None:
    splits = draw(
        seed, "snli", lambda side, number: entailment(side, "snli", NLI[number % 3], "story"), known
    )
    for name, pairs in zip(("train", "dev", "test"), splits, strict=True):
        _jsonl(folder / f"snli_1.0_{name}.jsonl", pairs, "captions")


def _mnli(folder: Path, seed: int, known: set[str]) -> None:
    def of(genres: tuple[str, ...]) -> Callable[[Side, int], Pair]:
        return lambda side, number: entailment(
            side, "mnli", NLI[number % 3], genres[number // 3 % 3]
        )

    train, matched, _ = draw(seed, "mnli", of(MATCHED), known)
    _, mismatched, _ = draw(seed + 1_000_003, "mnli", of(MISMATCHED), known)
    for name, pairs in (("train", train), ("dev_matched", matched), ("dev_mismatched", mismatched)):
        _jsonl(folder / f"multinli_1.0_{name}.jsonl", pairs, name.rpartition("_")[2])


def _qnli(folder: Path, seed: int, known: set[str]) -> None:
    _glue(
        folder,
        draw(seed, "qnli", lambda side, number: answers(side, ENTAILMENT[number % 2]), known),
        ("index", "question", "sentence", "label"),
    )


def _rte(folder: Path, seed: int, known: set[str]) -> None:
    def make(side: Side, number: int) -> Pair:
        label = "entailment" if number % 2 == 0 else side.chance.choice(NLI[1:])
        return entailment(side, "rte", label, side.chance.choice(MATCHED))._replace(
            label=ENTAILMENT[number % 2]
        )

    _glue(folder, draw(seed, "rte", make, known), ("index", "sentence1", "sentence2", "label"))


def _scitail(folder: Path, seed: int, known: set[str]) -> None:
    def make(side: Side, number: int) -> Pair:
        pair = entailment(side, "scitail", NLI[number % 2], "story")
        return pair._replace(label=("entails", "neutral")[number % 2])

    for name, pairs in zip(
        ("train", "dev", "test"), draw(seed, "scitail", make, known), strict=True
    ):
        _tsv(folder / f"scitail_1.0_{name}.tsv", pairs)


def _race(folder: Path, seed: int, known: set[str]) -> None:
    splits = draw(seed, "race", lambda side, number: passage(side, high=number % 2 == 1), known)
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


def _story_cloze(folder: Path, seed: int, known: set[str]) -> None:
    header = [
        "InputStoryid",
        *(f"InputSentence{number}" for number in range(1, 5)),
        "RandomFifthSentenceQuiz1",
        "RandomFifthSentenceQuiz2",
        "AnswerRightEnding",
    ]
    train, _, test = draw(seed, "story_cloze", lambda side, number: story(side, number % 2), known)
    for name, stories in (("val", train), ("test", test)):
        with (folder / f"cloze_test_{name}__spring2016 - cloze_test_ALL_{name}.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            table = csv.writer(file)
            table.writerow(header)
            table.writerows(
                [f"{name}-{number}", *row.sentences, *row.endings, row.right + 1]
                for number, row in enumerate(stories)
            )


def _mrpc(folder: Path, seed: int, known: set[str]) -> None:
    train, _, test = draw(
        seed, "mrpc", lambda side, number: paraphrase(side, number % 2 == 0), known
    )
    for name, pairs in (("train", train), ("test", test)):
        _tsv(
            folder / f"msr_paraphrase_{name}.txt",
            (
                (pair.label, 2 * number, 2 * number + 1, pair.first, pair.second)
                for number, pair in enumerate(pairs)
            ),
            "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n",
        )


def _qqp(folder: Path, seed: int, known: set[str]) -> None:
    header = ("id", "question1", "question2", "is_duplicate")
    _glue(
        folder,
        draw(seed, "qqp", lambda side, number: duplicate(side, number % 2 == 0), known),
        header,
    )


def _stsb(folder: Path, seed: int, known: set[str]) -> None:
    splits = draw(seed, "stsb", lambda side, number: similarity(side, number % 3), known)
    for name, pairs in zip(("train", "dev", "test"), splits, strict=True):
        _tsv(
            folder / f"sts-{name}.csv",
            (
                (
                    "main-town",
                    "town",
                    "2018",
                    number,
                    f"{float(pair.label):.3f}",
                    pair.first,
                    pair.second,
                )
                for number, pair in enumerate(pairs)
            ),
        )


def _sst2(folder: Path, seed: int, known: set[str]) -> None:
    train, dev, test = draw(
        seed, "sst2", lambda side, number: sentiment(side, number % 2 == 0), known
    )
    for name, rows in (("train", train), ("dev", dev)):
        _tsv(folder / f"{name}.tsv", rows, "sentence\tlabel\n")
    _tsv(
        folder / "test.tsv",
        ((number, row.text) for number, row in enumerate(test)),
        "index\tsentence\n",
    )


def _cola(folder: Path, seed: int, known: set[str]) -> None:
    train, dev, test = draw(
        seed, "cola", lambda side, number: acceptability(side, number % 2 == 0), known
    )
    for name, rows in (("train", train), ("dev", dev)):
        _tsv(
            folder / f"{name}.tsv",
            (("town", row.label, "" if row.label == "1" else "*", row.text) for row in rows),
        )
    _tsv(
        folder / "test.tsv",
        ((number, row.text) for number, row in enumerate(test)),
        "index\tsentence\n",
    )


def _dprd(folder: Path, seed: int, known: set[str]) -> None:
    train, _, test = draw(
        seed, "dprd", lambda side, number: pronoun(side, first=number % 2 == 0), known
    )
    for name, rows in (("train", train), ("test", test)):
        (folder / f"{name}.c.txt").write_text(
            "".join(
                f"{row.sentence}\n{row.pronoun}\n{','.join(row.candidates)}\n{row.right}\n\n"
                for row in rows
            ),
            encoding="utf-8",
        )


WRITERS: dict[str, Callable[[Path, int, set[str]], None]] = {
    "snli": _snli,
    "mnli": _mnli,
    "qnli": _qnli,
    "rte": _rte,
    "scitail": _scitail,
    "race": _race,
    "story_cloze": _story_cloze,
    "mrpc": _mrpc,
    "qqp": _qqp,
    "stsb": _stsb,
    "sst2": _sst2,
    "cola": _cola,
    "dprd": _dprd,
}
