"""GLUE's leaderboard files made of a run's results: the best seed's answers in GLUE's words and
order, and what the run lacks.
"""

import json
import zipfile
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from made_data import change_json, write_params
from made_results import group, write_task

from gpt1.base.errors import UserError
from gpt1.commands.submission import submission
from gpt1.exchange.submission import FILES, Predicted, make, predicted

NLI, QA = ("entailment", "neutral", "contradiction"), ("entailment", "not_entailment")
BOARD = {  # GLUE's test files: task, split, rows, words of the answers
    "CoLA.tsv": ("cola", "test", 1063, "01"),
    "SST-2.tsv": ("sst2", "test", 1821, "01"),
    "MRPC.tsv": ("mrpc", "test", 1725, "01"),
    "STS-B.tsv": ("stsb", "test", 1379, [f"{score}.000" for score in range(6)]),
    "QQP.tsv": ("qqp", "test", 390_965, "01"),
    "MNLI-m.tsv": ("mnli", "test_matched", 9796, NLI),
    "MNLI-mm.tsv": ("mnli", "test_mismatched", 9847, NLI),
    "QNLI.tsv": ("qnli", "test", 5463, QA),
    "RTE.tsv": ("rte", "test", 3000, QA),
    "WNLI.tsv": ("wnli", "test", 146, "0"),  # constant
    "AX.tsv": ("mnli", "diagnostic", 1104, NLI),
}
BEST_SEED = {"cola": 1, "stsb": 1}  # of the others both are equally good, and 0 comes first
BY_NAME = {file.name: file for file in FILES}


def classes_of(name, seed):
    """The made-up answers of a seed to the rows of a file."""
    _, split, count, words = BOARD[name]
    rows = np.arange(count)
    by_row = rows * 3 if split == "test_mismatched" else rows
    return ((by_row + rows // 7 + seed) % len(words)).tolist()


def of_task(task):
    return f"data/encode/{group(task)}/{task}/task.json"


def change_split(task, split, **counts):
    splits = json.loads(Path(of_task(task)).read_text())["splits"]
    splits[split] = splits.get(split, {}) | counts
    change_json(of_task(task), splits=splits)


def write_run(*tasks):
    """A run's results in the current folder, of as many test rows as GLUE has."""
    write_params(Path())
    for task in tasks:
        files = {split: name for name, (of, split, _, _) in BOARD.items() if of == task}
        answers = {
            seed: {f"{split}/best": classes_of(name, seed) for split, name in files.items()}
            for seed in (0, 1)
        }
        write_task(task, {"dev": [0, 1]}, answers)
        for split, name in files.items():
            counts = dict.fromkeys(("examples", "available", "rows_read"), BOARD[name][2])
            change_split(task, split, **counts, labelled=task in ("mrpc", "stsb"))
        if seed := BEST_SEED.get(task):
            change_json(
                f"data/finetune/{group(task)}/{task}/seed-{seed}/summary.json", best_dev_score=0.75
            )


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A folder with a run of all eight tasks, and the zip made of it."""
    folder = tmp_path_factory.mktemp("run")
    with chdir(folder):
        write_run("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")
        make(Path("glue.zip"), fill=False)
    return folder


@pytest.fixture(scope="module")
def contents(whole_run):
    """The bytes of each file of the good zip."""
    with zipfile.ZipFile(whole_run / "glue.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refused(line, target="a.zip", fill=True):
    with pytest.raises(UserError, match=line) as error:
        make(Path(target), fill=fill)
    assert not list(Path().glob("*.zip"))
    return str(error.value)


@pytest.mark.slow
def test_each_row_is_the_answer_of_the_best_seed_in_glue_s_words(contents):
    assert list(contents) == list(BOARD)
    for name, (task, _, _, words) in BOARD.items():
        answers = classes_of(name, BEST_SEED.get(task, 0))
        rows = [f"{row}\t{words[answer]}" for row, answer in enumerate(answers)]
        assert contents[name].decode().split("\n") == ["index\tprediction", *rows, ""], name


@pytest.mark.slow
def test_equal_results_give_equal_bytes_(whole_run, monkeypatch, capsys):
    monkeypatch.chdir(whole_run)
    submission(Path("again.zip"))
    said = capsys.readouterr().out.splitlines()
    assert Path("again.zip").read_bytes() == Path("glue.zip").read_bytes()
    assert said[0] == "CoLA.tsv     cola, seed 1 (matthews on dev 75.0)"
    assert "WNLI.tsv     constant 0: wnli is not fine-tuned" in said


def test_scores_are_clipped_and_rounded_to_three_decimals(elsewhere):
    write_run("stsb")
    table = np.full((1379, 6), -50.0, np.float32)
    table[:, 5] = 50
    table[1] = 0  # 2.5
    table[2, 4], table[2, 5] = 50, 50 + np.log(3)  # 4 + 3/4
    np.savez(Path("data/finetune/glue/stsb/seed-1/logits.npz"), **{"test/best": table})
    assert made_answers("STS-B.tsv")[:4] == ["5.000", "2.500", "4.750", "5.000"]


def test_what_a_run_lacks_is_named_and_filled_only_when_asked(elsewhere, capsys):
    write_run("rte", "cola", "mnli")
    change_split("rte", "test", examples=277, available=3000)
    change_split("cola", "test", rows_read=1064)
    splits = json.loads(Path(of_task("mnli")).read_text())["splits"]
    del splits["diagnostic"]
    change_json(of_task("mnli"), splits=splits)
    said = refused("by --fill", fill=False)
    for part in (
        "CoLA.tsv (cola has 1064 rows of test, not 1063)",
        "SST-2.tsv (sst2 is not fine-tuned)",
        "RTE.tsv (rte has 277 rows of test, not 3000)",
        "AX.tsv (mnli was run without diagnostic",
    ):
        assert part in said
    assert "WNLI" not in said
    submission(Path("a.zip"), fill=True)
    said = capsys.readouterr().out
    assert "QNLI.tsv     constant not_entailment: qnli is not fine-tuned" in said
    assert said.count("constant") == 9


def test_a_run_without_any_of_glue_s_rows_is_refused_even_with_fill(elsewhere):
    write_params(Path())
    refused("expected a run with answers to GLUE's test files, found none")
    refused(r"expected a file whose name ends with \.zip", target="data")


def made_answers(name):
    found = predicted(BY_NAME[name])
    assert isinstance(found, Predicted)
    return found.answers


def test_a_file_with_rows_that_cannot_be_read_is_refused(elsewhere):
    """The answers after such a row would belong to later indices."""
    write_run("cola")
    change_split("cola", "test", examples=1061, available=1061)
    refused("2 of its rows cannot be read: get the file anew")


def test_broken_results_are_one_line(elsewhere):
    write_run("rte")
    finetuned = Path("data/finetune/glue_nli/rte/seed-0")
    for content, line in (
        ({"test/best": np.zeros((3, 2))}, "expected 3000 rows of test.*3, 2"),
        ({"test/best": np.full((3000, 2), np.nan)}, "not finite"),
        ({"dev/best": np.zeros(1)}, "found others .*test/best"),
    ):
        np.savez(finetuned / "logits.npz", **content)
        refused(line)
