"""`encode` as a stage, with a vocabulary of single characters: sequences, labels, counts and equal
bytes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpt1.base.files import read_json
from gpt1.corpus import encoding
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import TaskParams
from gpt1.params.yaml import read_yaml
from gpt1.stages import acquire, encode, prompt
from gpt1.tasks.readers import read_split
from gpt1.tasks.table import TASKS

ROOT = Path(__file__).parents[1]
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
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the paper's params.yaml at context 16."""
    params = read_yaml(ROOT / "conf" / "paper.yaml")
    params["model"]["context"] = 16
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def vocabulary(checkout: Path) -> None:
    """A vocabulary of single characters, so that ids can be worked out by hand."""
    Vocabulary(CHARACTERS, []).save(Path("data/bpe"), {})


Arrays = dict[str, np.ndarray]


def encoded(
    task: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], dict[str, Arrays]]:
    """task.json and the arrays of every split, after the stage has run."""
    encode.main(task)
    folder = Path("data/encode") / group / task
    return read_json(folder / "task.json"), {
        path.stem: dict(np.load(path, allow_pickle=False)) for path in folder.glob("*.npz")
    }


def put(task: str, files: dict[str, str | bytes]) -> None:
    """Official files as `acquire` leaves them."""
    folder = Path("data/acquire/tasks") / task
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_few_bad_rows_are_counted_and_left_out(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(
        "cola",
        {
            "train.tsv": "\ufeff" + (COLA * 399).replace("\n", "\r\n") + "gj04\t1\t\r\n",
            "dev.tsv": COLA * 3,
        },
    )
    about, arrays = encoded("cola", "glue", monkeypatch)
    assert arrays["train"]["labels"].tolist() == [1] * 399
    assert about["splits"]["train"] == {
        "examples": 399,
        "available": 399,
        "rows_read": 400,
        "unreadable": {"too few columns": 1},
        "left_out": {},
        "labelled": True,
        "truncated": 0,
    }


def test_prompts_are_made_while_the_same_task_is_encoded(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `gpt1 run` has it: what each keeps until it ends is its own."""
    both = COLA + COLA.replace("\t1\t", "\t0\t*")
    put("cola", {"train.tsv": both * 300, "dev.tsv": both * 3})
    mapped = encoding.mapped

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(encoding, "mapped", mapped)
        prompt.main("cola")
        return mapped(*given)

    monkeypatch.setattr(encoding, "mapped", meanwhile)
    encode.main("cola")
    assert Path("data/prompt/cola/set.json").exists()
    assert Path("data/encode/glue/cola/task.json").exists()


def ids(text: str) -> list[int]:
    """Ids of words written with blanks between, worked out from the layout: <unk>, characters,
    characters at a word's end.
    """
    return [
        1 + CHARACTERS.index(letter) + (len(CHARACTERS) if number == len(word) - 1 else 0)
        for word in text.split()
        for number, letter in enumerate(word)
    ]


def sequences(arrays: Arrays) -> list[list[int]]:
    return [
        arrays["tokens"][begin:end].tolist()
        for begin, end in zip(arrays["offsets"], arrays["offsets"][1:], strict=False)
    ]


def test_a_text_becomes_start_text_extract_cut_to_the_context(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(
        "cola",
        {
            "train.tsv": COLA,
            "dev.tsv": COLA + "gj04\t0\t*\tAbcdefghijklmnopq\n",
            "test.tsv": "index\tsentence\n0\tIt.\n",
        },
    )
    about, arrays = encoded("cola", "glue", monkeypatch)
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


def test_a_similarity_has_both_orders_and_scores_are_floats(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "g\tf\t2012\t1\t3.75\tA cat\tMy dog\n"
    put("stsb", {f"sts-{split}.csv": row for split in ("train", "dev", "test")})
    about, arrays = encoded("stsb", "glue", monkeypatch)
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


def test_choices_and_subsets_of_race(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("race", {name: json.dumps(PASSAGE) + "\n" for name in TASKS["race"].combined})
    about, arrays = encoded("race", "qa", monkeypatch)
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
SCITAIL = "My cat\tA cat\tentails\nA cat\tMy dog\tneutral\n"


@pytest.mark.parametrize(
    ("task", "group", "files", "sizes"),
    [
        (
            "mrpc",
            "glue",
            {"msr_paraphrase_train.txt": MSR, "msr_paraphrase_test.txt": MSR},
            {"train": 9, "dev": 1, "test": 10},
        ),
        (
            "scitail",
            "nli",
            {f"tsv_format/scitail_1.0_{split}.tsv": SCITAIL for split in ("train", "dev", "test")},
            {"train": 2, "dev": 2, "test": 2},
        ),
        ("story_cloze", "qa", {VAL: STORIES, TEST: STORIES}, {"train": 8, "dev": 2, "test": 10}),
    ],
)
def test_from_raw_files_to_ids(
    checkout: Path,
    vocabulary: None,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    group: str,
    files: dict[str, str],
    sizes: dict[str, int],
) -> None:
    for name, content in files.items():
        path = Path("data/raw", task, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    acquire.main(task)
    about, arrays = encoded(task, group, monkeypatch)
    assert {name: split["examples"] for name, split in about["splits"].items()} == sizes
    assert all(split["labelled"] for split in about["splits"].values())
    first = {
        "mrpc": [START, *ids("my cat"), DELIMITER, *ids("a cat"), EXTRACT],
        "scitail": [START, *ids("my cat"), DELIMITER, *ids("a cat"), EXTRACT],
        "story_cloze": [START, *ids("ann , my"), DELIMITER, *ids("all was"), EXTRACT],
    }[task]  # six tokens a part
    assert sequences(arrays["test"])[0] == first
    assert arrays["test"]["labels"].tolist()[0] == {"mrpc": 1, "scitail": 0, "story_cloze": 1}[task]


@pytest.mark.slow
def test_two_tasks_write_the_bytes_that_one_writes(
    checkout: Path, vocabulary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(
        f'{{"gold_label": "neutral", "sentence1": "A cat {number}.", "sentence2": "It is."}}\n'
        for number in range(50)
    )
    put("snli", {f"snli_1.0_{split}.jsonl": rows for split in ("train", "dev", "test")})
    encoded("snli", "nli", monkeypatch)
    alone = {path.name: path.read_bytes() for path in Path("data/encode/nli/snli").iterdir()}
    monkeypatch.setenv("GPT1_TEXT_TASKS", "2")
    monkeypatch.setattr(encoding, "BATCH_TEXTS", 20)
    encoded("snli", "nli", monkeypatch)
    assert {
        path.name: path.read_bytes() for path in Path("data/encode/nli/snli").iterdir()
    } == alone


@pytest.mark.slow
def test_real_race_has_the_official_numbers_of_questions(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.environ.get("GPT1_DATA")
    archive = Path(data or "", "RACE", "RACE.tar.gz")
    if not data or not archive.is_file():
        pytest.skip("$GPT1_DATA names no folder with RACE/RACE.tar.gz")
    Path("data/raw").mkdir(parents=True)
    Path("data/raw/race").symlink_to(archive.parent)
    done = subprocess.run(
        [sys.executable, "-m", "gpt1.stages", "acquire", "race"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = {}
    row = TaskParams(group="qa", train_rows=None, eval_rows=None, finetune={})
    for split in TASKS["race"].layouts[0]:
        found = read_split(TASKS["race"], split, Path("data/acquire/tasks/race"), row, 0.0)
        counts[split.name] = [
            sum(example.subset == subset for example in found.examples) for subset in (0, 1)
        ]
    assert counts == {"train": [25421, 62445], "dev": [1436, 3451], "test": [1436, 3498]}
