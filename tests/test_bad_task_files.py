"""Task files that are not what they should be: the stages `acquire` and `encode` stop with one line
that names file, row and reason.
"""

import json
import re
from pathlib import Path

import pytest
from made_data import put_acquired, put_files, refused, write_paper_params

from gpt1.stages import acquire, encode
from gpt1.tasks.definitions import TASKS

COLA = "gj04\t1\t\tThe cat sat.\n"
RTE = "index\tsentence1\tsentence2\tlabel\n0\tA cat.\tA dog.\tentailment\n"
STORY = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,"
    "RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
PASSAGE = {
    "file": "f",
    "article": "A.",
    "questions": ["B?"],
    "options": [["c", "d"]],
    "answers": ["A"],
}
MSR = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tMy cat.\tA café.\n"


@pytest.fixture
def checkout(elsewhere):
    """A folder with the paper's params.yaml at context 16."""
    write_paper_params(elsewhere, model={"context": 16})


def refused_by_encode(task):
    line = refused(encode.main, task)
    assert not [path for path in Path("data").glob("encode/**/*") if path.is_file()]
    return line


@pytest.mark.parametrize(
    ("task", "content", "line"),
    [
        ("rte", "index\tsentence1\tlabel\n0\tA.\tentailment\n", "columns sentence2; found 'index'"),
        ("rte", RTE + "1\tA cat.\n", "1 of 2 .* row 3: too few columns .2 instead of 4"),
        ("rte", RTE.encode("utf-16"), "header in UTF-8, .* UTF-16"),
        ("cola", COLA + "gj04\t2\t\tA cat.\n" + COLA, r"1 of 3 .* row 2: .*'2' instead of 0, 1"),
        ("cola", "", "has no rows"),
        ("cola", COLA + "gj04\t1\t\tA \0 cat.\n", "row 2: NUL"),
        (
            "cola",
            COLA.encode() + "gj04\t1\t\tÅ café\n".encode("latin-1"),
            "row 2: .*byte 0xc5 at 8",
        ),
        ("cola", 'gj04\t1\t\t"The cat sat."\n' * 10, "all 10 texts are quoted"),
        ("cola", COLA + "gj04\t1\t\t \n", r"row 2: empty text \(sentence\)"),
        ("cola", COLA * 198 + "gj04\t1\n", "1 of 199"),  # more than 0.005 of them
        (
            "snli",
            '{"gold_label": "neutral", "sentence1": "A."}\n',
            "columns sentence2; found 'gold",
        ),
        ("snli", "not json\n[]\n", "expected JSON objects"),
        ("stsb", "g\tf\t2012\t1\t5.5\tA cat.\tA dog.\n", r"row 1: .*'5\.5' instead of .* 0 to 5"),
        ("stsb", "g\tf\t2012\t1\t0.8\tA.\tB.\n" * 100, "none above 1 in 100 rows; they are scaled"),
        ("rte", "index\tsentence1\tsentence2\tlabel\tlabel\n", "two columns are called label"),
        ("mrpc", MSR, "has 1 readable rows; expected at least 2"),
        ("story_cloze", STORY + 'i,A.,B.,C.,D.,"E.,F.,1\n', "no CSV after row 1"),
        ("story_cloze", STORY + 'i,A.,"B.,C.\nj,A.",B.,C.,D.,E.,1\n', "row 2: line break"),
        ("story_cloze", STORY + "i,A.,B.,C.,D.,E.,F.,3\n", "row 2: .*'3' instead of 1, 2"),
        (
            "race",
            '{"file": "train/middle/1.txt", "unreadable": "not JSON"}\n',
            "row 1: not JSON .tr",
        ),
        ("race", json.dumps(PASSAGE), "row 1: not 4 options .* in f"),
    ],
)
def test_a_bad_file_is_one_line(checkout, task, content, line):
    """The first file of the task, the training rows; of MRPC, Microsoft's."""
    names = TASKS[task].source.layouts[task == "mrpc"].required
    names = list(TASKS[task].combined_folders) if task == "race" else names
    put_acquired(task, dict.fromkeys(names, "") | {names[0]: content})
    place = f"data/acquire/tasks/{task}/{names[0]}"
    assert re.match(rf"{re.escape(place)}.*{line}", refused_by_encode(task))


def test_a_missing_file_is_one_line(checkout):
    put_acquired("rte", {"train.tsv": RTE})
    line = "data/acquire/tasks/rte does not hold train.tsv, dev.tsv or .*gpt1.stages acquire rte"
    assert re.match(line, refused_by_encode("rte"))


def bring(task, files):
    """Official files as a person has them."""
    put_files(f"data/raw/{task}", files)


def refused_by_acquire(task):
    line = refused(acquire.main, task)
    assert not Path("data/acquire/tasks", task).exists()
    return line


def test_what_encode_could_not_read_is_found_as_it_is_acquired(checkout):
    train, test = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
    rows = MSR + MSR.split("\n")[1] + "\n"
    bring("mrpc", {train: rows, test: rows.encode("latin-1")})
    found = refused_by_acquire("mrpc")
    assert re.match(rf"data/raw/mrpc/{test}: 2 of 2 .* row 2: not UTF-8 .byte 0xe9 at 19", found)
    bring("mrpc", {test: rows})
    acquire.main("mrpc")


def test_a_set_for_zero_shot_alone_is_read_as_it_is_acquired(checkout):
    block = "The cat sat because it slept.\nit\ncat,mat\ncat\n\n"
    bring("dprd", {"train.c.txt": block, "test.c.txt": block.replace("\ncat\n", "\nhen\n")})
    assert "data/raw/dprd/test.c.txt: 1 of 1 rows cannot be read" in refused_by_acquire("dprd")
