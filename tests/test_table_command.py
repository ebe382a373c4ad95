"""`gpt1 table`: pages of the report on a terminal, in their formats, and beside those of another
run or revision.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from gpt1.base.errors import UserError
from gpt1.base.terminal import plain
from gpt1.results.against import Difference, compare, other_numbers
from gpt1.results.document import (
    Bullets,
    Grid,
    Heading,
    Picture,
    facts_list,
    read_document,
    write_document,
)
from gpt1.results.records import SCORES, read_records, write_scores
from gpt1.results.show import show_brief, show_table
from gpt1.results.terminal_page import print_page

ROOT = Path(__file__).parents[1]
HEADER = ("", *(f"column {number}" for number in range(9)))
ROWS = [
    (
        f"a system with a name of {length}",
        *(f"{length + number}.0 ± 1.{number}" for number in range(9)),
    )
    for length in (10, 20)
]
PAGE = [
    Heading(1, "Table 2 of the paper"),
    facts_list((("Profile", "tiny with \x1b[31mcolour\x07"),)),
    Grid(HEADER, tuple(ROWS)),
    Bullets(("† chance",)),
    Picture("x.svg", "a picture"),
    Bullets(("a note",)),
]
CONFIG = "[core]\n    analytics = false\n"
GRAPH = (
    "stages:\n  table2:\n    cmd: cp -r made data/report/table2\n    deps: [made]\n    outs:"
    " [data/report/table2]\n"
)


def numbers(mean: float) -> str:
    return json.dumps({"table2": {"rte": {"mean": mean, "best": 71.0}, "snli": {"mean": 80.0}}})


def make(folder: Path, mean: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_document(folder, "table2", PAGE)
    write_scores(folder, [{"table": "table2", "column": "RTE", "score": mean}])
    (folder / "table2.tex").write_text("\\begin{table}\n")
    (folder / "table2.csv").write_text(
        f"table,column,score,reason\ntable2,RTE,{mean},\ntable2,SNLI,,left out\n"
    )
    (folder / "metrics.json").write_text(numbers(mean))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make(Path("data/report/table2"), 70.0)
    return tmp_path


def test_a_page_that_was_written_is_read_back(here):
    folder = Path("data/report/table2")
    assert read_document(folder) == PAGE
    (folder / "page.json").write_text('[["grid", ["a"]]]')
    Path("dvc.yaml").touch()
    with pytest.raises(UserError, match="make it anew: dvc repro -f -s table2"):
        read_document(folder)


def test_brief_has_scores_and_signs_and_no_notes(here, capsys):
    show_brief(["table2", "table3"])  # the second has not been made
    said = capsys.readouterr().out
    for word in ("# Table 2 of the paper", "- † chance", *(cell for row in ROWS for cell in row)):
        assert word in said
    assert "a note" not in said
    assert "tiny" not in said
    with pytest.raises(UserError, match="data/report/table3"):
        show_brief(["table3"])


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_wide_table_is_divided_and_no_number_is_cut(here, width, capsys):
    print_page(
        Console(width=width, color_system=None, highlight=False),
        "table2",
        read_document(Path("data/report/table2"), plain),
    )
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    assert not {"\x1b", "\x07"} & set(said), "a file steers the terminal"
    for row in ROWS:
        for cell in row[1:]:
            assert cell in said
    parts = len(re.findall("^ +column", said, re.MULTILINE))
    assert parts == 1 if width == 200 else parts > 1


def test_formats_are_the_files_as_they_are(here, capsys):
    for format_, suffix in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
        show_table("table2", format_, None)
        assert capsys.readouterr().out == Path(f"data/report/table2/table2.{suffix}").read_text()
    show_table("table2", "json", None)
    assert json.loads(capsys.readouterr().out) == {
        "table": "table2",
        "metrics": json.loads(numbers(70.0))["table2"],
        "records": [
            {"table": "table2", "column": "RTE", "score": 70.0},
            {"table": "table2", "column": "SNLI", "reason": "left out"},
        ],
    }


def test_parquet_is_the_file_with_every_number_typed(here, capsysbinary):
    show_table("table2", "parquet", None)
    Path("piped").mkdir()
    Path("piped", SCORES).write_bytes(capsysbinary.readouterr().out)
    (one,) = read_records("table2", Path("piped"))
    assert (one["column"], one["score"], one["low"]) == ("RTE", 70.0, None)


def test_what_is_not_there_says_how_to_make_it(here):
    with pytest.raises(
        UserError,
        match="is no checkout, and holds no data/report/table3: run this in a project folder",
    ):
        show_table("table3", "terminal", None)
    Path("dvc.yaml").touch()
    with pytest.raises(
        UserError, match="data/report/table3 is not there: gpt1 run table3 makes it"
    ):
        show_table("table3", "terminal", None)
    Path("data/report/table2/table2.tex").unlink()
    with pytest.raises(
        UserError,
        match="table2 is not written as latex; expected one of csv, markdown, parquet, json",
    ):
        show_table("table2", "latex", None)
    with pytest.raises(UserError, match="expected the folder of a run"):
        other_numbers("table2", "nowhere")


def test_two_runs_are_compared_number_by_number(here, capsys):
    assert compare({"a": {"mean": 1.0}, "b": 2}, {"a": {"mean": 1.00001}, "c": 3.0}) == [
        Difference("a.mean", 1.0, 1.00001),
        Difference("b", 2.0, None),
        Difference("c", None, 3.0),
    ]
    assert [one.differs for one in compare({"a": 1.0, "b": 2}, {"a": 1.00001, "c": 3})] == [
        False,
        True,
        True,
    ]
    make(Path("other/data/report/table2"), 68.5)
    shutil.copytree("other/data/report", "elsewhere")
    for place in ("other", "elsewhere", "elsewhere/table2"):
        show_table("table2", "json", place)
        told = {
            one["name"]: (one["here"], one["there"])
            for one in json.loads(capsys.readouterr().out)["differences"]
        }
        assert told == {
            "rte.mean": (70.0, 68.5),
            "rte.best": (71.0, 71.0),
            "snli.mean": (80.0, 80.0),
        }
    show_table("table2", "terminal", "other")
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["rte.mean", "70", "68.5", "+1.5"] in said
    assert ["snli.mean", "80", "80", "="] in said
    shutil.copytree("elsewhere/table2", "elsewhere/table3")
    with pytest.raises(UserError, match="expected those of table3"):
        other_numbers("table3", "elsewhere")


def test_colours_on_a_terminal_only_and_never_under_no_color(here):
    def said(**environment: str) -> str:
        main, terminal = pty.openpty()
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
        }
        with subprocess.Popen(
            [sys.executable, "-c", "from gpt1.cli import main; main()", "table", "table2"],
            stdout=terminal,
            env={**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment},
        ) as process:
            os.close(terminal)
            text = b""
            try:
                while block := os.read(main, 65536):
                    text += block
            except OSError:  # how the end of a terminal reads
                pass
        os.close(main)
        assert process.returncode == 0
        return text.decode()

    assert "\x1b[1m" in said()
    assert "\x1b[3" not in said(NO_COLOR="1")
