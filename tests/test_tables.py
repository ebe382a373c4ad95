"""Tables 2 to 5, Figure 2, curves, claims and the page as the stages write them: numbers by hand,
what is missing is said, every format can be read, equal runs give equal bytes.
"""

import html
import json
import shutil
import xml.dom.minidom
from io import StringIO
from pathlib import Path

import made_results
import numpy as np
import pandas as pd
import pytest
from made_data import as_json_lines, change_json, outputs
from test_claims import ABLATIONS

from gpt1.base.errors import UserError
from gpt1.base.files import write_json
from gpt1.params.schema import read_params
from gpt1.results.page import write_page
from gpt1.results.paper import TABLES
from gpt1.results.predictions import predictions_of, sources_of
from gpt1.results.runs import NAMES, SCORES, read_table
from gpt1.results.tables import table_of
from gpt1.stages import report


@pytest.fixture(autouse=True)
def _folder(elsewhere):
    made_results.write_pretraining()


def shown(name):
    """A table of what lies here, and its text."""
    report.main(name)
    folder = Path("data/report", name)
    return table_of(read_table(folder / SCORES), name), (folder / f"{name}.md").read_text()


@pytest.mark.parametrize("name", ["table2", "table3", "table4"])
def test_the_papers_rows_stand_on_top_as_it_prints_them(name):
    made_results.write_params([], [0])
    found, text = shown(name)
    for system, row in TABLES[name].drop(columns="GLUE", errors="ignore").iterrows():
        there = [found.loc[system].filter(regex=rf"^{title}( |$)").iloc[0] for title in row.index]
        assert there == pytest.approx(list(row), nan_ok=True)
    assert list(found.index)[: len(TABLES[name])] == list(TABLES[name].index)
    assert found.loc["this run"].isna().all()
    assert "Not run, so no score: " in text


def test_a_score_by_hand_and_what_is_missing_is_said():
    made_results.write_params(["rte", "qnli"], [0, 1])
    made_results.simple("rte", right=90, of=100, seeds=(0, 1))
    made_results.simple("qnli", right=80, of=100)
    table, text = shown("table2")
    assert table.loc["this run", "RTE"] == 89.0
    assert table.loc["± over 2 seeds", "RTE"] == pytest.approx(2**0.5)
    assert table.loc["this run", "QNLI"] == 80.0
    assert np.isnan(table.loc["± over 2 seeds", "QNLI"])
    assert "Not run, so no score: MNLI-m, MNLI-mm, SNLI, SciTail." in text
    assert "Fewer seeds than other columns have: QNLI 1." in text
    assert "Dev scores after the last update" in text
    one = read_table(Path("data/report/table2", SCORES)).set_index("column").loc["QNLI"]
    assert one["error"] == pytest.approx(4, rel=0.2)  # 100 √(.8 · .2 / 100)
    assert (one["n"], one["split"]) == (100, "dev")


def test_chance_and_one_seed_are_said():
    made_results.write_params(["rte", "qqp"], [0])
    made_results.simple("rte", right=52, of=100)
    given = [i % 2 for i in range(100)]
    for system, right in (("majority", 50), ("tfidf", 70)):
        answers = [label if i < right else 1 - label for i, label in enumerate(given)]
        made_results.write_baseline("rte", system, {"dev/last": answers, "dev/best": answers})
    half = [label * (i % 4 // 2) for i, label in enumerate(given)]
    made_results.write_task("qqp", {"dev": given}, {0: {"dev/last": half, "dev/best": half}})
    ones = {"dev/last": [1] * 100, "dev/best": [1] * 100}
    made_results.write_baseline("qqp", "majority", ones)
    table, text = shown("table4")
    assert "standard errors of the examples: QQP" in text, "75 to 50 by accuracy, F1 as high"
    table, text = shown("table2")
    assert table.loc[["constant label", "TF-IDF"], "RTE"].to_list() == [50.0, 70.0]
    assert "standard errors of the examples: RTE." in text
    assert "One seed, so no deviation" in text


def test_no_labels_no_score():
    made_results.write_params(["rte", "qnli"], [0])
    made_results.simple("qnli", right=80, of=100)
    made_results.write_task(
        "rte", {"dev": [-1] * 9}, {0: {"dev/last": [0] * 9, "dev/best": [0] * 9}}
    )
    table, text = shown("table2")
    assert np.isnan(table.loc["this run", "RTE"])
    assert "No labels, so no score: RTE." in text


def test_test_is_scored_by_the_best_weights_and_race_by_parts():
    made_results.write_params(["race"], [0])
    labels = [0, 1, 2, 3]
    made_results.write_task(
        "race",
        {"dev": labels, "test": labels},
        {
            0: {
                "dev/last": labels,
                "dev/best": labels,
                "test/last": [0, 0, 0, 0],
                "test/best": [0, 1, 2, 0],
            }
        },
        subset=[0, 0, 1, 1],
    )
    table, _ = shown("table3")
    assert table.loc["this run", ["RACE-m", "RACE-h", "RACE"]].to_list() == [100.0, 50.0, 75.0]


def test_glue_is_the_mean_over_the_tasks_that_are_there():
    made_results.write_params(["rte", "qnli", "cola", "mnli", "qqp"], [0])
    made_results.simple("rte", right=90, of=100)
    made_results.simple("qnli", right=80, of=100)
    made_results.simple("qqp", right=70, of=100)
    given = [i % 2 for i in range(100)]
    wrong = [1 - label for label in given]
    made_results.write_task("cola", {"dev": given}, {0: {"dev/last": wrong, "dev/best": wrong}})
    thirds = [i % 3 for i in range(90)]
    answers = {
        f"{split}/{weights}": thirds if split == "dev" else [0] * 90
        for split in ("dev", "dev_mismatched")
        for weights in ("last", "best")
    }
    made_results.write_task("mnli", {"dev": thirds, "dev_mismatched": thirds}, {0: answers})
    table, text = shown("table4")
    mnli = (100 + 100 / 3) / 2
    ours = np.mean([90, 80, -100, mnli, 70])  # QQP by accuracy
    assert table.loc["this run", "GLUE 5/9"] == pytest.approx(ours)
    rows = read_table(Path("data/report/table4", SCORES)).set_index(["column", "system"])
    assert rows.loc[("GLUE", "full"), "n"] == 4 * 100 + 2 * 90, "QQP once"
    paper = np.mean([56.0, 88.1, 45.4, (82.1 + 81.4) / 2, 88.5])
    assert table.loc["Finetuned Transformer LM", "GLUE 5/9"] == pytest.approx(paper)
    assert "GLUE: the mean over CoLA, QQP, MNLI, QNLI, RTE" in text
    assert shown("table5")[0].loc["this run: full", "MNLI"] == pytest.approx(mnli)


@pytest.mark.parametrize(
    ("task", "release", "table", "said"),
    [
        ("qnli", "v1", "table2", ""),
        ("qnli", "v2", "table2", "QNLI is version 2"),
        ("qnli", "not recognised", "table2", "not recognised by its rows"),
        ("story_cloze", "2018", "table3", "Story Cloze is the 2018 set"),
    ],
)
def test_releases_that_do_not_compare_are_named(task, release, table, said):
    made_results.write_params([task], [0])
    made_results.simple(task, right=90, of=100)
    change_json(f"data/encode/{made_results.group(task)}/{task}/task.json", release=release)
    assert (said or "Not run") in shown(table)[1]
    assert sources_of(read_params(), [task])[task][0] == release
    assert said or "version 2" not in Path(f"data/report/{table}/{table}.md").read_text()


def test_a_damaged_file_is_one_line():
    made_results.write_params(["rte"], [0])
    made_results.simple("rte", right=90, of=100)
    path = Path("data/finetune", made_results.group("rte"), "rte/seed-0/logits.npz")
    bad = np.full((100, 2), np.nan, np.float32)
    for arrays in ({"dev/last": bad}, {"dev/last": bad[:3]}, {"other": bad}):
        np.savez(path, **arrays)
        with pytest.raises(UserError, match=r"logits.npz cannot be read .* -f finetune@rte"):
            predictions_of(read_params(), "table2")
    Path("data/encode", made_results.group("rte"), "rte/task.json").write_text("{")
    with pytest.raises(UserError, match="-f encode@rte"):
        predictions_of(read_params(), "table2")
    assert not list(Path("data").glob("report/*"))


def write_run():
    """Every report's results, three seeds of three tasks, a transfer and a zero-shot set."""
    tasks = ("cola", "mrpc", "mnli")
    made_results.write_lstms()
    ablated = made_results.ablation_rows(ABLATIONS, tasks)
    made_results.write_params(
        list(tasks), [0, 1, 2], ablation=ablated, pretrain={"seeds": [0, 1, 2]}
    )
    transfer = {"mnli": {"group": "glue_nli", "layers": [0]}}
    zero_shot = {"sst2": {"train_rows": None, "rows": 9}}
    change_json("params.yaml", transfer=transfer, zero_shot=zero_shot)
    skills = {"full": 1.8} | dict(zip(ABLATIONS, (0.3, 1.7, 0.9, 1.2, 1.1), strict=True))
    made_results.write_plot(tasks, skills, (0, 1, 2), 60)
    shutil.copytree("data/ablation/embeddings_only-mnli", "data/transfer/mnli/layers-0")
    Path("data/prompt/sst2").mkdir(parents=True)
    np.savez("data/prompt/sst2/clusters.npz", dev=np.arange(9))
    about = {"sets": {"sst2": {"split": "dev"}}, "snapshots": [{"update": 1}, {"update": 10}]}
    for network, seed in ((one, seed) for one in ("transformer", "lstm") for seed in range(3)):
        folder = Path("data/zero_shot", network, f"seed-{seed}")
        write_json(folder / "scores.json", about)
        labels = np.arange(9) % 2
        answers = {"sst2/labels": labels, "sst2/1": 0 * labels, "sst2/10": labels}
        np.savez(folder / "answers.npz", **answers)
    for network in ("transformer", "lstm", "lstm_equal"):
        lines = [
            {"update": i, "tokens": i, "loss": 9 / i, "learning_rate": 0.1, "gradient_norm": 1.0}
            for i in range(1, 9)
        ]
        lines.append({"update": 8, "heldout_loss": 3.0})
        curve = Path("data/pretrain", network, "seed-0", "curve.jsonl")
        curve.write_text(as_json_lines(lines))


@pytest.mark.slow
def test_a_whole_run_twice_in_every_format(capsys):
    write_run()
    made = []
    for _ in range(2):
        for name in NAMES:
            report.main(name)
        write_page()
        made.append(outputs("data/report"))
    assert made[0] == made[1], "equal runs give equal bytes"
    for name in NAMES:
        text = {
            path.suffix: path.read_text()
            for path in Path("data/report", name).glob(f"{name}.*")
            if path.suffix in (".csv", ".html", ".json", ".md", ".tex", ".txt")
        }
        assert len(text) == 6, name
        first = text[".csv"].split("\n\n")[0]
        table = pd.read_csv(StringIO(first), index_col=0)
        split = next(iter(json.loads(text[".json"])["tables"].values()))
        assert list(map(str, split["index"])) == list(map(str, table.index))
        for column in map(str, table.columns):
            assert html.escape(column) in text[".html"]
        assert text[".tex"].count("{") == text[".tex"].count("}") > 0
        assert text[".md"].count("\n| ") >= len(table)
    for path in Path("data/report").rglob("*.svg"):
        xml.dom.minidom.parse(str(path))
    claims = pd.read_parquet("data/report/claims/claims.parquet").set_index("claim")
    assert claims.loc["pretraining_helps", "verdict"] in ("confirmed", "undecided")
    assert claims.loc["zero_shot", "difference"] == pytest.approx(100 - 500 / 9)
    assert claims.loc["zero_shot", "low"] < claims.loc["zero_shot", "high"]
    assert claims.loc["more_layers", "columns"] == "MNLI-m"
    page = Path("data/report/index.html").read_text()
    assert len(page) < 300_000
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_names_of_others_stand_on_the_page_as_text():
    made_results.write_params(["rte"], [0], clean={"corpus_name": "<script>alert(1)</script>"})
    made_results.simple("rte", right=90, of=100)
    for name in ("table2", "table5", "figure2", "claims"):
        report.main(name)
    write_page()
    assert "<script>" not in Path("data/report/index.html").read_text()
    assert not list(Path("data/report").rglob("figure2-*")), "a picture of nothing"
