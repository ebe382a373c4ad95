"""What the networks are to beat: choices, scores, what is tuned on which rows, and the stage from
rows to logits.
"""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_data import as_json_lines, outputs, put_files
from made_results import write_params

from gpt1.base.files import read_arrays, read_json
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import Baselines
from gpt1.stages import baselines, encode
from gpt1.tasks.baselines import (
    Candidate,
    DecodedRows,
    candidates,
    chosen,
    read_rows,
    scores_as_logits,
)
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.metrics import answers_of

ROOT = Path(__file__).parents[1]
STORY_HEADER = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
POLES = (("glad", "merry", "happy", "cheerful"), ("sad", "gloomy", "unhappy", "sorrowful"))
CLASSES = {"target": "class", "metric": "accuracy", "combine": "single", "outputs": 2}
SCORES = {"target": "score", "metric": "pearson", "combine": "sum", "outputs": 6}


def mood_rows(side, kind, count=80):
    """Two words of a pole are the same, two of both are not; training and other rows share no
    word.
    """
    chance = random.Random(f"{side}{kind}")
    first, second, labels = [], [], []
    for row in range(count):
        pole, same = chance.randrange(2), row % 2
        told, again, other = (
            chance.choice(POLES[number][side::2]) for number in (pole, pole, 1 - pole)
        )
        first.append(f"the one was {told}")
        if kind == "choices":
            labels.append(right := chance.randrange(2))
            second += [again, other][:: -1 if right else 1]
        else:
            labels.append((5.0 if same else 0.5) if kind == "scores" else same)
            second.append(f"the one was {again if same else other}")
    return DecodedRows((first, second), np.array(labels), np.arange(count))


GRID = Baselines(systems=("tfidf",), words=100, penalties=(1.0, 10.0))


@pytest.mark.parametrize(
    ("about", "labels", "answer"),
    [
        (CLASSES | {"outputs": 3}, [0, 0, 1, 0, 2], 0),
        (CLASSES | {"metric": "f1"}, [0, 0, 1, 0, 0], 1),
        (SCORES, [0, 0, 1, 0, 2], 0.6),
    ],
)
def test_a_constant_answer_is_the_commonest_class_the_mean_or_class_1_for_f1(about, labels, answer):
    rows = DecodedRows((["x"] * 5,), np.array(labels), np.arange(5))
    [only] = candidates("majority", about, {"train": rows, "dev": rows}, GRID)
    found = answers_of(only.logits["dev"], about["target"])
    np.testing.assert_allclose(found, np.full(5, answer), rtol=1e-5)


def test_a_score_comes_back_from_its_logits_cut_to_the_scale():
    given = np.array([0.0, 0.25, 3.0, 4.999, 5.0, -2.0, 7.5])
    logits = scores_as_logits(given, 6)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(answers_of(logits, "score"), given.clip(0, 5), atol=1e-6)


def test_no_half_of_dev_is_answered_by_what_it_selected():
    labels, texts = np.array([0, 1, 0, 1]), (["x"] * 4,)
    dev = DecodedRows(texts, labels, np.array([0, 0, 1, 1]))

    def answering(*answers, sure=1.0):
        return np.array([[sure, 0] if answer == 0 else [0, sure] for answer in answers])

    first = Candidate({"penalty": 1}, {"dev": answering(0, 1, 1, 0)})  # right on the first half
    second = Candidate({"penalty": 2}, {"dev": answering(1, 1, 0, 1)})  # on the second, and once
    taken, logits = chosen(CLASSES, [first, second], {"dev": dev})
    assert taken is second
    assert answers_of(logits["dev/best"], "class").tolist() == [1, 1, 0, 1]
    assert answers_of(logits["dev/last"], "class").tolist() == [1, 1, 1, 0]
    less_sure = Candidate({"penalty": 3}, {"dev": answering(1, 1, 0, 1, sure=0.1)})
    assert chosen(CLASSES, [less_sure, second], {"dev": dev})[0] is second


def write_run():
    """A vocabulary, and the official files of three tasks."""
    write_params(["snli", "stsb", "story_cloze"], [0], model={"context": 128})
    Vocabulary("abcdefghijklmnopqrstuvwxyz.,?0123456789", []).save(Path("data/bpe"), {})
    files = {}
    for split in ("train", "dev", "test"):
        side = int(split != "train")
        pairs = mood_rows(side, "pairs", 30)
        words = [("contradiction", "entailment")[label] for label in pairs.labels]
        rows = list(zip(*pairs.parts, words, strict=True))
        files[f"snli/snli_1.0_{split}.jsonl"] = as_json_lines(
            {"sentence1": one, "sentence2": other, "gold_label": label}
            for one, other, label in rows
        )
        files[f"stsb/sts-{split}.csv"] = "".join(
            f"g\tf\t2018\t1\t{5 if label == 'entailment' else 1}\t{one}\t{other}\n"
            for one, other, label in rows
        )
    stories = mood_rows(1, "choices", 30)
    endings = iter(stories.parts[1])
    lines = [STORY_HEADER]
    for number, (story, label) in enumerate(zip(stories.parts[0], stories.labels, strict=True)):
        lines.append(f"{number},{story},a,b,c,{next(endings)},{next(endings)},{label + 1}\n")
    for name in TASKS["story_cloze"].source.layouts[0].required:
        files[f"story_cloze/{name}"] = "".join(lines)
    put_files("data/acquire/tasks", files)


def test_from_tasks_to_logits_twice_the_same_bytes(elsewhere):
    write_run()
    for name in ("snli", "stsb", "story_cloze"):
        encode.main(name)
    made = []
    for _ in range(2):
        baselines.main()
        made.append(outputs("data/baselines"))
    assert made[0] == made[1]
    for name, group in (("snli", "nli"), ("stsb", "glue"), ("story_cloze", "qa")):
        encoded = Path("data/encode", group, name)
        about = read_json(encoded / "task.json")
        found = read_json(Path("data/baselines", name, "scores.json"))
        assert found["metric"] == about["metric"]
        assert list(found["systems"]) == ["majority", "tfidf"]
        for system in found["systems"]:
            place = Path("data/baselines", name, system)
            logits = place / "seed-0" / "logits.npz"
            for split, weights in (("dev", "last"), ("test", "best")):
                labels = read_arrays(encoded / f"{split}.npz", ["labels"])["labels"]
                given = read_arrays(logits, [f"{split}/{weights}"])[f"{split}/{weights}"]
                assert given.shape == (len(labels), about["outputs"])
    with np.load("data/encode/nli/snli/clusters.npz") as clusters:
        premises = mood_rows(1, "pairs", 30).parts[0]
        assert len(set(clusters["dev"].tolist())) == len(set(premises))


def test_text_of_an_encoded_row_is_its_words_again(elsewhere):
    write_run()
    stories = mood_rows(1, "choices", 30).parts
    for name, group, split, wanted in (
        ("snli", "nli", "dev", mood_rows(1, "pairs", 30).parts),
        ("story_cloze", "qa", "test", ([f"{story} a b c" for story in stories[0]], stories[1])),
    ):
        encode.main(name)
        folder = Path("data/encode", group, name)
        about, vocabulary = read_json(folder / "task.json"), Vocabulary.load(Path("data/bpe"))
        assert read_rows(folder, split, about, vocabulary).parts == wanted


@pytest.mark.slow
def test_no_library_of_matrices_is_loaded_after_the_limit_of_one_thread():
    """What is loaded later would not be held to it, and threads change the rounding."""
    program = """
import gpt1.stages.baselines
from threadpoolctl import threadpool_info
import numpy as np
from gpt1.tasks.baselines import DecodedRows, fit

def libraries():
    return {one["filepath"] for one in threadpool_info()}

limited, matrix = libraries(), np.eye(20)
for target in ("score", "class"):
    about = {"target": target, "combine": "single"}
    fit(about, DecodedRows(([],), np.arange(20) % 2, np.arange(20)), matrix, 1.0)
assert limited == libraries(), libraries() - limited
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
