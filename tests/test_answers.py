"""Saved task models: what they answer, from which fields and files; a tiny model, random but for
its seed.
"""

import json
import math
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pytest
import torch
import typer
from made_answers import GROUPS, LETTERS, write_models
from made_data import write_params
from typer.testing import CliRunner

from gpt1.base.errors import UserError
from gpt1.commands.predict import predict
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.finetuned import finetuned_task
from gpt1.inference.prediction import read_file
from gpt1.inference.saved import answer, example_of, load_model
from gpt1.model.weights import Description, save_weights
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.rows import UNLABELLED, Example


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

    def invoke(*arguments):
        app = typer.Typer()
        app.command()(predict)
        found = CliRunner().invoke(app, arguments)
        if isinstance(found.exception, UserError):
            raise found.exception
        assert found.exit_code == 0, found.output
        return found

    return invoke


@lru_cache
def load(name, seed=None):
    return load_model(finetuned_task(name).weights(seed), Path("data/bpe"))


def test_answers_from_logits_by_hand():
    found = answer(TASKS["rte"], torch.tensor([0.0, math.log(3)]))
    assert found["label"] == "not_entailment"
    assert found["probabilities"] == pytest.approx({"entailment": 0.25, "not_entailment": 0.75})
    scored = answer(TASKS["stsb"], torch.tensor([-99, -99, 0, math.log(3), -99, -99]))
    assert scored["score"] == pytest.approx(0.25 * 2 + 0.75 * 3)
    assert list(scored["probabilities"]) == ["0", "1", "2", "3", "4", "5"]
    chosen = answer(TASKS["race"], torch.tensor([1.0, 2, 9, 3]), ("w", "x", "y", "z"))
    assert (chosen["label"], chosen["choice"]) == ("C", "y")
    assert chosen.keys() == {"label", "choice", "probabilities"}


def test_the_best_seed_answers_unless_another_is_named(here):
    done = finetuned_task("rte")
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
        UserError,
        match=r"winograd is not fine-tuned; run gpt1 run finetune@winograd, or choose of cola, ",
    ):
        finetuned_task("winograd")
    with pytest.raises(
        UserError,
        match=r"summary.json is not there: mnli is not fine-tuned; run gpt1 run finetune@mnli",
    ):
        finetuned_task("mnli")
    Vocabulary(LETTERS[:-1], []).save(tmp_path / "bpe", {})
    weights = finetuned_task("rte").weights(None)
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


def test_other_fields_than_the_tasks_are_refused():
    for record, found in [
        ({"first": "a"}, "found first 'a'"),
        ({"first": 1, "second": "b"}, "found first 1, second 'b'"),
        ({"first": "a", "second": " "}, "found first 'a', second ' '"),
        ({"first": "a", "second": "b", "choices": ["c"]}, r"choices \['c'\]"),
    ]:
        with pytest.raises(UserError, match=rf"row 3: expected first, second for rte.* {found}"):
            example_of(TASKS["rte"], record, "row 3")


def test_predict_answers_an_example(run):
    by_options = run("rte", "--first", "a b", "--second", "c").stdout
    assert json.loads(by_options) == load("rte").answer(Example(("a b", "c")))
    choices = [part for ending in "abcd" for part in ("--choice", ending)]
    shown = json.loads(run("race", "--seed", "0", "--first", "p", "--second", "q", *choices).stdout)
    assert shown["choice"] == "abcd"["ABCD".index(shown["label"])]
    assert list(shown["probabilities"]) == ["A", "B", "C", "D"]
    with pytest.raises(UserError, match="the options: expected first, second for rte"):
        run("rte", "--first", "a")
    with pytest.raises(UserError, match="expected either a file or --first TEXT"):
        run("rte")


def test_the_models_that_ship_answer_anywhere(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of_shipped = (
        "--run",
        "reference/town",
        "--first",
        "Who in Ada's family was moneyed?",
        "--second",
    )
    for sentence, label in (
        ("Ada's aunt was poor, not wealthy.", "not_entailment"),
        ("Ada's aunt was wealthy, not poor.", "entailment"),
    ):
        shown = json.loads(run("qnli", *of_shipped, sentence).stdout)
        assert shown["label"] == label
        assert shown["probabilities"][label] >= 0.9
    with pytest.raises(UserError, match="or choose of qnli, sst2, story_cloze, which are"):
        run("rte", *of_shipped, "Ada was poor.")


def write_rows(path, rows):
    """The same rows by the suffix: TSV, CSV or JSON lines."""
    table = pd.DataFrame(rows)
    if path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl"])
def test_predict_scores_a_file_with_labels(run, tmp_path, suffix):
    model, labels = load("rte"), ("entailment", "not_entailment")
    texts = [(first, second) for first in "abcdef" for second in "uvwxyz"]
    answers = [model.answer(Example(pair))["label"] for pair in texts]
    assert set(answers) == set(labels)
    given = [labels[place % 3 == 0] for place in range(len(texts))]
    rows = [
        {"sentence1": first, "sentence2": second, "label": label}
        for (first, second), label in zip([*texts, ("a", "b")], [*given, "maybe"], strict=True)
    ]
    write_rows(tmp_path / f"some{suffix}", rows)
    out = tmp_path / f"out{suffix}"
    found = run("rte", str(tmp_path / f"some{suffix}"), "--out", str(out))
    right = sum(said == label for said, label in zip(answers, given, strict=True)) / len(texts)
    error = 100 * math.sqrt(right * (1 - right) / 36)
    assert "36 rows answered" in found.stdout
    assert f"accuracy {100 * right:.1f} ± {error:.1f} (one standard error)" in found.stdout
    assert f"a constant answer {100 * 24 / 36:.1f}" in found.stdout
    assert "1 rows left out: unknown label" in found.stderr
    if suffix == ".jsonl":
        written = pd.read_json(out, lines=True)
    else:
        written = pd.read_csv(out, sep="\t" if suffix == ".tsv" else ",")
    assert list(written["prediction"]) == answers
    first = model.answer(Example(texts[0]))["probabilities"]["entailment"]
    assert written["p(entailment)"][0] == pytest.approx(first, abs=1e-6)


def test_predict_says_where_labels_are_absent(run, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(Path.cwd() / "data")
    write_params(tmp_path, finetune__seeds=[0, 1, 2])
    monkeypatch.chdir(tmp_path)
    Path("test.tsv").write_text("index\tsentence\n0\ta b\n1\tc\n")
    found = run("cola", "test.tsv")
    assert found.stdout == "CoLA, seed-1: 2 rows answered in cola-test.predictions.tsv\n"
    assert "2 rows not scored: no label" in found.stderr
    rows = Path("cola-test.predictions.tsv").read_text().splitlines()
    assert len(rows) == 3
    assert rows[1].split("\t")[1] in ("0", "1"), "as CoLA's files write a label"
    with pytest.raises(UserError, match=r"expected a name that ends with \.tsv, \.csv, \.jsonl"):
        run("cola", "test.tsv", "--out", "answers.xlsx")
    with pytest.raises(UserError, match="and is not the file's own; name one with --out"):
        run("cola", "test.tsv", "--out", "../" + tmp_path.name + "/test.tsv")
    Path("odd.tsv").write_text("sentence\tlabel\na\t1\n\t1\nb\t-1\nc\t0\n")
    assert "1 rows not scored: no label" in run("cola", "odd.tsv", "--out", "odd.jsonl").stderr
    assert list(pd.read_json("odd.jsonl", lines=True)["index"]) == [0, 2, 3]


PAIRS = "index\tsentence1\tsentence2\tlabel\n"
STSB_TEST = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"


def test_files_are_known_by_what_they_hold(tmp_path):
    def read(name, task, text):
        (tmp_path / name).write_text(text)
        return read_file(tmp_path / name, TASKS[task])

    cola = read("anything", "cola", "gj04\t1\t\tA cat.\nks08\t0\t*\tCat a.\n")
    assert ([example.label for example in cola.examples.values()]) == [1, 0]
    row = '{"sentence1": "a", "sentence2": "b", "gold_label": "%s"}\n'
    labels = ("neutral", "-", "nonsense", "contradiction", "entailment")
    snli = read("a.jsonl", "snli", "".join(row % label for label in labels))
    assert [example.label for example in snli.examples.values()] == [1, UNLABELLED, 2, 0]
    assert (snli.labelled, snli.left_out) == ([0, 3, 4], {"unknown label": 1})
    asked = Example(("p", "q"), ("a", "b", "c", "d"), 1)
    passage = {"article": "p", "questions": ["q"], "options": [list("abcd")], "answers": ["B"]}
    assert read("high1.txt", "race", json.dumps(passage)).examples == {0: asked}
    columns = "first,second,choice1,choice2,choice3,choice4,label\np,q,a,b,c,d,B\n"
    assert read("own.csv", "race", columns).examples == {0: asked}
    for task, text, texts, labelled in [
        ("scitail", "hypothesis\tpremise\tlabel\nh\tp\tneutral\n", ("p", "h"), True),
        ("cola", "sentence\tlabel\tannotator\tcomment\ns\t1\tann\tfine\n", ("s",), True),
        ("stsb", f"{STSB_TEST}0\tx\ty\t2012\t4\ta\tb\tfirst\tsecond\n", ("first", "second"), False),
        ("qqp", "question1\tquestion2\tlabel\nq\tr\t1\n", ("q", "r"), True),
        ("rte", "sentence1\tsentence2\tgold_label\na\tb\tentailment\n", ("a", "b"), True),
        ("sst2", '{"sentence": "a"}\n{"sentence": "b", "label": 1}\n', ("b",), True),
    ]:
        found = read("some.txt", task, text)
        assert [*found.examples.values()][-1].context == texts
        assert bool(found.labelled) == labelled, task
        assert not found.left_out, task
    with pytest.raises(UserError, match="expected the columns sentence; found 'text', 'label'"):
        read("some.tsv", "cola", "text\tlabel\tannotator\tcomment\ns\t1\tann\tfine\n")
    with pytest.raises(UserError, match=r"2 of 4 rows cannot be read, the first is row 3: unknown"):
        read("hans.txt", "rte", PAIRS + "0\ta\tb\tentailment\n1\ta\tb\tnon-entailment\n" * 2)
    for name, task, text in (("c", "rte", "a\tb\n1\t2\n"), ("e.jsonl", "snli", "{}\n")):
        with pytest.raises(UserError, match=f"expected an official file of {task}"):
            read(name, task, text)
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="expected a file of rte, found none"):
            read_file(path, TASKS["rte"])


def test_labels_are_absent_or_told_of(tmp_path):
    file, mnli = tmp_path / "some.tsv", "gold_label\tsentence1\tsentence2\n"
    # outcome: the first label that is none, or how many have one
    for task, head, row, labels, outcome in [
        ("mnli", mnli, "{}\ta\tb\n", ["entailment", "neutral", "-"] * 3, 6),
        ("sst2", "\tsentence\tlabel\n", "0\ta\t{}\n", ["0.0", "1.0"], "'0.0'"),
        ("cola", "", "x\t{}\t\ta b\n", ["yes", "no"], "'yes'"),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["-1", "-", ""], 0),
        ("rte", PAIRS, "0\ta\tb\t{}\n", ["-"] * 300 + ["entailment"], 1),
    ]:
        file.write_text(head + "".join(map(row.format, labels)))
        if isinstance(outcome, str):
            with pytest.raises(UserError, match=rf"{outcome} instead of "):
                read_file(file, TASKS[task])
        else:
            assert len(read_file(file, TASKS[task]).labelled) == outcome
