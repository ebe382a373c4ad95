"""`encode` as a stage, with a vocabulary of single characters: sequences, labels, counts and equal
bytes.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from made_data import put_files, write_paper_params

from gpt1.base.files import read_json
from gpt1.corpus import encoding
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import TaskParams
from gpt1.stages import acquire, encode
from gpt1.tasks.readers import read_task
from gpt1.tasks.table import TASKS

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
def checkout(tmp_path, monkeypatch):
    """A folder with the paper's params.yaml at context 16."""
    write_paper_params(tmp_path, model={"context": 16})
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def put(task, files):
    """Official files as `acquire` leaves them."""
    put_files(f"data/acquire/tasks/{task}", files)


def test_as_many_bad_rows_as_the_limit_allows_are_counted_and_left_out(checkout, vocabulary):
    put(
        "cola",
        {
            "train.tsv": "\ufeff" + (COLA * 199).replace("\n", "\r\n") + "gj04\t1\t\r\n",
            "dev.tsv": COLA * 3,
        },
    )
    about, arrays = encoded("cola", "glue")
    assert arrays["train"]["labels"].tolist() == [1] * 199
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
    characters at a word's end.
    """
    return [
        1 + CHARACTERS.index(letter) + (len(CHARACTERS) if number == len(word) - 1 else 0)
        for word in text.split()
        for number, letter in enumerate(word)
    ]


def sequences(arrays):
    return [
        arrays["tokens"][begin:end].tolist()
        for begin, end in zip(arrays["offsets"], arrays["offsets"][1:], strict=False)
    ]


def test_a_text_becomes_start_text_extract_cut_to_the_context(checkout, vocabulary):
    put(
        "cola",
        {
            "train.tsv": COLA,
            "dev.tsv": COLA + "gj04\t0\t*\tAbcdefghijklmnopq\n",
            "test.tsv": "index\tsentence\n0\tIt.\n",
        },
    )
    about, arrays = encoded("cola", "glue")
    assert sequences(arrays["train"]) == [[START, *ids("the cat sat ."), EXTRACT]]
    assert sequences(arrays["dev"])[1] == [START, *ids("abcdefghijklmnopq")[:14], EXTRACT]
    assert arrays["dev"]["labels"].tolist() == [1, 0]
    assert arrays["test"]["labels"].tolist() == [-1]
    assert {name: split["truncated"] for name, split in about["splits"].items()} == {
        "train": 0,
        "dev": 1,
        "test": 0,
    }
    assert (about["kind"], about["combine"], about["sequences"], about["outputs"]) == (
        "classification",
        "single",
        1,
        2,
    )
    assert (about["metric"], about["labels"], about["target"]) == (
        "matthews",
        ["unacceptable", "acceptable"],
        "class",
    )
    assert about["vocabulary_size"] == START == 2 * len(CHARACTERS) + 2


def test_a_similarity_has_both_orders_and_scores_are_floats(checkout, vocabulary):
    row = "g\tf\t2012\t1\t3.75\tA cat\tMy dog\n"
    put("stsb", {f"sts-{split}.csv": row for split in ("train", "dev", "test")})
    about, arrays = encoded("stsb", "glue")
    one, other = ids("a cat"), ids("my dog")
    assert sequences(arrays["test"]) == [
        [START, *one, DELIMITER, *other, EXTRACT],
        [START, *other, DELIMITER, *one, EXTRACT],
    ]
    assert (arrays["test"]["labels"].dtype, arrays["test"]["labels"].tolist()) == (
        np.float32,
        [3.75],
    )
    assert (about["sequences"], about["outputs"], about["combine"], about["target"]) == (
        2,
        6,
        "sum",
        "score",
    )


def test_choices_and_subsets_of_race(checkout, vocabulary):
    put("race", {name: json.dumps(PASSAGE) + "\n" for name in TASKS["race"].combined})
    about, arrays = encoded("race", "qa")
    before = [START, *ids("cats . hi ?"), DELIMITER]
    assert sequences(arrays["test"])[:2] == [
        [*before, *ids("c"), EXTRACT],
        [*before, *ids("d"), EXTRACT],
    ]
    assert arrays["test"]["subset"].tolist() == [0, 1]
    assert (len(arrays["test"]["offsets"]), arrays["test"]["labels"].tolist()) == (
        2 * 4 + 1,
        [0, 0],
    )
    assert (about["sequences"], about["outputs"], about["combine"], about["subsets"]) == (
        4,
        4,
        "choose",
        ["middle", "high"],
    )


VAL, TEST = TASKS["story_cloze"].source.layouts[0].required
STORIES = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,"
    "AnswerRightEnding\r\n"
    + 'id,"Ann, my cat, sat.",She ran.,It fell.,We ate.,All was well.,No one came.,2\r\n'
    * 10
)
MSR = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n" + "1\t1\t2\tMy cat\tA cat\r\n" * 10


@pytest.mark.parametrize(
    ("task", "group", "files", "sizes", "first", "label"),
    [
        (
            "mrpc",
            "glue",
            {"msr_paraphrase_train.txt": MSR, "msr_paraphrase_test.txt": MSR},
            {"train": 9, "dev": 1, "test": 10},
            ("my cat", "a cat"),
            1,
        ),
        (
            "story_cloze",
            "qa",
            {VAL: STORIES, TEST: STORIES},
            {"train": 8, "dev": 2, "test": 10},
            ("ann , my", "all was"),  # six tokens a part
            1,
        ),
    ],
)
def test_from_raw_files_to_ids(
    checkout,
    vocabulary,
    task,
    group,
    files,
    sizes,
    first,
    label,
):
    put_files(f"data/raw/{task}", files)
    acquire.main(task)
    about, arrays = encoded(task, group)
    assert {name: split["examples"] for name, split in about["splits"].items()} == sizes
    assert all(split["labelled"] for split in about["splits"].values())
    one, other = map(ids, first)
    assert sequences(arrays["test"])[0] == [START, *one, DELIMITER, *other, EXTRACT]
    assert arrays["test"]["labels"].tolist()[0] == label


@pytest.mark.slow
def test_two_tasks_write_the_bytes_that_one_writes(checkout, vocabulary, monkeypatch):
    rows = "".join(
        f'{{"gold_label": "neutral", "sentence1": "A cat {number}.", "sentence2": "It is."}}\n'
        for number in range(50)
    )
    put("snli", {f"snli_1.0_{split}.jsonl": rows for split in ("train", "dev", "test")})
    encoded("snli", "nli")
    alone = {path.name: path.read_bytes() for path in Path("data/encode/nli/snli").iterdir()}
    monkeypatch.setenv("GPT1_TEXT_TASKS", "2")
    monkeypatch.setattr(encoding, "BATCH_TEXTS", 20)
    encoded("snli", "nli")
    assert {
        path.name: path.read_bytes() for path in Path("data/encode/nli/snli").iterdir()
    } == alone


@pytest.mark.slow
def test_real_race_has_the_official_numbers_of_questions(checkout):
    archive = Path(os.environ.get("GPT1_DATA", "none"), "RACE", "RACE.tar.gz")
    if not archive.is_file():
        pytest.skip("$GPT1_DATA names no folder with RACE/RACE.tar.gz")
    Path("data/raw").mkdir(parents=True)
    Path("data/raw/race").symlink_to(archive.parent)
    acquire.main("race")
    row = TaskParams(group="qa", train_rows=None, eval_rows=None, finetune={})
    splits, _ = read_task(TASKS["race"], Path("data/acquire/tasks/race"), row, 0.0)
    counts = {
        name: [sum(one.subset == subset for one in rows.examples) for subset in (0, 1)]
        for name, rows in splits.items()
    }
    assert counts == {"train": [25421, 62445], "dev": [1436, 3451], "test": [1436, 3498]}
