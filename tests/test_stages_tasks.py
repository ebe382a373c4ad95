"""`encode` as a stage, with a vocabulary of single characters: sequences, labels, counts and equal
bytes.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from made_data import put_acquired, put_files, write_paper_params

from gpt1.base.files import read_json
from gpt1.corpus.bpe import Vocabulary
from gpt1.stages import acquire, encode
from gpt1.tasks.definitions import TASKS

COLA = "gj04\t1\t\tThe cat sat.\n"
PASSAGE = {
    "file": "f",
    "article": "Cats.",
    "questions": ["Hi?"],
    "options": [["c", "d", "e", "f"]],
    "answers": ["A"],
}
CHARACTERS = "abcdefghijklmnopqrstuvwxyz.,?0123456789"
START = 2 * len(CHARACTERS) + 2
DELIMITER, EXTRACT = START + 1, START + 2


@pytest.fixture
def checkout(elsewhere):
    """A folder with the paper's params.yaml at context 16."""
    write_paper_params(elsewhere, model={"context": 16})


@pytest.fixture
def vocabulary(checkout):
    """A vocabulary of single characters, so that ids can be worked out by hand."""
    Vocabulary(CHARACTERS, []).save(Path("data/bpe"), {})


def encoded(task, group):
    """task.json and the arrays of every split, after the stage has run."""
    encode.main(task)
    folder = Path("data/encode") / group / task
    return read_json(folder / "task.json"), {
        path.stem: dict(np.load(path, allow_pickle=False)) for path in folder.glob("*.npz")
    }


def test_as_many_bad_rows_as_the_limit_allows_are_counted_and_left_out(vocabulary):
    train = "\ufeff" + (COLA * 199).replace("\n", "\r\n") + "gj04\t1\t\r\n"
    put_acquired("cola", {"train.tsv": train, "dev.tsv": COLA * 3})
    about, arrays = encoded("cola", "glue")
    assert arrays["train"]["labels"].tolist() == [1] * 199
    assert len(about["splits"]["train"].pop("sha256")) == 64
    assert about["splits"]["train"] == {
        "examples": 199,
        "available": 199,
        "rows_read": 200,
        "unreadable": {"too few columns": 1},
        "left_out": {},
        "labelled": True,
        "truncated": 0,
    }


def ids(text):
    """Ids of words written with blanks between, worked out from the layout: <unk>, characters,
    characters at a word's end; | is the delimiter.
    """
    if "|" in text:
        one, other = map(ids, text.split("|"))
        return [*one, DELIMITER, *other]
    return [
        1 + CHARACTERS.index(letter) + (len(CHARACTERS) if number == len(word) - 1 else 0)
        for word in text.split()
        for number, letter in enumerate(word)
    ]


def sequences(arrays):
    ends = zip(arrays["offsets"], arrays["offsets"][1:], strict=False)
    return [arrays["tokens"][begin:end].tolist() for begin, end in ends]


def test_a_text_is_cut_to_the_context(vocabulary):
    long = COLA + "gj04\t0\t*\tAbcdefghijklmnopq\n"
    test = "index\tsentence\n0\tIt.\n"
    put_acquired("cola", {"train.tsv": COLA, "dev.tsv": long, "test.tsv": test})
    about, arrays = encoded("cola", "glue")
    assert sequences(arrays["dev"])[1] == [START, *ids("abcdefghijklmnopq")[:14], EXTRACT]
    truncated = {name: split["truncated"] for name, split in about["splits"].items()}
    assert truncated == {"train": 0, "dev": 1, "test": 0}
    assert arrays["dev"]["labels"].tolist() == [1, 0]
    assert arrays["test"]["labels"].tolist() == [-1]
    assert about["labels"] == ["unacceptable", "acceptable"]
    assert about["vocabulary_size"] == START == 2 * len(CHARACTERS) + 2


VAL, TEST = TASKS["story_cloze"].source.layouts[0].required
STORIES = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,"
    "AnswerRightEnding\r\n"
    + 'id,"Ann, my cat, sat.",She ran.,It fell.,We ate.,All was well.,No one came.,2\r\n'
    * 10
)
MSR = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n" + "1\t1\t2\tMy cat\tA cat\r\n" * 10
STSB = "g\tf\t2012\t1\t3.75\tA cat\tMy dog\n"


@pytest.mark.parametrize(
    ("task", "group", "files", "sizes", "texts", "label", "about"),
    [
        (
            "cola",
            "glue",
            {"train.tsv": COLA, "dev.tsv": COLA},
            [1, 1],
            ["the cat sat ."],
            1,
            ["classification", "single", 1, 2, "class", "matthews"],
        ),
        (
            "stsb",
            "glue",
            {f"sts-{split}.csv": STSB for split in ("train", "dev", "test")},
            [1, 1, 1],
            ["a cat|my dog", "my dog|a cat"],
            3.75,
            ["similarity", "sum", 2, 6, "score", "pearson"],
        ),
        (
            "mrpc",
            "glue",
            {"msr_paraphrase_train.txt": MSR, "msr_paraphrase_test.txt": MSR},
            [1, 10, 9],
            ["my cat|a cat", "a cat|my cat"],
            1,
            ["similarity", "sum", 2, 2, "class", "f1"],
        ),
        (
            "story_cloze",
            "qa",
            {VAL: STORIES, TEST: STORIES},
            [2, 10, 8],
            ["ann , my|all was"],  # six tokens a part
            1,
            ["multiple_choice", "choose", 2, 2, "class", "accuracy"],
        ),
        (
            "race",
            "qa",
            {
                f"RACE/{split}/{level}/1.txt": json.dumps(PASSAGE)
                for split in ("train", "dev", "test")
                for level in ("middle", "high")
            },
            [2, 2, 2],
            ["cats . hi ?|c", "cats . hi ?|d"],
            0,
            ["multiple_choice", "choose", 4, 4, "class", "accuracy"],
        ),
    ],
)
def test_from_raw_files_to_ids(vocabulary, task, group, files, sizes, texts, label, about):
    put_files(f"data/raw/{task}", files)
    acquire.main(task)
    found, arrays = encoded(task, group)
    assert [split["examples"] for split in found["splits"].values()] == sizes, "of dev, test, train"
    assert all(split["labelled"] for split in found["splits"].values())
    first = sequences(arrays["dev"])[: len(texts)]
    expected = [ids(text) for text in texts]
    assert [sequence[1:-1] for sequence in first] == expected
    assert {(sequence[0], sequence[-1]) for sequence in first} == {(START, EXTRACT)}
    assert arrays["dev"]["labels"].tolist()[0] == label
    names = ("kind", "combine", "sequences", "outputs", "target", "metric")
    assert [found[name] for name in names] == about
    if task == "race":
        assert arrays["dev"]["subset"].tolist() == [0, 1]
        assert found["subsets"] == ["middle", "high"]
