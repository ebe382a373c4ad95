"""The made-up world: the bytes of the runs shipped; tasks that share nothing with the books."""

import csv
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gpt1.demo import lexicon
from gpt1.demo.files import SIZES, write_world
from gpt1.demo.qualities import ALL
from gpt1.demo.sides import Side, clauses, sentences
from gpt1.demo.tales import TALES, WAYS, Tale
from gpt1.demo.telling import TELLINGS, Fact, clause_of, fill, with_articles
from gpt1.params.schema import read_params
from gpt1.tasks.pronouns import DPRD
from gpt1.tasks.readers import read_task
from gpt1.tasks.rows import Example
from gpt1.tasks.table import TASKS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SEED, BOOKS, PAGES = 5, 4, 40
OF_SHIPPED_RUNS = "61bf1cc9dbdfd9ad8d9638057fd949c3c4ca2cbfe1d3e54d3f054e0afcb15c00"
MAKE = (
    "from pathlib import Path; from gpt1.demo.files import write_world; write_world(Path('world'),"
    f" {SEED}, {BOOKS}, {PAGES})"
)


def digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".gz":  # another zlib may pack otherwise
            whole.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return whole.hexdigest()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "world"
    write_world(folder, SEED, BOOKS, PAGES)
    return folder


def rows_of(world: Path, task: str) -> tuple[list[str], list[str]]:
    """The texts of training rows, and of development and test rows."""
    train, rest = [], []
    for path in sorted((world / task).iterdir()):
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".jsonl":
            found = [
                f"{row['sentence1']} {row['sentence2']}"
                for row in map(json.loads, text.splitlines())
            ]
        elif task == "story_cloze":
            found = [" ".join(row[1:7]) for row in list(csv.reader(text.splitlines()))[1:]]
        else:
            found = text.splitlines()
        (train if re.search(r"train|_val_", path.name) else rest).extend(found)
    return train, rest


TEXT_TASKS = sorted(set(SIZES) - {"race", "dprd"})


def test_equal_seeds_give_equal_bytes_whatever_the_hash_seed(world: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", MAKE],
        cwd=tmp_path,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77"},
    )
    assert digest(tmp_path / "world") == digest(world) == OF_SHIPPED_RUNS


@pytest.mark.parametrize("kind", sorted(TELLINGS))
def test_tellings_name_subject_and_value(kind: str) -> None:
    assert len(set(TELLINGS[kind])) == 8
    assert all("{s}" in telling and "{v}" in telling for telling in TELLINGS[kind])


@pytest.mark.parametrize("noun", sorted(ALL))
def test_the_poles_of_a_quality_are_alike_in_form(noun: str) -> None:
    for pole in ALL[noun]:
        assert (len(set(pole.words)), len(pole.likes), len(set(pole.signs))) == (4, 2, 4)
        assert all(sign.count("{s}") == 1 for sign in pole.signs)


def test_no_word_tells_two_qualities() -> None:
    found = [word for poles in ALL.values() for pole in poles for word in pole.words]
    assert not [word for word, count in Counter(found).items() if count > 1]


def test_a_pronoun_stands_in_its_case() -> None:
    fact = Fact("wealth", "Anna's aunt", "rich")
    assert clause_of(fact, 0, "she") == "she was rich"
    assert fill("servants waited upon {s}", "x", "she") == "servants waited upon her"
    assert (
        fill("what a {v} {w} {one} {s} was", "x", "he", v="rich", w="wealthy", one="man")
        == "what a rich wealthy man he was"
    )
    assert with_articles("a owl and a goat") == "an owl and a goat"


@pytest.mark.parametrize("task", TEXT_TASKS)
def test_sides_share_no_names_and_no_streets(world: Path, task: str) -> None:
    names = {*lexicon.WOMEN, *lexicon.MEN}
    streets = re.compile(rf"\b[A-Z][a-z]+ (?:{'|'.join(lexicon.STREET_KINDS)})\b")
    train, rest = (" ".join(rows) for rows in rows_of(world, task))
    used = [
        (names & set(re.findall(r"[A-Z][a-z]+", text))) | set(streets.findall(text))
        for text in (train, rest)
    ]
    assert used[0]
    assert used[1]
    assert not used[0] & used[1]


POLAR = {word for poles in ALL.values() for pole in poles for word in pole.words}
OPINIONS = {*lexicon.GOOD, *lexicon.BAD, *lexicon.PRAISES, *lexicon.BLAMES}


@pytest.mark.parametrize(
    ("task", "telling"),
    [
        *(
            (task, POLAR)
            for task in ("snli", "mnli", "qqp", "stsb", "rte", "scitail", "qnli", "mrpc")
        ),
        ("sst2", OPINIONS),
    ],
)
def test_sides_share_none_of_the_words_that_decide(
    world: Path, task: str, telling: set[str]
) -> None:
    train, rest = (
        telling & set(re.findall(r"[a-z]+", " ".join(rows).lower()))
        for rows in rows_of(world, task)
    )
    assert len(train) > 3
    assert len(rest) > 3
    assert not train & rest


ON_ORDER = ("rte", "scitail", "qnli", "mrpc", "cola")


def words(text: str) -> tuple[str, ...]:
    """All tokens of a text, in no order."""
    return tuple(sorted(re.findall(r"\w+|[^\w\s]", text.lower())))


def splits_of(world: Path, task: str) -> dict[str, list[Example]]:
    """The labelled splits as the pipeline reads them."""
    about = DPRD if task == "dprd" else TASKS[task]
    splits, _ = read_task(about, world / task, read_params().tasks["mnli"], 0.0)
    return {name: rows.examples for name, rows in splits.items() if rows.labelled}


@pytest.mark.parametrize("task", [*ON_ORDER, "dprd"])
def test_every_row_on_order_has_a_twin_of_the_same_words_and_another_label(
    world: Path, task: str
) -> None:
    """So that whatever sees no order, in any of the texts, answers half of them wrongly."""
    splits = splits_of(world, task)
    assert len(splits) >= 2
    for examples in splits.values():
        labels: dict[object, Counter[float]] = {}
        for row in examples:
            key = tuple(map(words, (*row.context, *row.choices)))
            labels.setdefault(key, Counter())[row.label] += 1
        for found in labels.values():
            assert len(found) == 2
            assert len(set(found.values())) == 1  # as often each: no class is likelier


FILLERS = {*lexicon.WOMEN, *lexicon.MEN, *lexicon.THINGS, *POLAR, *WAYS}


def tale_of(task: str, row: Example) -> str:
    """What a row on order tells."""
    return row.context[0 if task in ("mrpc", "cola") else 1]


@pytest.mark.parametrize("task", ["rte", "scitail", "qnli", "mrpc"])
def test_a_frame_is_kept_from_training(world: Path, task: str) -> None:
    frames: dict[bool, set[str]] = {True: set(), False: set()}
    for name, rows in splits_of(world, task).items():
        for row in rows:
            told = tale_of(task, row)
            bare = re.sub(r"\w+", lambda word: "" if word[0] in FILLERS else word[0], told)
            frames[name == "train"].add(bare)
    assert len(frames[True]) > 1
    assert frames[True] < frames[False]


@pytest.mark.parametrize("tale", TALES)
@pytest.mark.parametrize("number", range(4))
def test_a_tale_and_its_contrary_are_of_the_same_words(tale: Tale, number: int) -> None:
    town = Side(1, random.Random(f"tale {number}")).town()
    slots = tale.draw(town)
    contrary = tale.contrary(slots)
    for frame in tale.frames:
        assert words(frame.format(**slots)) == words(frame.format(**contrary))


@pytest.mark.parametrize("task", TEXT_TASKS)
def test_no_sentence_of_a_task_stands_in_the_books(world: Path, task: str) -> None:
    said = {
        clause
        for path in (world / "books").iterdir()
        for clause in [*clauses(path.read_text()), *sentences(path.read_text())]
    }
    if task in ON_ORDER:  # a claim may: it is true of one twin and false of the other
        told = [
            sentence
            for rows in splits_of(world, task).values()
            for row in rows
            for sentence in sentences(tale_of(task, row))
        ]
        assert told
        assert not said & set(told)
        return
    found = [
        clause
        for rows in rows_of(world, task)
        for row in rows
        for cell in row.split("\t")
        for clause in clauses(cell)
        if clause in said
        and len(clause.split()) > 2
        and not clause.startswith(("the newspaper", "it added"))
    ]
    assert not found, f"{len(found)} clauses stand in the books too, such as {found[:3]}"


def test_labels_are_balanced(world: Path) -> None:
    for name, labels in (
        ("snli/snli_1.0_train.jsonl", 3),
        ("mnli/multinli_1.0_dev_mismatched.jsonl", 3),
    ):
        counts = Counter(
            json.loads(line)["gold_label"] for line in (world / name).read_text().splitlines()
        )
        assert len(counts) == labels
        assert max(counts.values()) - min(counts.values()) <= 1
    for name, column in (
        ("qnli/dev.tsv", -1),
        ("rte/train.tsv", -1),
        ("sst2/dev.tsv", -1),
        ("cola/train.tsv", 1),
        ("qqp/dev.tsv", -1),
    ):
        rows = [line.split("\t")[column] for line in (world / name).read_text().splitlines()[1:]]
        assert max(Counter(rows).values()) <= len(rows) / 2 + 1, name


def test_the_first_of_two_people_is_meant_as_often_as_the_second(world: Path) -> None:
    for name in ("train", "test"):
        blocks = [
            block.split("\n")
            for block in (world / "dprd" / f"{name}.c.txt").read_text().strip().split("\n\n")
        ]
        first = sum(right == candidates.split(",")[0] for _, _, candidates, right in blocks)
        assert abs(2 * first - len(blocks)) <= 1


def second_text(line: str) -> tuple[str, str]:
    """The hypothesis and the label of a row of an entailment task."""
    if line.startswith("{"):
        row = json.loads(line)
        return row["sentence2"], row["gold_label"]
    return line.split("\t")[2], line.split("\t")[3]


@pytest.mark.parametrize(
    ("task", "train", "test"),
    [
        ("snli", "snli_1.0_train.jsonl", "snli_1.0_test.jsonl"),
    ],
)
def test_the_second_text_alone_says_little(world: Path, task: str, train: str, test: str) -> None:
    """Within 5 points, and two standard errors, of the majority, by words and by pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    learn, check = (
        [second_text(line) for line in (world / task / name).read_text().splitlines()]
        for name in (train, test)
    )
    guess = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000)
    ).fit(*zip(*learn, strict=True))
    texts, labels = zip(*check, strict=True)
    majority = max(Counter(labels).values()) / len(labels)
    assert (
        guess.score(texts, labels)
        <= majority + 0.05 + 2 * (majority * (1 - majority) / len(labels)) ** 0.5
    )
