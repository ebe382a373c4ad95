"""Runs of words that corpus and tasks share: against plain sets of words, whatever the parts and
the length of a run.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from test_stages_text import run_here

from gpt1.base.files import read_json
from gpt1.corpus import books
from gpt1.corpus.books import DOCUMENT_END, cleaned_books
from gpt1.corpus.words import Cleaner
from gpt1.params.yaml import read_yaml
from gpt1.tasks.contamination import index as index_module
from gpt1.tasks.contamination.index import Index, make_index, search
from gpt1.tasks.contamination.overlap import EvaluatedSplit, count, markdown

ROOT = Path(__file__).parent.parent
WORDS = ("ba", "é", "n't", "42", ",", "\n", '"', "-")  # the last four are no words


def plain_runs(text: str, n: int) -> set[str]:
    """Every run of n words, by the rules said in words."""
    words = [word for word in text.split(" ") if any(character.isalnum() for character in word)]
    return {" ".join(words[place : place + n]) for place in range(len(words) - n + 1)}


def made_texts(generator: random.Random, count_: int, longest: int) -> list[str]:
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(0, longest))) for _ in range(count_)
    ]


def made_corpus(folder: Path, generator: random.Random) -> dict[str, str]:
    """Cleaned books and files of documents under `folder`; {name of a book or document: its text},
    in the order of the search.
    """
    found: dict[str, str] = {}
    for name in ("books/a.txt", "documents/b.jsonl", "books/c/d.txt", "documents/e.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        texts = (
            made_texts(generator, 30, 12)
            if name.startswith("documents")
            else made_texts(generator, 1, 300)
        )
        short = name.split("/", 1)[1]
        if name.startswith("documents"):
            (folder / name).write_text(
                " ".join(f"{text} {DOCUMENT_END}".lstrip(" ") for text in texts), encoding="utf-8"
            )
            found |= {f"{short}#{row}": text for row, text in enumerate(texts)}
        else:
            (folder / name).write_text(texts[0], encoding="utf-8")
            found[short] = texts[0]
    return found


def searched(index: Index, folder: Path) -> dict[str, str]:
    """{run: book} of the index over a folder of cleaned books, in order."""
    return {index.words(run): name for run, name in search(index, cleaned_books(folder)).items()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 8, 13])
def test_found_is_what_both_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, n: int
) -> None:
    generator = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(index_module, "OVERHANG_BYTES", 7)
        monkeypatch.setattr(books, "PART_BYTES", 150)
    corpus = made_corpus(tmp_path, generator)
    texts = made_texts(generator, 40, 20)
    index = make_index(texts, n)
    asked = set[str]().union(*(plain_runs(text, n) for text in texts))
    expected: dict[str, str] = {}
    for name, text in corpus.items():
        for run in plain_runs(text, n) & asked:
            expected.setdefault(run, name)
    every = [index.words(run) for run in range(len(index.first))]
    assert set(every) == asked
    assert len(every) == len(asked)
    assert [{every[run] for run in runs} for runs in index.of_texts] == [
        plain_runs(text, n) for text in texts
    ]
    first = [run for runs in index.of_texts for run in runs]
    assert list(dict.fromkeys(first)) == list(range(len(every)))
    assert searched(index, tmp_path) == expected
    assert expected or n > 5


def test_no_texts_and_no_words(tmp_path: Path) -> None:
    made_corpus(tmp_path, random.Random(1))
    for texts in ([], [""], ["ba , ke"], [", \n"]):
        index = make_index(texts, 3)
        assert not len(index.first)
        assert index.of_texts == [[]] * len(texts)
        assert searched(index, tmp_path) == {}


def test_what_a_word_is() -> None:
    assert index_module.words_of("ab b ab \x0c a.b - ab , ba \n abab n't é") == [
        *("ab", "b", "ab", "\x0c", "a.b", "ab", "ba", "abab", "n't", "é")
    ]


def test_the_table_by_hand() -> None:
    texts = ["a b c d", "x", "b c d e", "q r s", "a b c d z"]
    index = make_index(texts, 3)
    runs = {index.words(run): run for run in range(len(index.first))}
    assert set(runs) == {"a b c", "b c d", "c d e", "q r s", "c d z"}
    found = {runs["b c d"]: "one|two.txt", runs["c d e"]: "two"}
    split = EvaluatedSplit("Task", "test", True, [[0, 1], [1], [2, 0], [3], [0], [4]])
    row, worst = count(split, index, found)
    assert (
        row.examples,
        row.long_enough,
        row.overlapping,
        row.share,
        row.runs,
        row.runs_found,
    ) == (6, 5, 4, 0.8, 5, 2)
    assert [(one.example, one.runs_found, one.runs) for one in worst] == [(2, 2, 3), (0, 1, 2)]
    assert (worst[1].words, worst[1].book) == ("b c d", "one|two.txt")
    text = markdown([row], worst, 3, "my books", 12345)
    assert "| Task | test (scored) | 6 | 5 | 4 | 80.00% |" in text
    assert "| Task | test | 0 | 1 of 2 | b c d | one\\|two.txt |" in text
    assert "my books: 12,345 words" in text


def test_a_book_s_name_cannot_break_the_table() -> None:
    index = make_index(["a b c"], 3)
    row, worst = count(EvaluatedSplit("T", "dev", False, [[0]]), index, {0: "<b>\x1b[31m`x`|#y\n"})
    assert "\\<b\\>\\[31m\\`x\\`\\|\\#y |\n" in markdown([row], worst, 3, "c", 1)


def write_run(folder: Path) -> None:
    """params.yaml, three cleaned books and SciTail, of whose 12 test pairs two have words of the
    books.
    """
    values: dict[str, Any] = read_yaml(ROOT / "conf" / "paper.yaml")
    values["tasks"] = {"scitail": values["tasks"]["scitail"]}
    values |= {"transfer": {}, "zero_shot": {}, "bpe": values["bpe"] | {"source": "learn"}}
    (folder / "params.yaml").write_text(json.dumps(values))
    pairs = folder / "data/acquire/tasks/scitail"
    pairs.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        rows = [[f"Premise {row} of {split}.", f"Its {row} other.", "neutral"] for row in range(12)]
        if split == "test":
            rows[2][0] = "He didn't say so — “one” two three four five six seven eight nine ten."
            rows[4][1] = (
                "ELEVEN twelve, thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
                " twenty and two more words"
            )
        (pairs / f"scitail_1.0_{split}.tsv").write_text(
            "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8"
        )
    books = folder / "data/clean/books"
    books.mkdir(parents=True)
    (books / "a.txt").write_text("nothing of it")
    (books / "b.txt").write_text(
        'x he did n\'t say so - " one " two three \n four five six seven eight nine ten y'
    )
    (books / "c.txt").write_text(
        "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty and two"
        " but more"
    )
    (folder / "data/clean/counts.json").write_text(
        json.dumps({"corpus_name": "three books", "totals": {"words": 40}})
    )


def test_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    cleaner = Cleaner()
    monkeypatch.setattr("gpt1.tasks.contamination.texts.Cleaner", lambda: cleaner)
    run_here("contamination", tmp_path, monkeypatch)
    folder = tmp_path / "data/contamination"
    table = read_json(folder / "table.json")
    assert [
        (row["split"], row["scored"], row["examples"], row["overlapping"]) for row in table["rows"]
    ] == [("dev", False, 12, 0), ("test", True, 12, 1)]
    [worst] = table["worst"]
    assert (worst["example"], worst["runs_found"], worst["book"]) == (2, 3, "b.txt")
    assert worst["words"] == "he did n't say so one two three four five six seven eight"
    assert sorted(path.name for path in folder.iterdir()) == ["table.csv", "table.json", "table.md"]
    text = (folder / "table.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "three books: 40 words" in text
    assert next(csv.DictReader((folder / "table.csv").open()))["corpus"] == "three books"

    values = json.loads((tmp_path / "params.yaml").read_text())
    (tmp_path / "params.yaml").write_text(json.dumps(values | {"contamination": {"ngram": 12}}))
    run_here("contamination", tmp_path, monkeypatch)
    assert [row["overlapping"] for row in read_json(folder / "table.json")["rows"]] == [0, 2]


def test_any_number_of_tasks_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = made_corpus(tmp_path, random.Random(1))
    index = make_index([*list(corpus.values())[:9], "never"], 4)
    found = []
    monkeypatch.chdir(tmp_path)
    for tasks in ("1", "3"):
        monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
        found.append(search(index, cleaned_books(tmp_path)))
    assert list(found[0].items()) == list(found[1].items())
    assert len(found[0]) > 20
