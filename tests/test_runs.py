"""Runs that lie elsewhere: the one that ships, folders that others hand in, and how two runs
differ.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer

import gpt1.results
from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file
from gpt1.commands.report import report
from gpt1.commands.table import table
from gpt1.results.runs import RUN, SHIPPED

DEMO = "reference/town"
FOLDER = SHIPPED / "town"
PREDICTIONS = "data/report/predictions/predictions.parquet"
MOST_BYTES = 2_500_000  # of all files; a third of that in git and in a wheel, which pack them


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def handed_in(elsewhere) -> Path:
    return Path(shutil.copytree(FOLDER, elsewhere / "theirs"))


def test_the_run_that_ships_is_whole_and_small():
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    told = read_json(FOLDER / RUN)
    assert files == {*told["files"], RUN}
    assert {name: sha256_file(FOLDER / name) for name in told["files"]} == told["files"]
    assert {"Commit", "Machine", "Memory", "Time"} <= told["facts"].keys()
    assert sum((FOLDER / name).stat().st_size for name in files) < MOST_BYTES
    assert not [name for name in files if name.endswith((".safetensors", ".npz", ".pkl"))]


def test_its_scores_come_out_of_its_predictions_again(elsewhere):
    scores, predictions = gpt1.results.load(DEMO)
    ours = scores[(scores["row"] == "ours") & (scores["metric"] == "accuracy")]
    full = predictions[predictions["system"] == "full"]
    right = full["logits"].map(np.argmax) == full["label"]
    by_split = (100 * right).groupby([full["task"], full["split"]]).mean()
    checked = [
        by_split[one.task, one.split] == pytest.approx(one.score)
        for one in ours[ours["table"].isin(["table2", "table3", "table4"])].itertuples()
        if (one.task, one.split) in by_split and one.column not in ("RACE-m", "RACE-h", "RACE")
    ]
    assert len(checked) >= 5
    assert all(checked)


def test_it_can_be_looked_at_from_an_empty_folder(elsewhere, capsys):
    table("table5", run=DEMO)
    assert "Transformer w/o pre-training" in capsys.readouterr().out
    table(brief=True, run=DEMO)
    assert "primary claims" in capsys.readouterr().out
    table("table2", against=DEMO, run=DEMO, json=True)
    told = json.loads(capsys.readouterr().out)["differences"]
    assert told
    assert all(one["here"] == one["there"] for one in told)
    report(run=DEMO, as_json=True)
    other = json.loads(capsys.readouterr().out)
    assert other["changed"] == []
    page = Path(other["path"])
    report(run=DEMO)
    assert f"Machine: {other['facts']['Machine']}" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(elsewhere.iterdir()) == [], "looking writes nothing"


def test_a_name_that_is_no_run_is_one_line(elsewhere):
    with pytest.raises(UserError, match=r"no such folder; .*reference/town"):
        table("table5", run="reference/towm")
    with pytest.raises(UserError, match="holds no data/report/table5"):
        table("table5", run=".")
    with pytest.raises(UserError, match="gpt1 report, in the root of that run"):
        report(run=".")
    with pytest.raises(typer.BadParameter, match="no such folder"):
        table("table5", run=DEMO, against="HEAD")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.json", '[["grid", ["a"], [["b", "c"]]]]'),
        ("page.json", '[["heading", 1, 7]]'),
        ("page.json", "[" * 100_000),
        ("page.json", '[["grid", [], []]]'),
        ("table5.csv", "a,b\n\x00,\udcff,1"),
        ("table5.csv", f"a\n{'[' * 100_000}"),
        ("metrics.json", '{"table5": 7}'),
        ("scores.parquet", "PAR1"),
        ("metrics.json", '{"table5": {"\\u202elive": "\\ud800"}}'),
    ],
)
def test_what_others_broke_is_one_line_or_nothing(handed_in, capsys, name, content):
    path = handed_in / "data/report/table5" / name
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    for options in ({}, {"json": True}, {"brief": True}, {"against": DEMO}):
        said = []
        try:
            table("table5", run="theirs", **options)
        except UserError as error:
            said = [str(error)]
        assert [line for line in said if "dvc repro" in line] == [], "not the reader's to make anew"
        shown = capsys.readouterr().out
        assert all(one.isprintable() or one == "\n" for one in shown), "a file steers the terminal"


def test_a_page_that_was_changed_after_it_was_packed_is_told(handed_in, capsys):
    with (handed_in / "data/report/index.html").open("a") as file:
        file.write("<script>")
    report(run="theirs")
    assert "changed since it was packed: data/report/index.html\n" in capsys.readouterr().out
    for content in (
        "[]",
        '{"facts": 3}',
        '{"facts": {}, "files": {"dvc.lock": 3, "\\u0000": 1}}',
        "{",
    ):
        (handed_in / RUN).write_text(content)
        with suppress(UserError):
            report(run="theirs")
