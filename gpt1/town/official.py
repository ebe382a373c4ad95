"""The official file format of every task."""

import csv
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gpt1.town.rows import Pair, Pronoun, Question, Single, Story
from gpt1.town.sides import Row

NAMES = ("train", "dev", "test")
STORY_COLUMNS = (
    "InputStoryid InputSentence1 InputSentence2 InputSentence3 InputSentence4"
    " RandomFifthSentenceQuiz1 RandomFifthSentenceQuiz2 AnswerRightEnding"
)
Splits = tuple[list[Row], list[Row], list[Row]]
Write = Callable[[Path, Any], None]


def each(write: Write, pattern: str, names: tuple[str, str, str] = NAMES) -> Write:
    """Write each split that has a name into its own file."""

    def write_all(folder: Path, splits: Splits[Any]) -> None:
        for name, rows in zip(names, splits, strict=True):
            if name:
                write(folder / pattern.format(name), rows)

    return write_all


def tsv(path: Path, rows: Iterable[Iterable[object]], start: str = "") -> None:
    """Write one line per row."""
    path.write_text(
        start + "".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8"
    )


def jsonl(path: Path, pairs: Iterable[Pair]) -> None:
    """Write SNLI's and MNLI's files."""
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


def pairs_of_glue(*header: str) -> Write:
    """Write GLUE's files of pairs: numbered rows; test has no labels."""

    def write(path: Path, pairs: list[Pair]) -> None:
        width = len(header) - (path.stem == "test")
        rows = [header, *((number, *pair) for number, pair in enumerate(pairs))]
        tsv(path, (row[:width] for row in rows))

    return each(write, "{}.tsv")


def singles_of_glue(start: str, cells: Callable[[Single], tuple[str, ...]]) -> Write:
    """Write GLUE's files of sentences, below `start`; test has numbers and sentences."""

    def write(path: Path, rows: list[Single]) -> None:
        if path.stem == "test":
            tsv(path, ((number, row.text) for number, row in enumerate(rows)), "index\tsentence\n")
        else:
            tsv(path, map(cells, rows), start)

    return each(write, "{}.tsv")


def race(folder: Path, splits: Splits[Question]) -> None:
    """Write RACE's archive, one file per question."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, questions in zip(NAMES, splits, strict=True):
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


def stories(path: Path, rows: list[Story]) -> None:
    """Write Story Cloze's file."""
    name = path.stem.split("_")[2]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(STORY_COLUMNS.split())
        table.writerows(
            [f"{name}-{number}", *row.sentences, *row.endings, row.right + 1]
            for number, row in enumerate(rows)
        )


def mrpc(path: Path, pairs: list[Pair]) -> None:
    """Write MRPC's file, which has a byte order mark."""
    rows = (
        (pair.label, 2 * number, 2 * number + 1, pair.first, pair.second)
        for number, pair in enumerate(pairs)
    )
    tsv(path, rows, "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n")


def stsb(path: Path, pairs: list[Pair]) -> None:
    """Write STS-B's file, which has no header."""
    about = ("main-town", "town", "2018")
    rows = (
        (*about, number, f"{float(pair.label):.3f}", pair.first, pair.second)
        for number, pair in enumerate(pairs)
    )
    tsv(path, rows)


def pronouns(path: Path, rows: list[Pronoun]) -> None:
    """Write DPRD's file: four lines per row and an empty one."""
    blocks = (
        f"{row.sentence}\n{row.pronoun}\n{','.join(row.candidates)}\n{row.right}\n\n"
        for row in rows
    )
    path.write_text("".join(blocks), encoding="utf-8")
