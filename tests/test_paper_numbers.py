"""The paper's literals agree with one another: its own arithmetic comes out of them."""

import statistics

import pandas as pd
import pytest

from gpt1.results.paper import GLUE_ROW, GLUE_TASKS, MODEL, TABLE2, TABLE3, TABLE4, TABLES
from gpt1.results.tables import glue_tasks

RACE_TEST_QUESTIONS = {"RACE-m": 1436, "RACE-h": 3498}  # Lai et al. 2017


def test_as_many_numbers_as_the_paper_prints():
    for name, rows, numbers in [
        ("table2", 7, 24),
        ("table3", 5, 12),
        ("table4", 6, 21),
        ("table5", 4, 36),
    ]:
        assert len(TABLES[name]) == rows
        assert TABLES[name].notna().to_numpy().sum() == numbers


def test_glue_score_is_the_mean_over_nine_tasks():
    by_hand = (
        45.4
        + 91.3
        + (82.3 + 75.7) / 2
        + (82.0 + 80.0) / 2
        + (70.3 + 88.5) / 2
        + (82.1 + 81.4) / 2
        + 88.1
        + 56.0
        + 53.4
    ) / 9
    tasks = glue_tasks(pd.DataFrame([GLUE_ROW]), without=None)
    assert tasks.shape == (1, 9)
    mean = tasks.mean(axis=1)[0]
    assert mean == pytest.approx(by_hand, abs=1e-9)
    assert round(mean, 1) == TABLE4.loc[MODEL, "GLUE"] == 72.8


def test_a_task_with_half_of_its_metrics_is_not_there():
    scores = pd.DataFrame([{("MRPC", "f1"): 99.0, ("RTE", "accuracy"): 56.0}])
    assert glue_tasks(scores).dropna(axis=1).iloc[0].to_dict() == {"RTE": 56.0}


def test_race_is_weighted_by_questions():
    weights = RACE_TEST_QUESTIONS
    assert sum(weights.values()) == 4934
    mean = statistics.fmean([62.9, 57.4], weights=[weights["RACE-m"], weights["RACE-h"]])
    assert round(mean, 1) == TABLE3.loc[MODEL, "RACE"] == 59.0
    for system, parts in TABLE3.dropna(subset="RACE").drop(index=MODEL).iterrows():
        both = statistics.fmean(
            [parts["RACE-m"], parts["RACE-h"]], weights=[weights["RACE-m"], weights["RACE-h"]]
        )
        assert both == pytest.approx(parts["RACE"], abs=0.15), system


def test_the_model_row_agrees_with_the_glue_row():
    main = {metrics[0] for metrics in GLUE_TASKS.values()} | {("MNLI-mm", "accuracy")}
    for (column, metric), score in GLUE_ROW.items():
        for table in (TABLE2, TABLE4):
            if column in table and (column, metric) in main:
                assert table.loc[MODEL, column] == score


def test_the_papers_claims_about_its_tables():
    """Section 4.2: by how much the model beats the best earlier result."""

    def gain(table, title):
        return round(table.loc[MODEL, title] - table[title].drop(MODEL).max(), 1)

    assert gain(TABLE2, "MNLI-m") == 1.5
    assert gain(TABLE2, "SciTail") == 5.0
    assert gain(TABLE2, "QNLI") == 5.8
    assert gain(TABLE2, "SNLI") == 0.6
    assert gain(TABLE3, "Story Cloze") == 8.9
    assert gain(TABLE3, "RACE") == 5.7
    assert gain(TABLE4, "CoLA") == 10.4
    assert gain(TABLE4, "STS-B") == 1.0
    assert gain(TABLE4, "QQP") == 4.2
