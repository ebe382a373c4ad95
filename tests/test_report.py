"""Captions, formats and bad input of the report, through the stage's own command line."""

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import made_results
import numpy as np
import pytest

from gpt1.params.schema import read_params
from gpt1.results.document import markdown
from gpt1.results.drawing import POINTS, svg
from gpt1.results.formats import escaped, latex
from gpt1.results.glue import glue_cells, our_glue_mean
from gpt1.results.paper import TABLES
from gpt1.results.score_pictures import draw_cells
from gpt1.results.scores import Cell, Measured, table_cells
from gpt1.results.tables import table_page


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpt1.stages", "report", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GPT1_MLFLOW": "off"},
    )


def laid_out(table: str):
    params = read_params()
    found = table_cells(params, table)
    return table_page(
        params,
        TABLES[table],
        found,
        our_glue_mean(glue_cells(params)) if table == "table4" else None,
    )


def write_glue(tasks: list[str], right: int) -> None:
    made_results.write_params(tasks, [0])
    for task in tasks:
        if task == "stsb":
            made_results.write_task(
                "stsb",
                {"dev": [0, 1, 2, 3]},
                {0: {"dev/last": [0, 1, 2, 3], "dev/best": [0, 1, 2, 3]}},
            )
        else:
            made_results.simple(task, right, 100)


def test_caption_tells_a_small_run_from_the_papers():
    made_results.write_params(
        ["snli", "rte"],
        [0],
        clean={"corpus_name": "own books"},
        model={"layers": 4, "width": 256, "heads": 4},
    )
    values = json.loads(Path("params.yaml").read_text())
    values["tasks"]["snli"] |= {"train_rows": 5000, "eval_rows": 2000}
    Path("params.yaml").write_text(json.dumps(values))
    made_results.simple("rte", 90, 100)
    made_results.write_task("snli", {"dev": [0, 1]}, {0: {"dev/last": [0, 1], "dev/best": [0, 1]}})
    for text in (markdown(laid_out("table2").document), latex(laid_out("table2"))):
        for fact in (
            "own books: 86 books, 12.3 M words, 15.1 M tokens",
            "4 layers of width 256, 4.6 M parameters",
            "2,000 updates, 8.2 M tokens",
            "perplexity 75.1 a token, 180.1 a word",
            "SNLI 5,000 to train and 2,000 to evaluate",
            "test-server numbers",
            "1 seed a task",
        ):
            assert fact in text
        assert "made_up" in text.replace(r"\_", "_")
    assert "all rows of every task" in markdown(laid_out("table3").document)


@pytest.mark.slow
def test_the_stage_writes_its_files_twice_the_same():
    write_glue(["qqp", "rte"], right=90)
    first = report("table4")
    assert first.returncode == 0, first.stderr
    folder = Path("data/report/table4")
    assert first.stdout.strip() == (folder / "table4.md").read_text().strip()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == [
        "metrics.json",
        "page.json",
        "predictions.parquet",
        "scores.parquet",
        "table4.csv",
        "table4.md",
        "table4.svg",
        "table4.tex",
    ]
    assert report("table4").returncode == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    numbers = json.loads(before["metrics.json"])["table4"]
    assert numbers["qqp"]["mean"] == 90.0
    assert numbers["qqp"]["seeds"] == 1
    assert "sd" not in numbers["qqp"]
    assert numbers["glue_tasks_there"]["tasks"] == 2
    records = list(csv.DictReader((folder / "table4.csv").open(newline="")))
    paper = [row for row in records if row["row"] != "ours"]
    assert len(paper) == 21
    assert {(row["system"], row["column"]): row["score"] for row in paper}[
        "Finetuned Transformer LM", "GLUE"
    ] == "72.8000"
    qqp = next(row for row in records if row["column"] == "QQP" and row["metric"] == "accuracy")
    assert (qqp["score"], qqp["split"], qqp["weights"], qqp["compared_with"]) == (
        "90.0000",
        "dev",
        "last update",
        "88.5000",
    )
    assert "86 books" in qqp["caption"]
    assert {row["column"]: row["reason"] for row in records if row["row"] == "ours"}[
        "CoLA"
    ] == "left out"
    tex = before["table4.tex"].decode()
    assert tex.count(r"\begin{") == tex.count(r"\end{") == 4
    assert all(rule in tex for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    rows = [line for line in tex.splitlines() if line.endswith(r"\\") and " & " in line]
    assert [line.count(" & ") for line in rows] == [7] * 12 + [
        10
    ] * 3  # scores; details of QQP (two metrics) under a header
    assert not re.search(r"[†‡±§¶−]|(?<!\\)[%#_](?!\\)", tex.replace("tab:table4", ""))


def test_no_torch_and_no_pandas():
    program = (
        "import sys, gpt1.stages.report, gpt1.stages.scores, gpt1.results.show,"
        " gpt1.results.page.page; print([name for name in ('torch', 'pandas', 'mlflow', 'sklearn',"
        " 'scipy.stats') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_latex_escapes_what_it_would_read_as_commands():
    assert (
        escaped(r"50% of a_b & c#d {x} \y ~ ^")
        == r"50\% of a\_b \& c\#d \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{}"
    )
    assert escaped("−3.2 [−4.0, −2.4]") == "$-$3.2 [$-$4.0, $-$2.4]"
    assert escaped("-") == "-"


def break_logits(array: np.ndarray | None) -> None:
    path = Path("data/finetune/glue_nli/rte/seed-0/logits.npz")
    if array is None:
        path.unlink()
    else:
        np.savez(path, **{"dev/last": array, "dev/best": array})


def not_a_number() -> None:
    table = made_results.logits([0, 1] * 50, 2)
    table[3, 1] = np.nan
    break_logits(table)


FAULTS = {
    "no logits": (lambda: break_logits(None), "logits.npz is not there"),
    "too few rows": (
        lambda: break_logits(made_results.logits([0, 1], 2)),
        "expected 100 rows x 2 outputs, as the labels have, found 2 x 2",
    ),
    "too many outputs": (
        lambda: break_logits(made_results.logits([0, 1] * 50, 3)),
        "found 100 x 3",
    ),
    "not a number": (not_a_number, "expected finite logits, found nan in row 3"),
    "truncated": (
        lambda: Path("data/finetune/glue_nli/rte/seed-0/logits.npz").write_bytes(b"PK\3\4half"),
        "logits.npz cannot be read",
    ),
    "empty": (
        lambda: Path("data/finetune/glue_nli/rte/seed-0/logits.npz").write_bytes(b""),
        "logits.npz cannot be read",
    ),
    "no labels": (
        lambda: Path("data/encode/glue_nli/rte/dev.npz").unlink(),
        "dev.npz is not there",
    ),
    "other labels": (
        lambda: np.savez("data/encode/glue_nli/rte/dev.npz", labels=np.zeros(7, np.int64)),
        "expected 100 labels",
    ),
    "unknown label": (
        lambda: np.savez("data/encode/glue_nli/rte/dev.npz", labels=np.full(100, 2)),
        "label from 0 to 1",
    ),
    "unlabelled": (
        lambda: np.savez("data/encode/glue_nli/rte/dev.npz", labels=np.full(100, -1)),
        "label from 0 to 1",
    ),
    "no task.json": (
        lambda: Path("data/encode/glue_nli/rte/task.json").unlink(),
        "was not encoded",
    ),
    "task.json of another kind": (
        lambda: Path("data/encode/glue_nli/rte/task.json").write_text("[]"),
        "expected outputs, target",
    ),
    "no pre-training": (
        lambda: Path("data/pretrain/transformer/seed-0/summary.json").unlink(),
        "summary.json is not there",
    ),
    "no perplexity": (
        lambda: Path("data/pretrain/transformer/seed-0/summary.json").write_text("{}"),
        "expected numbers for the caption",
    ),
    "no index": (
        lambda: Path("data/shard/index.json").write_text("{"),
        "index.json cannot be read",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_broken_results_are_one_line(fault):
    made_results.write_params(["rte"], [0])
    made_results.simple("rte", right=90, of=100)
    spoil, message = FAULTS[fault]
    spoil()
    done = report("table2")
    assert done.returncode == 2
    assert message in done.stderr
    assert "dvc repro" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not Path("data/report/table2").exists()


def test_unknown_table():
    made_results.write_params([], [0])
    done = report("table9")
    assert done.returncode == 2
    assert "expected one of table2, table3, table4" in done.stderr


def test_a_picture_shows_every_column_and_the_paper_only_where_it_compares():
    measured = Measured({0: 70.0, 1: 50.0}, "dev", "last update", 500, 2.0, 33.0, 36.0)
    cells = [
        Cell("snli", "SNLI", "snli", "accuracy", 89.9, 89.9, measured),
        Cell("rte", "RTE", "rte", "accuracy", 56.0, 56.0, None),
    ]
    alone = [replace(cell, compared=None) for cell in cells]
    with_paper = svg(lambda: draw_cells("Table 2", cells), POINTS)
    without = svg(lambda: draw_cells("Table 2", alone), POINTS)
    assert with_paper == svg(lambda: draw_cells("Table 2", cells), POINTS)
    assert "SNLI" in with_paper
    assert "RTE" not in with_paper  # nothing was measured
    assert "the paper" in with_paper
    assert "the paper" not in without


def test_a_made_up_table_is_compared_with_nothing():
    made_results.simple("qnli", 90, 100)
    made_results.write_params(["qnli"], [0])
    real = markdown(laid_out("table2").document)
    made_results.write_params(
        ["qnli"],
        [0],
        world={"town": {"seed": 0, "books": 1, "pages": 1}},
        sources={"qnli": {"group": "tasks", "folder": "world/town"}},
    )
    invented = markdown(laid_out("table2").document)
    for words in ("ours less the paper's", "¶", "QNLI v2"):
        assert words in real
        assert words not in invented
    assert "no score on them compares with the paper's" in invented
    values = json.loads(Path("params.yaml").read_text())
    values["tasks"] |= {"rte": values["tasks"]["qnli"]}
    Path("params.yaml").write_text(json.dumps(values))
    made_results.simple("rte", 90, 100)
    differences = {cell.title: cell.difference for cell in table_cells(read_params(), "table2")}
    assert differences["RTE"] == pytest.approx(34.0)
    assert differences["QNLI"] is None, "a made-up task beside a real one"
