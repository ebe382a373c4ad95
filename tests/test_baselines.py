"""What the networks are to beat: word vectors worked out by hand, a task that they can do and TF-IDF
cannot, choices, scores, what is tuned on which rows, and the stages from books to logits.
"""

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file
from gpt1.corpus.books import HoldOut, cleaned_books
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.yaml import read_yaml
from gpt1.results.answers import Answers
from gpt1.stages import baselines, encode, word_vectors
from gpt1.tasks.baselines import vectors as vectors_module
from gpt1.tasks.baselines.features import bag_of_words, mean_vectors, vector_features
from gpt1.tasks.baselines.inputs import Rows, read_rows
from gpt1.tasks.baselines.linear import Candidate, chosen, scores, scores_as_logits
from gpt1.tasks.baselines.systems import SettingsGrid, candidates
from gpt1.tasks.baselines.vectors import learn_vectors, ppmi
from gpt1.tasks.metrics import predictions
from gpt1.tasks.table import TASKS

ROOT = Path(__file__).parents[1]
STORY_HEADER = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
ALL = HoldOut(0, 0.0)  # none is held out
POLES = (
    (("glad", "merry", "happy", "cheerful"), ("smiled", "sang", "laughed", "danced")),
    (("sad", "gloomy", "unhappy", "sorrowful"), ("wept", "sighed", "cried", "mourned")),
)
CLASSES = {"target": "class", "metric": "accuracy", "combine": "single", "outputs": 2}
CHOICES = {"target": "class", "metric": "accuracy", "combine": "choose", "outputs": 2}
SCORES = {"target": "score", "metric": "pearson", "combine": "sum", "outputs": 6}


def write_books(folder: Path, texts: list[str]) -> None:
    (folder / "books").mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / "books" / f"{number}.txt").write_text(text)


def mood_books() -> list[str]:
    """Books in which words of one pole stand beside the same deeds."""
    chance, books = random.Random(0), []
    for _ in range(4):
        said = []
        for _ in range(300):
            words, deeds = chance.choice(POLES)
            said.append(f"the {chance.choice(words)} one {chance.choice(deeds)} today .")
        books.append(" \n ".join(said))
    return books


def mood_rows(side: int, kind: str, count: int = 80) -> Rows:
    """Two words of a pole are the same, two of both are not; training and other rows share no
    word.
    """
    chance = random.Random(f"{side}{kind}")
    first, second, labels = [], [], []
    for row in range(count):
        pole, same = chance.randrange(2), row % 2
        told, again, other = (
            chance.choice(POLES[number][0][side::2]) for number in (pole, pole, 1 - pole)
        )
        first.append(f"the one was {told}")
        if kind == "choices":
            labels.append(right := chance.randrange(2))
            second += [again, other][:: -1 if right else 1]
        else:
            labels.append((5.0 if same else 0.5) if kind == "scores" else same)
            second.append(f"the one was {again if same else other}")
    return Rows((first, second), np.array(labels), np.arange(count))


@pytest.fixture(scope="module")
def moods(tmp_path_factory: pytest.TempPathFactory) -> SettingsGrid:
    folder = tmp_path_factory.mktemp("moods")
    write_books(folder, mood_books())
    words, learned = learn_vectors(cleaned_books(folder), ALL, 100, [4], 8)
    return SettingsGrid((1.0, 10.0), 100, words, learned, (4, 8))


def test_information_of_three_sentences_by_hand(tmp_path: Path) -> None:
    write_books(tmp_path, ["the cat sat", "the dog , sat", "a cat ran"])
    found = {}

    def keep(matrix: csr_matrix, dimensions: int) -> np.ndarray:
        found["ppmi"] = matrix.toarray()
        return np.zeros((matrix.shape[0], dimensions))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors_module, "decompose", keep)
        words, _ = learn_vectors(cleaned_books(tmp_path), ALL, 10, [1], 2)
    assert words == ["cat", "sat", "the", "a", "dog", "ran"]
    # 12 neighbours; beside cat stand 4, sat and the 2 each, dog 2, a and ran 1 each
    expected = {
        ("the", "cat"): math.log(1 * 12 / (2 * 4)),
        ("cat", "sat"): math.log(1 * 12 / (4 * 2)),
        ("the", "dog"): math.log(1 * 12 / (2 * 2)),
        ("dog", "sat"): math.log(1 * 12 / (2 * 2)),
        ("a", "cat"): math.log(1 * 12 / (1 * 4)),
        ("cat", "ran"): math.log(1 * 12 / (4 * 1)),
    }
    by_hand = np.zeros((6, 6))
    for (one, other), value in expected.items():
        by_hand[words.index(one), words.index(other)] = value
    np.testing.assert_allclose(found["ppmi"], by_hand + by_hand.T, atol=1e-12)


def test_what_stands_together_less_often_than_by_chance_has_no_information() -> None:
    found = ppmi(csr_matrix(np.array([[8, 1], [1, 8]]))).toarray()
    np.testing.assert_allclose(found, np.eye(2) * math.log(8 * 18 / 81))


def test_vectors_give_back_the_information_that_they_were_made_of(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    half = generator.random((12, 3))
    matrix = half @ half.T  # of rank 3, with no value below 0, so that both sides are equal
    vectors = vectors_module.decompose(csr_matrix(matrix), 3)
    np.testing.assert_allclose(vectors @ vectors.T, matrix, atol=1e-4)


@pytest.mark.slow
def test_held_out_books_teach_nothing_and_tasks_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_books(tmp_path, [*mood_books(), "secret words"])
    books = cleaned_books(tmp_path)
    hold_out = HoldOut(next(seed for seed in range(99) if HoldOut(seed, 0.2).holds("4.txt")), 0.2)
    learned = []
    monkeypatch.chdir(tmp_path)
    for tasks in ("1", "3"):
        monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
        words, vectors = learn_vectors(books, hold_out, 100, [2, 4], 8)
        learned.append((words, {window: one.tobytes() for window, one in vectors.items()}))
    assert learned[0] == learned[1]
    assert "secret" not in words
    assert "glad" in words


def test_no_word_to_learn_from_is_one_line(tmp_path: Path) -> None:
    write_books(tmp_path, [". , ."])
    with pytest.raises(UserError, match="expected words in the cleaned books"):
        learn_vectors(cleaned_books(tmp_path), ALL, 10, [1], 2)


def run(
    about: dict[str, Any], kind: str, system: str, grid: SettingsGrid
) -> tuple[Candidate, float]:
    """The candidate taken, and its score on test rows."""
    splits = {
        "train": mood_rows(0, kind),
        "dev": mood_rows(1, kind),
        "test": mood_rows(1, kind, 100),
    }
    taken, logits = chosen(about, list(candidates(system, about, splits, grid)), splits)
    assert logits["test/best"].shape == (100, about["outputs"])
    return taken, scores(about, logits, splits)["test/best"]


@pytest.mark.parametrize(
    ("about", "kind"), [(CLASSES, "pairs"), (CHOICES, "choices"), (SCORES, "scores")]
)
def test_synonyms_are_known_by_their_neighbours_and_not_by_themselves(
    about: dict[str, Any], kind: str, moods: SettingsGrid
) -> None:
    taken, found = run(about, kind, "word_vectors", moods)
    assert found > 0.95
    assert taken.settings.keys() == {"window", "dimensions", "penalty"}
    assert abs(run(about, kind, "tfidf", moods)[1] - (0 if kind == "scores" else 0.5)) < 0.25


@pytest.mark.parametrize(
    ("about", "labels", "answer"),
    [
        (CLASSES | {"outputs": 3}, [0, 0, 1, 0, 2], 0),
        (CLASSES | {"metric": "f1"}, [0, 0, 1, 0, 0], 1),
        (SCORES, [0, 0, 1, 0, 2], 0.6),
    ],
)
def test_a_constant_answer_is_the_commonest_class_the_mean_or_class_1_for_f1(
    about: dict[str, Any], labels: list[int], answer: float, moods: SettingsGrid
) -> None:
    rows = Rows((["x"] * 5,), np.array(labels), np.arange(5))
    [only] = candidates("majority", about, {"train": rows, "dev": rows}, moods)
    found = predictions(only.logits["dev"], about["target"])
    np.testing.assert_allclose(found, np.full(5, answer), rtol=1e-5)


def test_a_score_comes_back_from_its_logits_cut_to_the_scale() -> None:
    given = np.array([0.0, 0.25, 3.0, 4.999, 5.0, -2.0, 7.5])
    logits = scores_as_logits(given, 6)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(predictions(logits, "score"), given.clip(0, 5), atol=1e-6)


def test_no_half_of_dev_is_answered_by_what_it_selected() -> None:
    labels, texts = np.array([0, 1, 0, 1]), (["x"] * 4,)
    dev = Rows(texts, labels, np.array([0, 0, 1, 1]))

    def answering(*answers: int, sure: float = 1.0) -> np.ndarray:
        return np.array([[sure, 0] if answer == 0 else [0, sure] for answer in answers])

    first = Candidate({"penalty": 1}, {"dev": answering(0, 1, 1, 0)})  # right on the first half
    second = Candidate({"penalty": 2}, {"dev": answering(1, 1, 0, 1)})  # on the second, and once
    taken, logits = chosen(CLASSES, [first, second], {"dev": dev})
    assert taken is second
    assert predictions(logits["dev/best"], "class").tolist() == [1, 1, 0, 1]
    assert predictions(logits["dev/last"], "class").tolist() == [1, 1, 1, 0]
    less_sure = Candidate({"penalty": 3}, {"dev": answering(1, 1, 0, 1, sure=0.1)})
    assert chosen(CLASSES, [less_sure, second], {"dev": dev})[0] is second


def test_features_of_a_pair_by_hand() -> None:
    bag, vectors = bag_of_words(["a", "b"]), np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    np.testing.assert_allclose(
        mean_vectors(bag.transform(["a b unknown", "unknown"]), vectors), [[0.5, 1.0], [0.0, 0.0]]
    )
    found = vector_features(bag, vectors, (["a b"], ["b"]))  # means (.5, 1), (0, 2); alone: a, none
    cosine = 2 / (math.sqrt(1.25) * 2)
    np.testing.assert_allclose(found, [[0, 2, 0.5, 1, cosine, 0, 0, 1, 0, 0]], rtol=1e-6)


def write_run(folder: Path) -> None:
    """Books, a vocabulary, and the official files of three tasks."""
    values = read_yaml(ROOT / "conf" / "paper.yaml")
    values["tasks"] = {name: values["tasks"][name] for name in ("snli", "stsb", "story_cloze")}
    values |= {
        "transfer": {},
        "zero_shot": {},
        "shard": {"heldout_fraction": 0.3, "heldout_seed": 3},
    }
    values["baselines"] |= {"dimensions": [8], "windows": [4]}
    values["model"]["context"] = 128
    (folder / "params.yaml").write_text(json.dumps(values))
    write_books(folder / "data/clean", mood_books())
    Vocabulary("abcdefghijklmnopqrstuvwxyz.,?0123456789", []).save(Path("data/bpe"), {})
    for name in ("snli", "stsb", "story_cloze"):
        (folder / "data/acquire/tasks" / name).mkdir(parents=True)
    for split in ("train", "dev", "test"):
        side = int(split != "train")
        pairs = mood_rows(side, "pairs", 30)
        words = [("contradiction", "entailment")[label] for label in pairs.labels]
        rows = list(zip(*pairs.parts, words, strict=True))
        (folder / f"data/acquire/tasks/snli/snli_1.0_{split}.jsonl").write_text(
            "".join(
                json.dumps({"sentence1": one, "sentence2": other, "gold_label": label}) + "\n"
                for one, other, label in rows
            )
        )
        (folder / f"data/acquire/tasks/stsb/sts-{split}.csv").write_text(
            "".join(
                f"g\tf\t2018\t1\t{5 if label == 'entailment' else 1}\t{one}\t{other}\n"
                for one, other, label in rows
            )
        )
    stories = mood_rows(1, "choices", 30)
    endings = iter(stories.parts[1])
    lines = [STORY_HEADER]
    for number, (story, label) in enumerate(zip(stories.parts[0], stories.labels, strict=True)):
        lines.append(f"{number},{story},a,b,c,{next(endings)},{next(endings)},{label + 1}\n")
    for name in TASKS["story_cloze"].source.layouts[0].required:
        (folder / "data/acquire/tasks/story_cloze" / name).write_text("".join(lines))


def outputs(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_file(path)
        for stage in ("word_vectors", "baselines")
        for path in sorted((folder / "data" / stage).rglob("*"))
        if path.is_file()
    }


def test_from_books_and_tasks_to_logits_twice_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    for name in ("snli", "stsb", "story_cloze"):
        encode.main(name)
    made = []
    for _ in range(2):
        word_vectors.main()
        baselines.main()
        made.append(outputs(tmp_path))
    assert made[0] == made[1]
    for name, group in (("snli", "nli"), ("stsb", "glue"), ("story_cloze", "qa")):
        encoded = Path("data/encode", group, name)
        about = read_json(encoded / "task.json")
        found = read_json(Path("data/baselines", name, "scores.json"))
        assert found["metric"] == about["metric"]
        assert list(found["systems"]) == ["majority", "tfidf", "word_vectors"]
        for system in found["systems"]:
            place = Path("data/baselines", name, system)
            answers = Answers(name, about, encoded, place, (0,), "baselines", system, None)
            for split, weights in (("dev", "last"), ("test", "best")):
                labels, rows = answers.labels(split, None)
                assert answers.logits(0, split, weights)[rows].shape == (
                    len(labels),
                    about["outputs"],
                )
        assert found["systems"]["word_vectors"]["test/best"] > 0.8, name
    with np.load("data/encode/nli/snli/clusters.npz") as clusters:
        premises = mood_rows(1, "pairs", 30).parts[0]
        assert len(set(clusters["dev"].tolist())) == len(set(premises))


def test_text_of_an_encoded_row_is_its_words_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    vocabulary = Vocabulary.load(Path("data/bpe"))
    for name, group, kind in (("snli", "nli", "pairs"), ("stsb", "glue", "pairs")):
        encode.main(name)
        folder = Path("data/encode", group, name)
        rows = read_rows(folder, "dev", read_json(folder / "task.json"), vocabulary)
        assert rows.parts == mood_rows(1, kind, 30).parts
    encode.main("story_cloze")
    folder = Path("data/encode/qa/story_cloze")
    rows = read_rows(folder, "test", read_json(folder / "task.json"), vocabulary)
    wanted = mood_rows(1, "choices", 30).parts
    assert rows.parts == ([f"{story} a b c" for story in wanted[0]], wanted[1])


@pytest.mark.slow
def test_no_library_of_matrices_is_loaded_after_the_limit_of_one_thread() -> None:
    """What is loaded later would not be held to it, and threads change the rounding."""
    program = """
import gpt1.stages.baselines, gpt1.stages.word_vectors
from threadpoolctl import threadpool_info
import numpy as np
from scipy.sparse import csr_matrix
from gpt1.tasks.baselines.inputs import Rows
from gpt1.tasks.baselines.linear import fit
from gpt1.tasks.baselines.vectors import decompose

def libraries():
    return {one["filepath"] for one in threadpool_info()}

limited, matrix = libraries(), np.eye(20)
decompose(csr_matrix(matrix), 4)
for target in ("score", "class"):
    about = {"target": target, "combine": "single"}
    fit(about, Rows(([],), np.arange(20) % 2, np.arange(20)), matrix, 1.0)
assert limited == libraries(), libraries() - limited
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
