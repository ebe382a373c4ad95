"""Baselines beside ours in Tables 2 to 4: rows, intervals, and the sentence that says where one is
higher, in every form of the table.
"""

import csv
import shutil
from pathlib import Path

import made_results
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpt1.base.errors import UserError
from gpt1.base.files import writing_folder
from gpt1.params.schema import read_params
from gpt1.results.baselines import LEAD, higher, higher_sentences
from gpt1.results.document import left_out, read_document
from gpt1.results.formats import write_report
from gpt1.results.page import page, sheets
from gpt1.results.paper import TABLES
from gpt1.results.records import load, read_records, write_scores
from gpt1.results.show import show_brief, show_table
from gpt1.results.tables import table_report

SYSTEMS = ("majority", "tfidf")
ROWS = 40
HIGHER = (
    "TF-IDF scores higher than the fine-tuned Transformer on 1 of 2 by the point estimate alone:"
    " RTE."
)
SHOWN = "TF-IDF scores higher than the fine-tuned Transformer on 1 of 2: RTE."


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_params(["rte", "qnli"], [0, 1])
    for task in ("rte", "qnli"):
        made_results.simple(task, 30, ROWS, seeds=(0, 1))  # 75.0


def answered(task: str, system: str, right: int) -> None:
    """A baseline with so many of a task's rows right at the last update, and none by the best."""
    labels = [row % 2 for row in range(ROWS)]
    last = [label if row < right else 1 - label for row, label in enumerate(labels)]
    wrong = [1 - label for label in labels]
    made_results.write_baseline(task, system, {"dev/last": last, "dev/best": wrong})


def fit_all(right: int = 36) -> None:
    for task in ("rte", "qnli"):
        answered(task, "majority", 20)
        answered(task, "tfidf", right if task == "rte" else 30)  # as many as ours: not higher


def made(table: str = "table2") -> Path:
    folder = Path("data/report", table)
    with writing_folder(folder) as out:
        write_report(table_report(read_params(), TABLES[table]), out)
    return folder


def test_baselines_stand_under_ours_in_every_form(capsys):
    fit_all()
    folder = made()
    text = (folder / "table2.md").read_text()
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if "|" in line}
    assert "90.0" in lines["TF-IDF + logistic regression"]
    assert "75.0" in lines["TF-IDF + logistic regression"]
    assert "50.0†" in lines["majority class"]
    assert f"- {HIGHER}" in text
    own = text.index("majority class  ")
    assert text.index("this run") < own < text.index("TF-IDF +")

    with (folder / "table2.csv").open() as file:
        records = [one for one in csv.DictReader(file) if one["row"] == "baseline"]
    found = {(one["system"], one["column"]): one for one in records}
    assert set(found) == {(system, column) for system in SYSTEMS for column in ("RTE", "QNLI")}
    one = found["tfidf", "RTE"]
    assert (float(one["score"]), one["examples"], one["split"]) == (90.0, "40", "dev")
    assert float(one["low"]) < 90 < float(one["high"])
    assert one["difference"] == one["compared_with"] == ""
    assert found["majority", "RTE"]["at_chance"] == "1"

    tex = (folder / "table2.tex").read_text()
    assert "TF-IDF + logistic regression" in tex
    show_table("table2", "terminal", None)
    assert "90.0" in capsys.readouterr().out
    show_table("table2", "json", None)
    assert '"system": "tfidf"' in capsys.readouterr().out


def test_the_brief_output_and_the_page_say_who_is_higher(capsys):
    fit_all()
    made()
    show_brief(("table2", "table3"))
    assert capsys.readouterr().out.splitlines()[-1] == HIGHER
    shutil.copy(made_results.ROOT / "dvc.yaml", "dvc.yaml")
    page.write_page()
    text = Path("data/report/index.html").read_text()
    assert f"<li>{HIGHER}</li>" in text, "among the findings"
    assert "its 95% interval over examples" in text, "the table as a whole"
    records = read_records("table2")
    sheet = sheets.comparison(records, set(), "caption")
    place = sheet.header.index("best baseline")
    cells = {row[0].text: row[place] for row in sheet.rows}
    assert (cells["RTE"].text, cells["RTE"].means) == (
        "90.0",
        "higher than this run by the point estimate alone",
    )
    assert (cells["QNLI"].text, cells["QNLI"].means) == ("75.0", "")
    assert "majority class 50.0" in cells["QNLI"].note
    assert cells["SNLI"].empty
    assert all(len(row) == len(sheet.header) for row in sheet.rows)
    made_up = sheets.comparison(records, {"RTE", "QNLI"}, "caption")
    assert "difference" not in made_up.header
    assert all(len(row) == len(made_up.header) for row in made_up.rows)


def test_nothing_is_said_where_all_are_lower(capsys):
    fit_all(right=28)
    made()
    assert "score higher" not in Path("data/report/table2/table2.md").read_text()
    show_brief(("table2",))
    assert "higher than the fine-tuned" not in capsys.readouterr().out


def test_three_seeds_show_it_where_the_interval_of_the_difference_does():
    fit_all()
    made_results.write_params(["rte", "qnli"], [0, 1, 2])
    for task in ("rte", "qnli"):
        made_results.simple(task, 30, ROWS, seeds=(0, 1, 2))
    assert f"- {SHOWN}" in (made() / "table2.md").read_text()
    records = read_records("table2")
    (one,) = [
        one
        for one in records
        if (one["row"], one["system"], one["column"]) == (LEAD, "tfidf", "RTE")
    ]
    # All seeds answer alike, so that only 6 of 40 rows, which the baseline alone has right, speak.
    margin = stats.t.ppf(0.975, 39) * 100 * np.sqrt(0.15 * 0.85 / 39)
    assert (one["low"], one["high"]) == pytest.approx((-15 - margin, -15 + margin))
    sheet = sheets.comparison(records, set(), "caption")
    place = sheet.header.index("best baseline")
    assert {row[0].text: row[place].means for row in sheet.rows}["RTE"] == "higher than this run"


def test_only_a_task_s_own_metric_counts_and_the_one_with_most_columns_comes_first():
    def record(system, column, task, metric, score, high=None):
        return {
            "row": LEAD,
            "system": system,
            "column": column,
            "task": task,
            "metric": metric,
            "score": score,
            "high": high,
        }

    leads = [
        record("majority", "RTE", "rte", "accuracy", -1.0, 0.5),
        record("majority", "MRPC", "mrpc", "f1", 0.0),
        record("majority", "MRPC", "mrpc", "accuracy", -5.0, -1.0),
        record("tfidf", "RTE", "rte", "accuracy", -1.0, -0.1),
        record("tfidf", "MRPC", "mrpc", "f1", -0.5),
    ]
    assert higher(leads) == {
        "majority": ([], ["RTE"], 2),
        "tfidf": (["RTE"], ["MRPC"], 2),
    }
    assert higher_sentences(leads) == [
        "TF-IDF scores higher than the fine-tuned Transformer on 1 of 2: RTE; on 1 more by the point"
        " estimate alone: MRPC.",
        "A constant answer scores higher than the fine-tuned Transformer on 1 of 2 by the point"
        " estimate alone: RTE.",
    ]
    assert higher_sentences([]) == []


def test_predictions_hold_baselines_and_which_rows_belong_together():
    fit_all()
    clusters = np.arange(ROWS) // 2
    np.savez("data/encode/glue_nli/rte/clusters.npz", dev=clusters)
    made()
    _, predictions = load()
    rte = predictions[predictions["task"] == "rte"]
    assert rte.groupby("system").size().to_dict() == {
        "full": 2 * ROWS,
        **dict.fromkeys(SYSTEMS, ROWS),
    }
    one = rte[rte["system"] == "tfidf"]
    assert one["cluster"].tolist() == clusters.tolist()
    right = one["logits"].map(lambda logits: logits.argmax()) == one["label"]
    assert 100 * right.mean() == 90.0
    assert pd.isna(one["pretraining_seed"]).all()
    qnli = predictions[predictions["task"] == "qnli"]
    assert (qnli["cluster"] == qnli["example"]).all()


def test_glue_s_mean_is_there_for_baselines_too():
    made_results.write_params(["rte", "sst2"], [0, 1])
    made_results.simple("sst2", 30, ROWS, seeds=(0, 1))
    for system in SYSTEMS:
        answered("rte", system, 36)
        answered("sst2", system, 32)
    text = (made("table4") / "table4.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| TF-IDF")]
    assert "80.0" in row
    assert "85.0" in row, "the mean of 90 and 80"
    assert "TF-IDF scores higher than the fine-tuned Transformer on 1 of 1" in text


def test_a_system_that_is_not_asked_for_is_left_out():
    made_results.write_params(["rte", "qnli"], [0, 1], baselines={"systems": ["tfidf"]})
    for task in ("rte", "qnli"):
        answered(task, "tfidf", 36)
    records = table_report(read_params(), TABLES["table2"]).records
    assert {one["system"] for one in records if one["row"] == "baseline"} == {"tfidf"}


def test_a_run_without_the_stage_says_so_and_a_broken_one_what_to_run():
    document = read_document(made())
    assert any("gpt1 run baselines" in line for line in left_out(document))
    assert "majority class" not in Path("data/report/table2/table2.md").read_text()
    assert "best baseline" not in sheets.comparison(read_records("table2"), set(), "").header
    answered("rte", "majority", 20)  # and nothing of QNLI
    with pytest.raises(
        UserError,
        match=r"majority/seed-0/logits.npz is not there; fit it again with dvc repro -f baselines",
    ):
        table_report(read_params(), TABLES["table2"])


def test_rows_of_a_baseline_that_is_no_more_are_passed_over():
    fit_all()
    there = read_records("table2", folder := made())
    old = [one | {"system": "word_vectors"} for one in there if one["system"] == "tfidf"]
    write_scores(folder, [*old, *there, {"row": "of no system"}])
    assert old
    assert [one for one in read_records("table2") if one["row"] != "of no system"] == there
    assert read_records("table2")[-1]["row"] == "of no system"
