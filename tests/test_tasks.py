"""The table of tasks against the paper: Tables 1-4 and Figure 1; and that a thirteenth task is one
more entry.
"""

import dataclasses
from pathlib import Path

import pytest

from gpt1.params.schema import TaskParams
from gpt1.tasks.layouts import Columns, Split
from gpt1.tasks.readers import read_split, splits_to_read
from gpt1.tasks.table import TASKS, Column, Task, scored_split

PAPER = {  # task: (shape of Figure 1, sequences, logits, metric of Tables 2-4)
    "snli": ("entailment", 1, 3, "accuracy"),
    "mnli": ("entailment", 1, 3, "accuracy"),
    "qnli": ("entailment", 1, 2, "accuracy"),
    "rte": ("entailment", 1, 2, "accuracy"),
    "scitail": ("entailment", 1, 2, "accuracy"),
    "race": ("multiple_choice", 4, 4, "accuracy"),
    "story_cloze": ("multiple_choice", 2, 2, "accuracy"),
    "mrpc": ("similarity", 2, 2, "f1"),
    "qqp": ("similarity", 2, 2, "f1"),
    "stsb": ("similarity", 2, 6, "pearson"),
    "sst2": ("classification", 1, 2, "accuracy"),
    "cola": ("classification", 1, 2, "matthews"),
}


def test_shapes_outputs_and_metrics_are_the_paper_s() -> None:
    assert {
        name: (task.kind, task.sequences, task.outputs, task.metric) for name, task in TASKS.items()
    } == PAPER
    assert list(TASKS) == list(PAPER), "in the order of Table 1"


def test_columns_are_those_of_tables_2_to_4() -> None:
    columns: dict[str, set[str]] = {}
    for task in TASKS.values():
        for column in task.columns:
            columns.setdefault(column.table, set()).add(column.title)
    assert columns == {
        "table2": {"MNLI-m", "MNLI-mm", "SNLI", "SciTail", "QNLI", "RTE"},
        "table3": {"Story Cloze", "RACE-m", "RACE-h", "RACE"},
        "table4": {"CoLA", "SST-2", "MRPC", "STS-B", "QQP"},
    }


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_trains_selects_and_says_how_to_get_it(task: Task) -> None:
    for layout in task.layouts:
        names = [split.name for split in layout]
        assert {"train", "dev"} <= set(names)
        assert len(names) == len(set(names))
        assert all(split.format.label for split in layout if split.required), (
            "what must be there has labels"
        )
    assert f"data/raw/{task.name}" in task.how_to_get
    assert task.name in task.folders or any(
        task.name in folder.lower().replace("-", "") for folder in task.folders
    )
    assert not task.values or len(task.values) == len(task.labels)
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "layout", "split"),
    [
        ("snli", 0, "test"),
        ("scitail", 0, "test"),
        ("race", 0, "test"),
        ("story_cloze", 0, "test"),
        ("mrpc", 0, "test"),
        ("mrpc", 1, "test"),
        ("stsb", 0, "test"),
        ("mnli", 0, "dev"),
        ("qnli", 0, "dev"),
        ("rte", 0, "dev"),
        ("qqp", 0, "dev"),
        ("sst2", 0, "dev"),
        ("cola", 0, "dev"),
        ("mrpc", 2, "dev"),
        ("stsb", 1, "dev"),
    ],
)
def test_scores_are_on_test_where_its_labels_are_public(name: str, layout: int, split: str) -> None:
    splits = {
        row.name: {"labelled": row.format.label and not getattr(row.format, "hidden", False)}
        for row in TASKS[name].layouts[layout]
    }
    assert scored_split(TASKS[name].columns[0], splits) == split


def test_a_thirteenth_task_is_one_entry(tmp_path: Path) -> None:
    rows = Columns("tsv", (("sentence1",), ("sentence2",)), ("label",))
    task = Task(
        "wnli",
        "WNLI",
        "entailment",
        ("not_entailment", "entailment"),
        "accuracy",
        columns=(Column("WNLI", "table2"),),
        layouts=((Split("train", ("train.tsv",), rows), Split("dev", ("dev.tsv",), rows)),),
        folders=("WNLI",),
        origin="GLUE",
        licence="research",
        how_to_get="put it into data/raw/wnli",
        values=("0", "1"),
    )
    for name in task.source.layouts[0].required:
        (tmp_path / name).write_text(
            "index\tsentence1\tsentence2\tlabel\n0\tIt fell.\tThe cup fell.\t1\n"
        )
    row = TaskParams(group="glue_nli", train_rows=None, eval_rows=None, finetune={})
    found = {
        split.name: read_split(task, split, tmp_path, row, 0.0)
        for split in splits_to_read(task, tmp_path, row)
    }
    assert [(example.context, example.label) for example in found["dev"].examples] == [
        (("It fell.", "The cup fell."), 1)
    ]
