"""Task files that are not what they should be: the stages `acquire` and `encode` stop with one line
that names file, row and reason.
"""

import json
from pathlib import Path

import pytest
from made_data import put_files, write_paper_params

from gpt1.base.errors import UserError
from gpt1.stages import acquire, encode
from gpt1.tasks.table import TASKS

COLA = "gj04\t1\t\tThe cat sat.\n"
RTE = "index\tsentence1\tsentence2\tlabel\n"
GOOD_RTE = RTE + "0\tA cat.\tA dog.\tentailment\n"
STORY_HEADER = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,RandomFifthSentenceQuiz1,"
    "RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
PASSAGE = {
    "file": "f",
    "article": "A.",
    "questions": ["B?"],
    "options": [["c", "d", "e", "f"]],
    "answers": ["A"],
}
VAL = TASKS["story_cloze"].source.layouts[0].required[0]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with the paper's params.yaml at context 16."""
    write_paper_params(tmp_path, model={"context": 16})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(task, files):
    """Official files as `acquire` leaves them."""
    put_files(f"data/acquire/tasks/{task}", files)


def refusal(task, monkeypatch):
    with pytest.raises(UserError) as error:
        encode.main(task)
    assert not Path("data/encode").exists() or not [
        path for path in Path("data/encode").rglob("*") if path.is_file()
    ]
    return str(error.value)


LIMIT = "more than encode.max_unreadable_fraction 0.005 allows; the first is row"
MEND = "mend the file or raise the limit"
PUT = "put the official file, or an export of this task, there with its columns as they were"
BAD_TSV = {  # name: (task, content of train.tsv, line after the file's name)
    "missing column": (
        "rte",
        "index\tsentence1\tlabel\n0\tA.\tentailment\n",
        (f": expected the columns sentence2; found 'index', 'sentence1', 'label'; {PUT}"),
    ),
    "too few columns": (
        "rte",
        GOOD_RTE + "1\tA cat.\n",
        (
            f": 1 of 2 rows cannot be read (too few columns 1), {LIMIT} 3: too few columns (2"
            f" instead of 4); {MEND}"
        ),
    ),
    "unknown label": (
        "cola",
        COLA + "gj04\t2\t\tA cat.\ngj04\t\t\tA cat.\n",
        (
            f": 1 of 3 rows cannot be read (unknown label 1), {LIMIT} 2: unknown label"
            f" ('2' instead of 0, 1); {MEND}"
        ),
    ),
    "no rows": (
        "cola",
        "",
        " has no rows; expected the official file, get it again and run the acquire stage",
    ),
    "a NUL": (
        "cola",
        COLA + "gj04\t1\t\tA \0 cat.\n",
        f": 1 of 2 rows cannot be read (NUL character 1), {LIMIT} 2: NUL character; {MEND}",
    ),
    "another encoding": (
        "cola",
        COLA.encode() + "gj04\t1\t\tÅ café\n".encode("latin-1"),
        (
            f": 1 of 2 rows cannot be read (not UTF-8 1), {LIMIT} 2: not UTF-8 (byte 0xc5 at 8);"
            f" {MEND}"
        ),
    ),
    "UTF-16": (
        "rte",
        GOOD_RTE.encode("utf-16"),
        (
            ": expected a header in UTF-8, found not UTF-8 (the mark of UTF-16); save the file as"
            " UTF-8"
        ),
    ),
    "all texts in quotes": (
        "cola",
        'gj04\t1\t\t"The cat sat."\n' * 10,
        (
            ': all 10 texts are quoted by the rule of CSV writers ("What is ""it""?"); expected the'
            " official file, or one in which quotes are text (Python's csv.QUOTE_NONE)"
        ),
    ),
    "an empty sentence": (
        "cola",
        COLA + "gj04\t1\t\t \n",
        f": 1 of 2 rows cannot be read (empty text 1), {LIMIT} 2: empty text (sentence); {MEND}",
    ),
}


@pytest.mark.parametrize("case", BAD_TSV)
def test_a_bad_table_is_one_line(checkout, monkeypatch, case):
    task, content, line = BAD_TSV[case]
    put(task, {"train.tsv": content, "dev.tsv": COLA if task == "cola" else GOOD_RTE})
    found = refusal(task, monkeypatch)
    whole = f"data/acquire/tasks/{task}/train.tsv{line}"
    assert found == whole


@pytest.mark.parametrize(
    ("task", "files", "line"),
    [
        (
            "snli",
            {"snli_1.0_train.jsonl": '{"gold_label": "neutral", "sentence1": "A."}\n'},
            (
                "snli_1.0_train.jsonl: expected the columns sentence2; found 'gold_label',"
                f" 'sentence1'; {PUT}"
            ),
        ),
        (
            "snli",
            {"snli_1.0_train.jsonl": "not json\n[]\n"},
            (
                "snli_1.0_train.jsonl: expected JSON objects, one a line, found none; get the file"
                " again"
            ),
        ),
        (
            "stsb",
            {"sts-train.csv": "g\tf\t2012\t1\t5.5\tA cat.\tA dog.\n"},
            (
                f"sts-train.csv: 1 of 1 rows cannot be read (unknown label 1), {LIMIT} 1: "
                f"unknown label ('5.5' instead of a score from 0 to 5); {MEND}"
            ),
        ),
        (
            "stsb",
            {"sts-train.csv": "g\tf\t2012\t1\t0.8\tA cat.\tA dog.\n" * 100},
            (
                "sts-train.csv: expected scores from 0 to 5, found none above 1 in 100 rows; they"
                " are scaled, take a file whose scores are not"
            ),
        ),
        (
            "mrpc",
            {
                "msr_paraphrase_train.txt": (
                    "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tA cat.\tA dog.\n"
                )
            },
            "msr_paraphrase_train.txt has 1 readable rows; expected at least 2, for train and dev",
        ),
        (
            "story_cloze",
            {VAL: STORY_HEADER + 'i,A.,B.,C.,D.,"E.,F.,1\n'},
            (
                f"{VAL}: no CSV after row 1 (unexpected end of data); look there for an unbalanced"
                " quote, or get the file again"
            ),
        ),
        (
            "story_cloze",
            {VAL: STORY_HEADER + 'i,A.,"B.,C.\nj,A.",B.,C.,D.,E.,1\n'},
            (
                f"{VAL}: 1 of 1 rows cannot be read (line break in a sentence 1), {LIMIT} 2: "
                f"line break in a sentence (look for an unbalanced quote); {MEND}"
            ),
        ),
        (
            "story_cloze",
            {VAL: STORY_HEADER + "i,A.,B.,C.,D.,E.,F.,3\n"},
            (
                f"{VAL}: 1 of 1 rows cannot be read (unknown label 1), {LIMIT} 2: unknown label"
                f" ('3' instead of 1, 2); {MEND}"
            ),
        ),
        (
            "race",
            {"train_middle.jsonl": '{"file": "train/middle/1.txt", "unreadable": "not JSON"}\n'},
            (
                f"train_middle.jsonl: 1 of 1 rows cannot be read (not JSON 1), {LIMIT} 1: not JSON"
                f" (train/middle/1.txt); {MEND}"
            ),
        ),
        (
            "race",
            {"train_middle.jsonl": json.dumps(PASSAGE | {"options": [["c", "d"]]})},
            (
                f"train_middle.jsonl: 1 of 1 rows cannot be read (not 4 options 1), {LIMIT} 1: not"
                f" 4 options (f) in f; {MEND}"
            ),
        ),
    ],
)
def test_a_bad_file_of_another_format_is_one_line(checkout, monkeypatch, task, files, line):
    layout = next(
        layout for layout in TASKS[task].source.layouts if next(iter(files)) in layout.required
    )
    put(task, dict.fromkeys(layout.required, "") | files)
    assert refusal(task, monkeypatch) == f"data/acquire/tasks/{task}/{line}"


def test_a_missing_file_is_one_line(checkout, monkeypatch):
    put("rte", {"train.tsv": GOOD_RTE})
    assert (
        refusal("rte", monkeypatch)
        == "data/acquire/tasks/rte does not hold train.tsv, dev.tsv or a Hugging Face export"
        " (.parquet, .arrow or .jsonl); "
        "run python -m gpt1.stages acquire rte"
    )


MSR_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MSR = MSR_HEADER + "1\t2\t3\tMy cat.\tA café.\n" * 9
IN_LATIN_1 = (
    ": 9 of 9 rows cannot be read (not UTF-8 9), more than encode.max_unreadable_fraction 0.005"
    f" allows; the first is row 2: not UTF-8 (byte 0xe9 at 19); {MEND}"
)


def bring(task, files):
    """Official files as a person has them."""
    put_files(f"data/raw/{task}", files)


def refused_by_acquire(task):
    with pytest.raises(UserError) as error:
        acquire.main(task)
    assert not Path("data/acquire/tasks", task).exists()
    return str(error.value)


def test_what_encode_could_not_read_is_found_as_it_is_acquired(checkout):
    train, test = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
    bring("mrpc", {train: MSR, test: MSR.encode("latin-1")})
    assert refused_by_acquire("mrpc") == f"data/raw/mrpc/{test}{IN_LATIN_1}"
    bring("mrpc", {test: MSR})
    acquire.main("mrpc")


def test_a_set_for_zero_shot_alone_is_read_as_it_is_acquired(checkout):
    block = "The cat sat because it slept.\nit\ncat,mat\ncat\n\n"
    bring("dprd", {"train.c.txt": block, "test.c.txt": block.replace("\ncat\n", "\nhen\n")})
    assert "data/raw/dprd/test.c.txt: 1 of 1 rows cannot be read" in refused_by_acquire("dprd")
