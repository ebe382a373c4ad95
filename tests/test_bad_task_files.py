"""Task files that are not what they should be: the stages `acquire` and `encode` stop with one line
that names file, row and reason.
"""

import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt1.base.errors import UserError
from gpt1.params.schema import TaskParams
from gpt1.params.yaml import read_yaml
from gpt1.stages import acquire, encode
from gpt1.tasks.readers import read_split
from gpt1.tasks.table import TASKS

ROOT = Path(__file__).parents[1]
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
VAL, TEST = TASKS["story_cloze"].source.layouts[0].required


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the paper's params.yaml at context 16."""
    params = read_yaml(ROOT / "conf" / "paper.yaml")
    params["model"]["context"] = 16
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(task: str, files: dict[str, str | bytes]) -> None:
    """Official files as `acquire` leaves them."""
    folder = Path("data/acquire/tasks") / task
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def refusal(task: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with pytest.raises(UserError) as error:
        encode.main(task)
    assert not Path("data/encode").exists() or not [
        path for path in Path("data/encode").rglob("*") if path.is_file()
    ]
    return str(error.value)


LIMIT = "more than encode.max_unreadable_fraction 0.005 allows; the first is row"
MEND = "mend the file or raise the limit"
PUT = "put the official file, or an export of this task, there with its columns as they were"
WITHOUT_LABEL = GOOD_RTE.replace("label", "x").replace("\n", "\t")
BAD_TSV = {  # name: (task, content of train.tsv, line after the file's name)
    "missing column": (
        "rte",
        "index\tsentence1\tlabel\n0\tA.\tentailment\n",
        (f": expected the columns sentence2; found 'index', 'sentence1', 'label'; {PUT}"),
    ),
    "no header": (
        "rte",
        "0\tA cat.\tA dog.\tentailment\n",
        (
            ": expected the columns sentence1, sentence2, label; found '0', 'A cat.', 'A dog.',"
            f" 'entailment'; {PUT}"
        ),
    ),
    "a header where none belongs": (
        "cola",
        "source\tlabel\tmark\tsentence\n" + COLA,
        (
            f": 1 of 2 rows cannot be read (unknown label 1), {LIMIT} 1: unknown label ('label'"
            f" instead of 0, 1); {MEND}"
        ),
    ),
    "too few columns": (
        "rte",
        GOOD_RTE + "1\tA cat.\n",
        (
            f": 1 of 2 rows cannot be read (too few columns 1), {LIMIT} 3: too few columns (2"
            f" instead of 4); {MEND}"
        ),
    ),
    "too many columns": (
        "cola",
        COLA + "gj04\t1\t\tA\tB\n",
        (
            f": 1 of 2 rows cannot be read (too many columns 1), {LIMIT} 2: too many columns (5"
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
    "a header and no rows": (
        "rte",
        RTE,
        " has no rows; expected the official file, get it again and run the acquire stage",
    ),
    "only line ends": (
        "cola",
        "\n\r\n\n",
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
    "UTF-16 without a header": (
        "cola",
        COLA.encode("utf-16"),
        (
            f": 2 of 2 rows cannot be read (not UTF-8 1, NUL character 1), {LIMIT} 1: not UTF-8"
            f" (the mark of UTF-16); {MEND}"
        ),
    ),
    "a whole file as its header": (
        "rte",
        WITHOUT_LABEL * 99,
        (
            ": expected the columns label; found"
            f" {', '.join(map(repr, (WITHOUT_LABEL * 99).split(chr(9))))[:300]}; {PUT}"
        ),
    ),
    "an empty sentence": (
        "cola",
        COLA + "gj04\t1\t\t \n",
        f": 1 of 2 rows cannot be read (empty text 1), {LIMIT} 2: empty text (sentence); {MEND}",
    ),
    "an empty line": (
        "cola",
        COLA + "\n" + COLA,
        f": 1 of 3 rows cannot be read (empty line 1), {LIMIT} 2: empty line; {MEND}",
    ),
}


@pytest.mark.parametrize("case", BAD_TSV)
def test_a_bad_table_is_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
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
            "snli",
            {
                "snli_1.0_train.jsonl": (
                    '{"gold_label": "neutral", "sentence1": "A.", "sentence2": 3}\n'
                )
            },
            (
                f"snli_1.0_train.jsonl: 1 of 1 rows cannot be read (no text 1), {LIMIT} 1: no text"
                f" (sentence2 is int); {MEND}"
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
            "stsb",
            {"sts-train.csv": "genre\tfilename\tyear\told_index\tscore\tsentence1\tsentence2\n"},
            (
                f"sts-train.csv: 1 of 1 rows cannot be read (unknown label 1), {LIMIT} 1: unknown"
                f" label ('score' instead of a score from 0 to 5); {MEND}"
            ),
        ),
        (
            "mrpc",
            {"msr_paraphrase_train.txt": "1\t2\t3\tA cat.\tA dog.\n"},
            (
                "msr_paraphrase_train.txt: expected the columns #1 String, #2 String, Quality;"
                f" found '1', '2', '3', 'A cat.', 'A dog.'; {PUT}"
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
            "story_cloze",
            {VAL: STORY_HEADER.replace("AnswerRightEnding", "Answer")},
            (
                f"{VAL}: expected the columns answer_right_ending or AnswerRightEnding; found"
                f" {', '.join(map(repr, STORY_HEADER.split(',')[:-1]))}, 'Answer'; {PUT}"
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
        (
            "race",
            {"train_middle.jsonl": json.dumps(PASSAGE | {"options": []})},
            (
                "train_middle.jsonl: 1 of 1 rows cannot be read (unequal numbers of questions,"
                f" options and answers 1), {LIMIT} 1: unequal numbers of questions, options and"
                f" answers (f); {MEND}"
            ),
        ),
    ],
)
def test_a_bad_file_of_another_format_is_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, task: str, files: dict[str, str], line: str
) -> None:
    layout = next(
        layout for layout in TASKS[task].source.layouts if next(iter(files)) in layout.required
    )
    put(task, dict.fromkeys(layout.required, "") | files)
    assert refusal(task, monkeypatch) == f"data/acquire/tasks/{task}/{line}"


def test_scores_too_few_to_tell_are_told(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "index\tsentence1\tsentence2\tscore\n" + "0\tA cat.\tA dog.\t0.8\n" * 99
    bring("stsb", {"train.tsv": rows, "dev.tsv": rows.replace("0.8", "1.2")})
    acquire.main("stsb")
    assert "stsb: train.tsv has no score above 1, expected 0 to 5; 99 rows are too few to tell" in (
        said := capsys.readouterr().err
    )
    assert "dev.tsv" not in said


def test_a_missing_file_and_a_wrong_name_are_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("rte", {"train.tsv": GOOD_RTE})
    assert (
        refusal("rte", monkeypatch)
        == "data/acquire/tasks/rte does not hold train.tsv, dev.tsv or a Hugging Face export"
        " (.parquet, .arrow or .jsonl); "
        "run python -m gpt1.stages acquire rte"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gpt1.stages", "encode", "rta"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert (
        done.stderr == "error: expected one task of params.yaml"
        f" ({', '.join(read_yaml(Path('params.yaml'))['tasks'])}); found rta\n"
    )


MSR_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MSR = MSR_HEADER + "1\t2\t3\tMy cat.\tA café.\n" * 9
IN_LATIN_1 = (
    ": 9 of 9 rows cannot be read (not UTF-8 9), more than encode.max_unreadable_fraction 0.005"
    f" allows; the first is row 2: not UTF-8 (byte 0xe9 at 19); {MEND}"
)


def bring(task: str, files: dict[str, str | bytes]) -> None:
    """Official files as a person has them."""
    for name, content in files.items():
        path = Path("data/raw") / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def refused_by_acquire(task: str) -> str:
    with pytest.raises(UserError) as error:
        acquire.main(task)
    assert not Path("data/acquire/tasks", task).exists()
    return str(error.value)


def test_what_encode_could_not_read_is_found_as_it_is_acquired(checkout: Path) -> None:
    train, test = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
    bring("mrpc", {train: MSR, test: MSR.encode("latin-1")})
    assert refused_by_acquire("mrpc") == f"data/raw/mrpc/{test}{IN_LATIN_1}"
    bring("mrpc", {test: MSR})
    acquire.main("mrpc")


def test_a_file_of_an_archive_is_named_as_it_lies_there(checkout: Path) -> None:
    Path("data/raw/mrpc").mkdir(parents=True)
    with zipfile.ZipFile("data/raw/mrpc/MSR.zip", "w") as archive:
        archive.writestr("MSR/msr_paraphrase_train.txt", MSR)
        archive.writestr("MSR/msr_paraphrase_test.txt", MSR.encode("latin-1"))
    assert (
        refused_by_acquire("mrpc")
        == f"data/raw/mrpc/MSR.zip/MSR/msr_paraphrase_test.txt{IN_LATIN_1}"
    )


def test_a_set_for_zero_shot_alone_is_read_as_it_is_acquired(checkout: Path) -> None:
    block = "The cat sat because it slept.\nit\ncat,mat\ncat\n\n"
    bring("dprd", {"train.c.txt": block, "test.c.txt": block.replace("\ncat\n", "\nhen\n")})
    assert "data/raw/dprd/test.c.txt: 1 of 1 rows cannot be read" in refused_by_acquire("dprd")


@pytest.mark.slow
def test_reading_as_it_is_acquired_keeps_no_rows(checkout: Path) -> None:
    row = "0\tA cat.\t" + "A dog runs. " * 40 + "\tentailment\n"
    bring("rte", {"train.tsv": RTE + row * 20_000, "dev.tsv": GOOD_RTE})  # 10 MB
    bring("cola", {"train.tsv": COLA + "no columns\n" * 50_000, "dev.tsv": COLA})
    tracemalloc.start()
    try:
        acquire.main("rte")
        refused_by_acquire("cola")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


STARTS = [
    COLA,
    RTE,
    STORY_HEADER,
    "i,A.,B.,C.,D.,E.,F.,1\n",
    '{"gold_label": "neutral", "sentence1": "A.", "sentence2": ',
    json.dumps(PASSAGE),
    json.dumps(PASSAGE | {"answers": [["A"]]}),
    json.dumps(PASSAGE | {"questions": 3}),
]
PIECES = st.sampled_from(
    [
        *(start.encode() for start in STARTS),
        b"\t",
        b"\n",
        b"\r",
        b'"',
        b"\0",
        b"\xff",
        b",",
        b"{",
        b"[[",
        b"null",
        b"1",
        b"\xef\xbb\xbf",
    ]
)


@pytest.mark.parametrize("name", ["cola", "rte", "snli", "race", "story_cloze", "stsb"])
@given(pieces=st.lists(PIECES, max_size=8))
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, name: str, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"any-{name}"
    folder.mkdir(exist_ok=True)
    split = TASKS[name].layouts[0][0]
    for file in split.files:
        (folder / file).write_bytes(b"".join(pieces))
    row = TaskParams(group="nli", train_rows=None, eval_rows=None, finetune={})
    refused = ""
    try:
        found = read_split(TASKS[name], split, folder, row, 1.0)
    except UserError as error:
        refused = str(error)
    assert refused.startswith(str(folder)) or found.rows_read >= len(found.examples) > 0
    assert "\n" not in refused
