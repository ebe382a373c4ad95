"""Runs that lie elsewhere: those that ship, folders that others hand in, and how two runs differ."""

import re
import shutil
from contextlib import chdir
from pathlib import Path

import pandas as pd
import pytest
import typer

import gpt1.results
from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.commands.report import report
from gpt1.commands.table import table
from gpt1.results.agreement import agreement_with_shipped
from gpt1.results.runs import NAMES, RUN, SHIPPED

TOWN = "reference/town"
FOLDER = SHIPPED / "town"
MOST_BYTES = 7_000_000  # of all files, 5 million of them four models


@pytest.fixture
def handed_in(elsewhere):
    return Path(shutil.copytree(FOLDER, elsewhere / "theirs"))


def test_the_run_that_ships_is_whole_and_small():
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert {"Commit", "Machine", "Time"} <= read_json(FOLDER / RUN)["facts"].keys()
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert {path.suffix for path in files}.isdisjoint({".npz", ".pkl"})
    assert {path.parent.name for path in files} > set(NAMES)


def test_it_can_be_looked_at_from_an_empty_folder(elsewhere, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    for name in NAMES:
        table(name, run=TOWN)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80, name
        assert "--format markdown" in lines[-1], "how to get the rest"
    table(run=TOWN)
    lines = capsys.readouterr().out.splitlines()
    assert (max(map(len, lines)) <= 80, len(lines) <= 24) == (True, True), "one screen"
    assert "Pre-training brings +" in " ".join(lines)
    report(run=TOWN)
    page = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "agree with reference" not in page
    assert list(elsewhere.iterdir()) == [], "looking writes nothing"


def test_amid_a_run_there_is_what_is_there(handed_in, capsys):
    shutil.rmtree(handed_in / "data/report/table5")
    table(run="theirs")
    assert re.search(r"SciTail.*Not there yet: table5\.", capsys.readouterr().out, re.S)
    shutil.rmtree(handed_in / "data/report")
    for name in ("rte", "of_an_earlier_profile"):
        (handed_in / f"data/finetune/glue_nli/{name}.json").write_text('{"rte": 58.44}')
    table(run="theirs")
    assert "best scores on dev: rte 58.4." in capsys.readouterr().out


def changed(folder, change):
    """A copy of the shipped run in which `change` was made to the scores of seed 0, of which alone
    it is.
    """
    shutil.copytree(FOLDER, folder)
    (folder / RUN).unlink()
    for path in folder.glob("data/report/*/scores.parquet"):
        scores = pd.read_parquet(path)
        scores = scores[scores["seed"].fillna(0) == 0]
        change(scores).to_parquet(path)
    return str(folder)


def test_runs_that_agree_and_that_do_not(tmp_path, capsys):
    """By the sentence that comes first: the same; a task at chance; other rows; other data."""

    def said(name, change):
        table("table5", run=changed(tmp_path / name, change), against=TOWN)
        return " ".join(capsys.readouterr().out.split())

    same = said("same", lambda scores: scores)
    assert re.match(
        r"Agrees with reference/town: mean of the full model [\d.]+ here, [\d.]+ there", same
    )
    assert "of one run alone" not in same
    chance = {"task": "mrpc", "system": "full"}

    def at_chance(scores):
        rows = (scores[list(chance)] == chance).all(axis=1)
        return scores.assign(score=scores["score"].mask(rows, 0.0))

    assert said("chance", at_chance).startswith(
        "Does not agree with reference/town: full, MRPC 0.0 here, "
    )

    def other_rows(scores):
        return scores.assign(rows=scores["rows"].mask(scores["task"] == "mnli", "others"))

    assert "other rows of mnli" in said("rows", other_rows)
    other = said("other", lambda scores: scores.assign(rows="others"))
    assert other == "Not compared with reference/town, which has other data."
    four = said("four", lambda scores: scores[scores["task"].isin(["cola", "sst2", "qqp", "rte"])])
    assert four.startswith("Agrees"), "means are over the columns that both have"
    none = said("none", lambda scores: scores.assign(system="another"))
    assert none == "Not compared with reference/town, which has no score of this run."
    with chdir(tmp_path / "same"):  # the last screen: of all shipped runs, the one of this recipe
        assert agreement_with_shipped().startswith("Agrees with reference/town")
    params = tmp_path / "same/params.yaml"
    params.write_text(
        params.read_text()
        .replace("lambda_lm: 0.5", "lambda_lm: 0.1")
        .replace("dropout: 0.0", "dropout: 0")
    )
    table("table5", run=str(params.parent), against=TOWN)
    said = " ".join(capsys.readouterr().out.split())
    assert "finetune.lambda_lm 0.1 here, 0.5 there" in said
    assert "dropout" not in said, "0 and 0.0 are one value"
    params.write_text(re.sub("learning_rate: 0.0015", "beta1: 0.9", params.read_text()))
    table("table5", run=str(params.parent), against=TOWN)
    assert "race.finetune.learning_rate 0.0009 here, 0.0015 there" in capsys.readouterr().out


def test_a_table_is_shown_without_pandas(elsewhere, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    table("table5", run=TOWN)
    assert "this run: full" in capsys.readouterr().out


def test_a_name_that_is_no_run_is_one_line(elsewhere):
    with pytest.raises(UserError, match=r"no such folder; .*reference/town"):
        table("table5", run="reference/towm")
    with pytest.raises(UserError, match="holds no data/report/table5"):
        table("table5", run=".")
    with pytest.raises(UserError, match="holds no data/report"):
        report(run=".")
    with pytest.raises(UserError, match="expected a run's folder"):
        table("table5", run=TOWN, against="HEAD")
    with pytest.raises(UserError, match="compares scores"):
        table("claims", run=TOWN, against=TOWN)
    with pytest.raises(typer.BadParameter, match="Missing argument"):
        table(run=TOWN, format_="json")
    with pytest.raises(UserError, match="found none: gpt1 run"):
        gpt1.results.load()


@pytest.mark.parametrize("content", ["\x1b[31m\u202elive", "PAR1", ""])
def test_what_others_broke_is_one_line_or_nothing(handed_in, capsys, content):
    for name in ("table5.txt", "scores.parquet"):
        (handed_in / "data/report/table5" / name).write_text(content, encoding="utf-8")
    (handed_in / RUN).write_text('{"facts": 3}')
    ends = [lambda: report(run="theirs"), lambda: table("table5", run="theirs")]
    for end in (*ends, lambda: table("table5", run="theirs", against=TOWN)):
        said = ""
        try:
            end()
        except UserError as error:
            said = str(error)
        assert "dvc repro" not in said, "not the reader's to make anew"
        assert capsys.readouterr().out.replace("\n", "").isprintable()
