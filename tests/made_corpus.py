"""A made-up folder of books and of three tasks' official files, small enough to run the whole
pipeline in a minute.
"""

import csv
import random
from pathlib import Path

OVERRIDES = [
    "bpe.merges=80",
    "bpe.alphabet_size=40",
    "shard.heldout_fraction=0.3",
    "model.context=32",
    "model.width=16",
    "model.layers=1",
    "model.heads=2",
    "model.feed_forward=64",
    "lstm.units=8",
    "lstm_equal.units=12",
    "pretrain.seeds=[0]",
    "pretrain.dropout=0.0",  # which draws other masks in two processes
    "finetune.dropout=0.0",
    "finetune.classifier_dropout=0.0",
    "pretrain.updates=4",
    "pretrain.warmup_updates=1",
    "pretrain.batch_size=4",
    "pretrain.heldout_updates=2",
    "pretrain.heldout_windows=4",
    "pretrain.log_updates=1",
    "finetune.seeds=[0]",
    "finetune.epochs=1",
    "finetune.batch_size=4",
    "finetune.log_updates=1",
]


def sentence(chance: random.Random, words: list[str]) -> str:
    return " ".join(chance.choices(words, k=chance.randint(3, 9))).capitalize() + "."


def write(folder: Path) -> None:
    """Five books, CoLA (GLUE form), SciTail, Story Cloze under `folder`."""
    chance = random.Random(1)
    words = ["".join(chance.choices("aeinorst", k=chance.randint(2, 6))) for _ in range(200)]

    def say() -> str:
        return sentence(chance, words)

    for name in ("books", "CoLA", "SciTail", "StoryCloze"):
        (folder / name).mkdir(parents=True)
    for book in range(5):
        (folder / "books" / f"book{book}.txt").write_text(
            "\n".join(say() for _ in range(300)) + "\n"
        )
    for name, rows in (("train", 24), ("dev", 12)):
        (folder / "CoLA" / f"{name}.tsv").write_text(
            "".join(f"aa01\t{row % 2}\t\t{say()}\n" for row in range(rows))
        )
    for name, rows in (("train", 24), ("dev", 12), ("test", 12)):
        labels = ("entails", "neutral")
        (folder / "SciTail" / f"scitail_1.0_{name}.tsv").write_text(
            "".join(f"{say()}\t{say()}\t{labels[row % 2]}\n" for row in range(rows))
        )
    for name, rows in (("val", 40), ("test", 12)):
        with (
            folder / "StoryCloze" / f"cloze_test_{name}__spring2016 - cloze_test_ALL_{name}.csv"
        ).open("w", newline="") as file:
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
                [f"id{row}", *(say() for _ in range(6)), 1 + row % 2] for row in range(rows)
            )
