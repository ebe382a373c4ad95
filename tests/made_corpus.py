"""A made-up folder of books and of three tasks' official files, small enough to run the whole
pipeline in a minute.
"""

import random
from pathlib import Path

from made_data import put_files

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


STORY = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,"
    "RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)


def write(folder: Path) -> None:
    """Five books, CoLA (GLUE form), SciTail, Story Cloze under `folder`."""
    chance = random.Random(1)
    words = ["".join(chance.choices("aeinorst", k=chance.randint(2, 6))) for _ in range(200)]

    def say() -> str:
        return " ".join(chance.choices(words, k=chance.randint(3, 9))).capitalize() + "."

    files = {
        f"books/book{book}.txt": "".join(f"{say()}\n" for _ in range(300)) for book in range(5)
    }
    for split, rows in (("train", 24), ("dev", 12), ("test", 12)):
        labels = ["entails", "neutral"] * (rows // 2)
        lines = [f"{say()}\t{say()}\t{label}\n" for label in labels]
        files[f"SciTail/scitail_1.0_{split}.tsv"] = "".join(lines)
        if split != "test":
            lines = [f"aa01\t{row % 2}\t\t{say()}\n" for row in range(rows)]
            files[f"CoLA/{split}.tsv"] = "".join(lines)
    for name, rows in (("val", 40), ("test", 12)):
        stories = [
            ",".join([f"id{row}", *(say() for _ in range(6)), f"{1 + row % 2}"]) + "\n"
            for row in range(rows)
        ]
        name = f"StoryCloze/cloze_test_{name}__spring2016 - cloze_test_ALL_{name}.csv"
        files[name] = STORY + "".join(stories)
    put_files(folder, files)
