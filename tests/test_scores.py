"""Scores, flags and means of Tables 2, 3 and 4 from made-up labels and logits whose scores are
known by hand.
"""

import csv
import json
import math
import re
from pathlib import Path

import made_results
import numpy as np
import pytest
from made_stages import with_rows

from gpt1.params.schema import read_params
from gpt1.results.answers import read_answers
from gpt1.results.document import markdown
from gpt1.results.formats import as_csv
from gpt1.results.glue import glue_cells, our_glue_mean
from gpt1.results.paper import TABLES
from gpt1.results.scores import table_cells
from gpt1.results.tables import CSV_COLUMNS, table_metrics, table_page, table_records


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()


def cells(table: str) -> dict[tuple[str, str], object]:
    return {(cell.title, cell.metric): cell for cell in table_cells(read_params(), table)}


def laid_out(table: str):
    params = read_params()
    found = table_cells(params, table)
    return table_page(
        params,
        TABLES[table],
        found,
        our_glue_mean(glue_cells(params)) if table == "table4" else None,
    )


def test_test_by_the_best_weights_and_dev_by_the_last():
    made_results.write_params(["snli", "rte"], [0, 1])
    labels, wrong = [0, 1, 2, 0], [1, 1, 2, 0]  # `wrong` has 3 of 4
    made_results.write_task(
        "snli",
        {"dev": labels, "test": labels},
        {
            seed: {
                "dev/best": wrong,
                "dev/last": wrong,
                "test/best": labels if seed else wrong,
                "test/last": [2, 2, 1, 1],
            }
            for seed in (0, 1)
        },
    )
    made_results.write_task(
        "rte",
        {"dev": [0, 1, 1, 1, 0]},
        {
            0: {"dev/best": [0, 1, 1, 1, 0], "dev/last": [1, 0, 1, 1, 0]},
            1: {"dev/best": [0, 1, 1, 1, 1], "dev/last": [0, 0, 1, 1, 0]},
        },
    )
    found = cells("table2")
    snli, rte = found["SNLI", "accuracy"].measured, found["RTE", "accuracy"].measured
    assert (snli.split, snli.chosen, snli.scores) == ("test", "best on dev", {0: 75.0, 1: 100.0})
    assert (snli.mean, snli.best, snli.median, snli.selected) == (87.5, 100.0, 87.5, {})
    assert snli.deviation == pytest.approx(math.sqrt((12.5**2 + 12.5**2) / 1))  # ddof 1
    assert found["SNLI", "accuracy"].difference == pytest.approx(87.5 - 89.9)
    assert (rte.split, rte.chosen, rte.scores) == ("dev", "last update", {0: 60.0, 1: 80.0})
    assert rte.selected == {0: 100.0, 1: 80.0}
    assert (rte.examples, rte.majority) == (5, 60.0)
    assert found["SciTail", "accuracy"].measured is None


def test_one_seed_has_no_deviation():
    made_results.write_params(["rte"], [7])
    made_results.simple("rte", right=90, of=100, seeds=(7,))
    measured = cells("table2")["RTE", "accuracy"].measured
    assert (measured.mean, measured.deviation, measured.flagged) == (90.0, None, ())
    assert measured.standard_error == pytest.approx(3.0)  # sqrt(.9 * .1 / 100)
    assert re.search(r"\| +\*\*90\.0\*\* \|", markdown(laid_out("table2").document))


def test_mnli_and_race_parts_are_scored_on_their_own_rows():
    made_results.write_params(["mnli", "race"], [0])
    made_results.write_task(
        "mnli",
        {"dev": [0, 1], "dev_mismatched": [2, 2, 1, 0]},
        {
            0: {
                "dev/last": [0, 0],
                "dev/best": [0, 0],
                "dev_mismatched/last": [2, 2, 1, 1],
                "dev_mismatched/best": [2, 2, 1, 0],
            }
        },
    )
    labels = [0, 1, 2, 3, 0]
    made_results.write_task(
        "race",
        {"dev": labels, "test": labels},
        {
            0: {
                f"{split}/{weights}": [0, 1, 0, 0, 0]
                for split in ("dev", "test")
                for weights in ("best", "last")
            }
        },
        subset=[0, 0, 1, 1, 1],
    )
    found = cells("table2") | cells("table3")
    scores = {title: cell.measured.mean for (title, _), cell in found.items() if cell.measured}
    assert scores == pytest.approx(
        {"MNLI-m": 50.0, "MNLI-mm": 75.0, "RACE-m": 100.0, "RACE-h": 100 / 3, "RACE": 60.0}
    )
    assert found["RACE-h", "accuracy"].measured.examples == 3
    assert found["RACE-m", "accuracy"].key == "race_m"


def test_table4_metrics_by_hand():
    made_results.write_params(["cola", "mrpc", "stsb"], [0])
    # 3 true positives, 1 false positive, 2 false negatives, 4 true negatives
    labels = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    answers = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    for task in ("cola", "mrpc"):
        made_results.write_task(
            task, {"dev": labels}, {0: {"dev/last": answers, "dev/best": answers}}
        )
    scores, guesses = [0.0, 2.5, 5.0, 1.0], [0, 1, 4, 2]
    made_results.write_task(
        "stsb", {"dev": scores}, {0: {"dev/last": guesses, "dev/best": guesses}}
    )
    mean = {name: cell.measured.mean for name, cell in cells("table4").items() if cell.measured}
    assert mean["CoLA", "matthews"] == pytest.approx(
        100 * (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)
    )
    assert mean["MRPC", "f1"] == pytest.approx(100 * 2 * 3 / (2 * 3 + 1 + 2))
    assert mean["MRPC", "accuracy"] == pytest.approx(70.0)
    assert mean["STS-B", "pearson"] == pytest.approx(
        100 * np.corrcoef(scores, guesses)[0, 1], abs=1e-4
    )
    assert mean["STS-B", "spearman"] == pytest.approx(
        100 * 0.8, abs=1e-4
    )  # ranks 1 3 4 2 against 1 2 4 3: 1 - 6 * 2 / (4 * 15)


def test_chance_and_one_class_are_flagged_by_seed():
    made_results.write_params(["rte"], [0, 1, 2])
    labels = [0] * 50 + [1] * 50
    good, constant, coin = labels[:45] + [1] * 5 + labels[50:], [0] * 100, [0, 1] * 50
    made_results.write_task(
        "rte",
        {"dev": labels},
        {
            seed: {"dev/last": row, "dev/best": row}
            for seed, row in enumerate((good, constant, coin))
        },
    )
    measured = cells("table2")["RTE", "accuracy"].measured
    assert measured.scores == {0: 95.0, 1: 50.0, 2: 50.0}
    assert (measured.one_class, measured.flagged, measured.at_chance) == ((1,), (1, 2), False)
    text = markdown(laid_out("table2").document)
    assert "65.0 ± 26.0†‡" in text
    assert re.search(
        r"^- † .*RTE acc, seeds 1, 2 of 3 \(mean of the others 95\.0\)", text, re.MULTILINE
    )
    assert re.search(
        r"^- ‡ .*RTE acc, seed 1 of 3 \(mean of the others 95\.0\)", text, re.MULTILINE
    )
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("| split")) + 1
    assert [line[:4] for line in lines[begin : begin + 5]] == ["", "- † ", "- ‡ ", "", "| co"], (
        "a legend directly under the scores"
    )


def test_no_legend_where_no_sign_stands():
    made_results.write_params(["rte"], [0])
    made_results.simple("rte", right=90, of=100)
    assert "| split" in (text := markdown(laid_out("table2").document))
    assert "looks at no input." in text
    assert "- † " not in text


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_the_mean_over_glue_s_tasks_has_one_interval_everywhere_or_none(seeds):
    tasks = ("mrpc", "stsb", "mnli")
    made_results.write_params(list(tasks), list(seeds))
    made_results.write_drawn(tasks, {"full": 1.5}, seeds, 200, cluster=2)
    params = read_params()
    cells4 = table_cells(params, "table4")
    glue = our_glue_mean(glue_cells(params, cells4))
    page = table_page(params, TABLES["table4"], cells4, glue)
    columns = CSV_COLUMNS.split()
    records = list(
        csv.DictReader(
            as_csv(table_records(params, TABLES["table4"], cells4, glue, ""), columns).splitlines()
        )
    )
    mean = next(one for one in records if one["row"] == "ours" and one["metric"] == "mean")
    assert float(mean["score"]) == pytest.approx(glue.mean, abs=1e-4)
    shown = dict(
        zip(page.header, next(row for row in page.our_rows if "95%" in row[0]), strict=True)
    )
    metrics = table_metrics(cells4, glue)["glue_tasks_there"]
    if len(seeds) < 3:
        assert (mean["low"], mean["high"], shown["GLUE 3 of 9"]) == ("", "", "-")
        assert "low" not in metrics
        return
    low, high = glue.estimate.interval()
    assert (float(mean["low"]), float(mean["high"])) == (
        pytest.approx(low, abs=1e-4),
        pytest.approx(high, abs=1e-4),
    )
    assert metrics["low"] == pytest.approx(low, abs=1e-4)
    assert shown["GLUE 3 of 9"] == f"[{low:.1f}, {high:.1f}]"


@pytest.mark.parametrize(("right", "flagged"), [(50, True), (59, True), (60, False), (40, True)])
def test_chance_is_two_standard_errors_above_the_majority_or_lower(right, flagged):
    """100 even labels: majority 50; one standard error at 59 is 4.92 (50 + 9.84 >= 59), at 60 it is
    4.90 (59.80 < 60).
    """
    made_results.write_params(["rte"], [0])
    made_results.simple("rte", right=right, of=100)
    assert cells("table2")["RTE", "accuracy"].measured.at_chance is flagged


def test_the_flags_limit_is_a_parameter():
    made_results.write_params(["rte"], [0], report={"chance_standard_errors": 0.0})
    made_results.simple("rte", right=51, of=100)
    assert cells("table2")["RTE", "accuracy"].measured.at_chance is False


def test_qnli_v2_is_compared_with_its_own_number():
    made_results.write_params(["qnli"], [0])
    for rows, compared, marked in ((104_743, 87.4, True), (108_436, 88.1, False)):
        made_results.simple("qnli", right=90, of=100)
        path = Path("data/encode/glue_nli/qnli/task.json")
        description = json.loads(path.read_text())
        description["splits"]["train"]["rows_read"] = rows
        path.write_text(json.dumps(description))
        cell = cells("table2")["QNLI", "accuracy"]
        assert (cell.published, cell.compared, cell.difference) == (
            88.1,
            compared,
            pytest.approx(90.0 - compared),
        )
        assert ("¶" in markdown(laid_out("table2").document)) is marked


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


def test_glue_is_not_given_where_tasks_are_missing():
    write_glue(["rte", "sst2"], right=80)
    text = markdown(laid_out("table4").document)
    header, *rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][:10]
    ours = next(row for row in rows if "this run" in row[0])
    place = [name.strip() for name in header].index("GLUE")
    assert ours[place].strip() == "-"
    assert "mean over the 2 tasks that are there (SST-2, RTE)" in text
    assert ours[place + 1].strip(" |") == "**80.0**"
    paper = next(row for row in rows if "(the paper)" in row[0])
    assert paper[place + 1].strip(" |") == f"{(91.3 + 56.0) / 2:.1f}"
    assert "CoLA, MRPC, STS-B, QQP, MNLI, QNLI, WNLI left out" in text


def test_a_flagged_run_in_the_glue_mean_is_named():
    write_glue(["rte", "sst2"], right=80)
    made_results.simple("rte", right=50, of=100)
    text = markdown(laid_out("table4").document)
    assert "**65.0†**" in text
    assert "are in it, of RTE." in text


def test_no_glue_task_at_all():
    made_results.write_params(["snli"], [0])
    made_results.write_task("snli", {"dev": [0, 1]}, {0: {"dev/last": [0, 1], "dev/best": [0, 1]}})
    assert "GLUE: none of its nine tasks is there" in markdown(laid_out("table4").document)


def test_seeds_come_from_the_tasks_own_row():
    made_results.write_params(["rte"], [0])
    values = json.loads(Path("params.yaml").read_text())
    values["tasks"]["rte"]["finetune"] = {"seeds": [3, 4]}
    Path("params.yaml").write_text(json.dumps(with_rows(values)))
    made_results.simple("rte", 90, 100, seeds=(3, 4))
    assert read_answers(read_params(), "rte").seeds == (3, 4)
    assert tuple(cells("table2")["RTE", "accuracy"].measured.scores) == (3, 4)


def test_qqp_s_f1_on_dev_is_shown_and_compared_with_nothing():
    """The server's rows hold 14 to 25 % duplicates (0.885 right with an F1 of 0.703), dev's 37 %."""
    labels = [1] * 37 + [0] * 63
    answers = [1] * 30 + [0] * 7 + [1] * 5 + [0] * 58
    made_results.write_params(["qqp", "rte"], [0, 1])
    made_results.write_task(
        "qqp",
        {"dev": labels},
        {seed: {"dev/last": answers, "dev/best": answers} for seed in (0, 1)},
    )
    made_results.simple("rte", 90, 100, seeds=(0, 1))
    found = cells("table4")
    f1, accuracy = found["QQP", "f1"], found["QQP", "accuracy"]
    assert f1.measured.mean == pytest.approx(100 * 2 * 30 / (30 + 7 + 30 + 5))
    assert (f1.published, f1.compared, f1.difference) == (70.3, None, None)
    assert (accuracy.measured.mean, accuracy.difference) == (88.0, pytest.approx(-0.5))
    params = read_params()
    glue = our_glue_mean(glue_cells(params))
    assert glue.mean == pytest.approx((88.0 + 90.0) / 2)
    assert glue.published == pytest.approx((88.5 + 56.0) / 2)
    text = markdown(laid_out("table4").document)
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if "|" in line]
    header, lines = rows[0], {row[1]: row for row in rows}
    place = header.index("QQP (F1)")
    assert lines["Finetuned Transformer LM (the paper)"][place] == "70.3"
    assert "83.3" in lines["**this run (made_up)**"][place]
    assert lines["ours less the paper's"][place] == "-"
    details = [line for line in text.splitlines() if line.startswith("| QQP")]
    assert [line.split("|")[-2].strip() for line in details] == ["-", "−0.5"]
    assert any(line.startswith("- QQP: F1 on dev") for line in text.splitlines())


def test_the_glue_mean_takes_qnli_v2_s_own_number():
    write_glue(["qnli"], right=80)
    assert our_glue_mean(glue_cells(read_params())).published == 87.4
