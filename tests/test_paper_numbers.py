"""The paper's literals agree with one another: its own arithmetic comes out of them."""

import statistics

import pytest

from gpt1.results.glue import glue_mean
from gpt1.results.paper import (
    GLUE_ROW,
    GLUE_SCORE,
    GLUE_TASKS,
    RACE_TEST_QUESTIONS,
    TABLE2,
    TABLE3,
    TABLE4,
    TABLES,
)
from gpt1.tasks.table import TASKS


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_row_has_every_column(table):
    for row in (*table.others, table.model):
        assert len(row.scores) == len(table.columns)
        assert row.source
        assert any(score is not None for score in row.scores)


@pytest.mark.parametrize(
    ("name", "rows", "numbers"), [("table2", 7, 24), ("table3", 5, 12), ("table4", 6, 21)]
)
def test_as_many_numbers_as_the_paper_prints(name, rows, numbers):
    table = TABLES[name]
    given = [
        score for row in (*table.others, table.model) for score in row.scores if score is not None
    ]
    assert len(table.others) + 1 == rows
    assert len(given) == numbers


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
    tasks, mean = glue_mean(GLUE_ROW)
    assert len(tasks) == 9
    assert mean == pytest.approx(by_hand, abs=1e-9)
    assert round(mean, 1) == GLUE_SCORE == TABLE4.published("GLUE") == 72.8


def test_glue_mean_without_wnli_is_another_number():
    tasks, mean = glue_mean({name: score for name, score in GLUE_ROW.items() if name[0] != "WNLI"})
    assert tasks == tuple(task for task in GLUE_TASKS if task != "WNLI")
    assert round(mean, 1) == 75.2


def test_a_task_with_half_of_its_metrics_is_not_there():
    tasks, mean = glue_mean({("MRPC", "f1"): 99.0, ("RTE", "accuracy"): 56.0})
    assert (tasks, mean) == (("RTE",), 56.0)
    with pytest.raises(ValueError, match="at least one"):
        glue_mean({("MRPC", "f1"): 99.0})


def test_race_is_weighted_by_questions():
    weights = RACE_TEST_QUESTIONS
    assert sum(weights.values()) == 4934
    mean = statistics.fmean([62.9, 57.4], weights=[weights["RACE-m"], weights["RACE-h"]])
    assert round(mean, 1) == TABLE3.published("RACE") == 59.0
    for row in TABLE3.others[2:]:
        parts = dict(zip(TABLE3.columns, row.scores, strict=True))
        both = statistics.fmean(
            [parts["RACE-m"], parts["RACE-h"]], weights=[weights["RACE-m"], weights["RACE-h"]]
        )
        assert both == pytest.approx(parts["RACE"], abs=0.15), row.system


def test_the_model_row_agrees_with_the_glue_row():
    for table in (TABLE2, TABLE4):
        for title in table.columns:
            for (column, metric), score in GLUE_ROW.items():
                if column == title and (column, metric) in {
                    metrics[0] for metrics in GLUE_TASKS.values()
                } | {("MNLI-mm", "accuracy")}:
                    assert table.published(title) == score


def test_columns_are_those_of_the_tasks():
    for table in TABLES.values():
        ours = {
            column.title
            for task in TASKS.values()
            for column in task.columns
            if column.table == table.name
        }
        assert ours >= set(table.columns) - {"GLUE"}


def test_the_papers_claims_about_its_tables():
    """Section 4.2: by how much the model beats the best earlier result."""

    def gain(table, title):
        others = [row.scores[table.columns.index(title)] for row in table.others]
        return round(
            table.published(title) - max(score for score in others if score is not None), 1
        )

    assert gain(TABLE2, "MNLI-m") == 1.5
    assert gain(TABLE2, "SciTail") == 5.0
    assert gain(TABLE2, "QNLI") == 5.8
    assert gain(TABLE2, "SNLI") == 0.6
    assert gain(TABLE3, "Story Cloze") == 8.9
    assert gain(TABLE3, "RACE") == 5.7
    assert gain(TABLE4, "CoLA") == 10.4
    assert gain(TABLE4, "STS-B") == 1.0
    assert gain(TABLE4, "QQP") == 4.2
