"""Saved task models: what they answer, from which fields and files; a tiny model, random but for
its seed.
"""

import json
import math
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from made_answers import DELIMITER, EXTRACT, GROUPS, LETTERS, START, one, write_models
from made_data import write_params
from our_imports import ROOT, closure, relative
from typer.testing import CliRunner

from gpt1.base.errors import UserError
from gpt1.commands.evaluate import evaluate
from gpt1.commands.predict import answer_line, predict
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.evaluation import read_official
from gpt1.inference.fields import example_from_line, example_from_record, make_example
from gpt1.inference.finished import finished
from gpt1.inference.registered import ROOMS
from gpt1.inference.saved import Answer, answer, load_model
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.weights import Description, save_weights
from gpt1.params.schema import read_params
from gpt1.tasks.rows import Example
from gpt1.tasks.table import TASKS


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with vocabulary, parameters, and models of an entailment, a score, a choice and a
    text of one sentence.
    """
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_models(folder, *GROUPS)
    return folder


@pytest.fixture
def here(models, monkeypatch):
    monkeypatch.chdir(models)
    monkeypatch.setenv("GPT1_DEVICE", "cpu")


@pytest.fixture
def run(here):
    """Run a command in this process: its exit status and what it wrote."""

    def invoke(command, *arguments, lines=""):
        app = typer.Typer()
        app.command()(command)
        found = CliRunner().invoke(app, arguments, input=lines)
        if isinstance(found.exception, UserError):
            raise found.exception
        assert found.exit_code == 0, found.output
        return found

    return invoke


@lru_cache
def load(name: str, seed: int | None = None):
    return load_model(finished(read_params(), name).weights(seed), Path("data/bpe"))


def test_answers_from_logits_by_hand():
    found = answer(TASKS["rte"], np.array([0.0, math.log(3)], np.float32))
    assert found.label == "not_entailment"
    assert found.probabilities == pytest.approx({"entailment": 0.25, "not_entailment": 0.75})
    scored = answer(TASKS["stsb"], np.array([-99, -99, 0, math.log(3), -99, -99], np.float32))
    assert scored.score == pytest.approx(0.25 * 2 + 0.75 * 3)
    assert list(scored.probabilities) == ["0", "1", "2", "3", "4", "5"]
    chosen = answer(TASKS["race"], np.array([1, 2, 9, 3], np.float32), ("w", "x", "y", "z"))
    assert (chosen.label, chosen.choice, chosen.score) == ("C", "y", None)
    assert chosen.record().keys() == {"label", "choice", "probabilities"}


def test_sequences_are_those_of_figure_1(here):
    assert load("rte").sequences(Example(("a b", "C"))) == [
        [START, one("a"), one("b"), DELIMITER, one("c"), EXTRACT]
    ]
    both = load("stsb").sequences(Example(("a", "b")))
    assert both == [
        [START, one("a"), DELIMITER, one("b"), EXTRACT],
        [START, one("b"), DELIMITER, one("a"), EXTRACT],
    ]
    assert load("stsb").answer(Example(("a", "b"))).score == pytest.approx(
        load("stsb").answer(Example(("b", "a"))).score, abs=1e-6
    )
    race = load("race").sequences(Example(("p", "q"), ("a", "b", "c", "d")))
    assert race == [
        [START, one("p"), one("q"), DELIMITER, one(ending), EXTRACT] for ending in "abcd"
    ]
    assert load("cola").sequences(Example(("a b",))) == [[START, one("a"), one("b"), EXTRACT]]


def test_neighbours_and_padding_change_no_bit(here):
    model = load("rte")
    short, long = Example(("a", "b")), Example(("a b c d e", "f g h"))
    alone = [model.answer(one) for one in (short, long)]
    assert list(model.answers([long, short, long, short])) == [
        alone[1],
        alone[0],
        alone[1],
        alone[0],
    ]
    ids = [model.sequences(one)[0] for one in (short, long)]
    padded_b1t = torch.tensor([[[*row, *[one("z")] * (16 - len(row))]] for row in ids])
    with torch.no_grad():
        together = model.classifier(padded_b1t, NO_DROPOUT, 0.0).logits_bo.numpy()
    assert np.stack([model.logits([row]) for row in ids]) == pytest.approx(
        together, rel=1e-5, abs=5e-5
    )
    assert len({found.probabilities["entailment"] for found in alone}) == 2


def test_the_best_seed_answers_unless_another_is_named(here):
    done = finished(read_params(), "rte")
    assert (done.best(), done.weights(None).parent.name, done.weights(2).parent.name) == (
        1,
        "seed-1",
        "seed-2",
    )
    example = Example(("a b", "c"))
    assert (
        load("rte").answer(example)
        == load("rte", 1).answer(example)
        != load("rte", 0).answer(example)
    )
    with pytest.raises(
        UserError,
        match=r"expected one of the seeds 0, 1, 2, found 7; choose one of them with --seed",
    ):
        done.weights(7)


def test_what_is_not_there_is_one_line(here, tmp_path):
    with pytest.raises(
        UserError, match=r"expected one of the tasks in params.yaml: .*; found winograd"
    ):
        finished(read_params(), "winograd")
    with pytest.raises(
        UserError,
        match=r"summary.json is not there: mnli is not fine-tuned; run gpt1 run finetune@mnli",
    ):
        finished(read_params(), "mnli")
    Vocabulary(LETTERS[:-1], []).save(tmp_path / "bpe", {})
    weights = finished(read_params(), "rte").weights(None)
    with pytest.raises(
        UserError,
        match=r"expected weights trained with the vocabulary in .*; name the folder of their own",
    ):
        load_model(weights, tmp_path / "bpe")
    model = load("cola").classifier
    save_weights(
        tmp_path / "language.safetensors", model.decoder, Description("transformer", {}, 1, "f")
    )
    with pytest.raises(
        UserError,
        match=(
            r"expected weights of a fine-tuned transformer for one of the tasks.* found"
            r" 'transformer'"
        ),
    ):
        load_model(tmp_path / "language.safetensors", Path("data/bpe"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a", "line 3: expected first, second with tabs between, 2 in all, found 1"),
        ("a\t", "line 3: expected text in every field, found empty text .second."),
        ('{"first": "a"}', "line 3: expected first, second for rte, found first"),
        (
            '{"first": "a", "secnd": "b"}',
            "expected the fields first, second, choices, found 'secnd'",
        ),
        (
            '{"first": 1, "second": "b"}',
            "expected text in every field, found no text .first is int.",
        ),
        ('{"first": "a", "second": "b", "choices": ["c"]}', "found first, second, 1 choices"),
        ("{a", "expected a JSON object, for the line begins with a brace"),
    ],
)
def test_a_bad_line_is_refused(line, message):
    with pytest.raises(UserError, match=message):
        example_from_line(TASKS["rte"], line, "line 3")


def test_lines_and_records_give_the_same_example():
    expected = Example(("p", "q"), ("a", "b", "c", "d"))
    race = TASKS["race"]
    assert (
        example_from_line(race, "p\tq\ta\tb\tc\td", "")
        == expected
        == make_example(race, "p", "q", ("a", "b", "c", "d"))
    )
    assert (
        example_from_record(
            race, {"first": "p", "second": "q", "choices": ["a", "b", "c", "d"]}, ""
        )
        == expected
    )
    assert example_from_line(
        TASKS["cola"], '{"first": "x", "second": null, "choices": null}', ""
    ) == Example(("x",))


def test_predict_answers_options_and_lines_alike(run):
    by_options = run(predict, "rte", "--first", "a b", "--second", "c", "--json").stdout
    assert json.loads(by_options) == load("rte").answer(Example(("a b", "c"))).record()
    by_lines = run(
        predict, "rte", "--json", lines='d\te\n\n{"first": "a b", "second": "c"}\n'
    ).stdout.splitlines()
    assert len(by_lines) == 2
    assert by_lines[1] + "\n" == by_options
    shown = run(predict, "race", "--seed", "0", lines="p\tq\ta\tb\tc\td\n").stdout
    label, choice, *probabilities = shown.split()
    assert choice == "abcd"["ABCD".index(label)]
    assert [word.strip("(,)") for word in probabilities[::2]] == ["A", "B", "C", "D"]
    with pytest.raises(UserError, match="the options: expected first, second for rte, found first"):
        run(predict, "rte", "--first", "a")
    hostile = Answer(label="A", choice="a\x1b[2Jb\u202ec", score=None, probabilities={"A": 1.0})
    assert answer_line(hostile).startswith("A  a[2Jbc ")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            b"A dog.\nA caf\xe9.\n",
            "line 2: expected text in UTF-8, found not UTF-8 (byte 0xe9 at 5)",
        ),
        (
            "A cat.\n".encode("utf-16"),
            "line 1: expected text in UTF-8, found not UTF-8 (the mark of",
        ),
    ],
)
def test_lines_that_are_not_utf8_are_named(run, lines, said):
    with pytest.raises(UserError, match=re.escape(said)):
        run(predict, "cola", lines=lines)


def test_a_mark_of_utf8_is_no_text(run):
    plain, marked = (
        run(predict, "cola", lines=mark + b"a b.\n") for mark in (b"", b"\xef\xbb\xbf")
    )
    assert plain.stdout == marked.stdout != ""


def test_evaluate_scores_a_file_with_labels(run, tmp_path):
    model, labels = load("rte"), ("entailment", "not_entailment")
    texts = [(first, second) for first in "abcdef" for second in "uvwxyz"]
    answers = [model.answer(Example(pair)).label for pair in texts]
    assert set(answers) == set(labels)
    given = [labels[place % 3 == 0] for place in range(len(texts))]
    rows = [
        f"{place}\t{first}\t{second}\t{label}"
        for place, ((first, second), label) in enumerate(zip(texts, given, strict=True))
    ]
    file = tmp_path / "some.tsv"
    file.write_text(
        "\n".join(["index\tsentence1\tsentence2\tlabel", *rows, "36\ta\tb\tmaybe"]) + "\n"
    )
    found = run(evaluate, "rte", str(file), "--json", "--out", str(tmp_path / "out.tsv"))
    outcome = json.loads(found.stdout)
    right = sum(said == label for said, label in zip(answers, given, strict=True)) / len(texts)
    assert outcome["scores"]["accuracy"]["value"] == pytest.approx(100 * right)
    assert outcome["scores"]["accuracy"]["standard_error"] == pytest.approx(
        100 * math.sqrt(right * (1 - right) / 36)
    )
    assert outcome["scores"]["accuracy"]["blind"] == pytest.approx(100 * 24 / 36)
    assert (outcome["seed"], outcome["examples"], outcome["unreadable"]) == (
        1,
        36,
        {"unknown label": 1},
    )
    assert "1 rows left out: unknown label" in found.stderr
    written = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert written[0] == ["index", "prediction", "p(entailment)", "p(not_entailment)"]
    assert [row[1] for row in written[1:]] == answers


def test_evaluate_says_where_labels_are_absent(run, tmp_path, monkeypatch):
    weights = Path.cwd() / "data"
    (tmp_path / "data").symlink_to(weights)
    write_params(tmp_path, finetune__seeds=[0, 1, 2])
    monkeypatch.chdir(tmp_path)
    Path("test.tsv").write_text("index\tsentence\n0\ta b\n1\tc\n")
    found = run(evaluate, "cola", "test.tsv")
    assert (
        found.stdout
        == "CoLA on test.tsv: 2 examples, seed 1, the best of 3 on the development split\n"
    )
    assert "test.tsv has no labels, so there is no score" in found.stderr
    assert "2 predictions written to test.predictions.tsv" in found.stderr
    rows = Path("test.predictions.tsv").read_text().splitlines()
    assert len(rows) == 3
    assert rows[1].split("\t")[1] in ("0", "1"), "as CoLA's files write a label"


def test_official_files_are_known_by_what_they_hold(tmp_path):
    def read(name, task, text):
        (tmp_path / name).write_text(text)
        return read_official(tmp_path / name, TASKS[task])

    cola = read("anything", "cola", "gj04\t1\t\tA cat.\nks08\t0\t*\tCat a.\n")
    assert ([example.label for example in cola.examples], cola.labelled) == ([1, 0], True)
    snli = read(
        "a.jsonl",
        "snli",
        "".join(
            json.dumps({"sentence1": "a", "sentence2": "b", "gold_label": label}) + "\n"
            for label in ("neutral", "-", "nonsense", "contradiction", "entailment")
        ),
    )
    assert [example.label for example in snli.examples] == [1, 2, 0]
    assert (snli.left_out, snli.unreadable) == ({"no gold label": 1}, {"unknown label": 1})
    bare = read("b.jsonl", "snli", '{"sentence1": "a", "sentence2": "b"}\n')
    assert (bare.labelled, len(bare.examples)) == (False, 1)
    race = read(
        "high1.txt",
        "race",
        json.dumps(
            {"article": "p", "questions": ["q"], "options": [list("abcd")], "answers": ["B"]}
        ),
    )
    assert race.examples == [Example(("p", "q"), ("a", "b", "c", "d"), 1)]
    for name, task, text in (
        ("c", "rte", "a\tb\n1\t2\n"),
        ("d", "story_cloze", "x,y\n"),
        ("e", "snli", "{}\n"),
    ):
        with pytest.raises(
            UserError,
            match=f"expected a file in an official format of {task}, found none of them: ",
        ):
            read(name, task, text)
    for path, there in ((tmp_path, "a folder"), (tmp_path / "nothing", "none")):
        with pytest.raises(
            UserError, match=f"found {there}; such files lie in data/acquire/tasks/rte/"
        ):
            read_official(path, TASKS["rte"])


HANS = ["entailment", "non-entailment"] * 150
PAIRS = "index\tsentence1\tsentence2\tlabel\n"


@pytest.mark.parametrize(
    ("task", "head", "row", "labels", "outcome"),
    [  # outcome: the first label that is none, or (labelled, examples)
        ("mnli", "gold_label\tsentence1\tsentence2\n", "{}\ta\tb\n", HANS, "'non-entailment'"),
        (
            "mnli",
            "gold_label\tsentence1\tsentence2\n",
            "{}\ta\tb\n",
            ["entailment", "neutral", "-"] * 3,
            (True, 6),
        ),
        ("sst2", "\tsentence\tlabel\n", "0\ta\t{}\n", ["0.0", "1.0"], "'0.0'"),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["True", "False"], "'True'"),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["Entailment", "-"], "'Entailment'"),
        ("stsb", PAIRS.replace("label", "score"), "0\ta\tb\t{}\n", ["0,2", "1.5"], "'0,2'"),
        ("cola", "", "x\t{}\t\ta b\n", ["yes", "no"], "'yes'"),
        ("snli", "", '{{"premise": "a", "hypothesis": "b", "label": "{}"}}\n', ["N"], "'N'"),
        ("snli", "", '{{"sentence1": "a", "sentence2": "b", "gold_label": "{}"}}\n', ["N"], "'N'"),
        ("rte", PAIRS, "0\ta\tb\t{}\n", [""] * 3, (False, 3)),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["-"] * 300, (False, 300)),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["-1", "-", ""], (False, 3)),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["-"] * 300 + ["entailment"], (True, 1)),
    ],
)
def test_labels_are_absent_or_told_of(tmp_path, task, head, row, labels, outcome):
    file = tmp_path / "some.jsonl" if "{{" in row else tmp_path / "some.tsv"
    file.write_text(head + "".join(map(row.format, labels)))
    if isinstance(outcome, str):
        with pytest.raises(UserError, match=rf"unknown label \({outcome} instead of "):
            read_official(file, TASKS[task])
    else:
        found = read_official(file, TASKS[task])
        assert (found.labelled, len(found.examples)) == outcome


def test_evaluate_ends_with_2_where_labels_are_spelled_otherwise(here, tmp_path):
    (tmp_path / "dev.tsv").write_text(PAIRS + "0\ta\tb\tentailment\n0\ta\tb\tnon-entailment\n")
    command = [sys.executable, "-m", "gpt1.cli", "evaluate", "rte", str(tmp_path / "dev.tsv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "1 of 2 rows have another label than the task; the first is row 3" in done.stderr


def test_a_served_model_carries_all_of_our_code_that_it_imports():
    imported = map(relative, closure(ROOT / "gpt1/inference/served.py"))
    assert {path.split("/")[1] for path in imported} - {"__init__.py"} == set(ROOMS)
