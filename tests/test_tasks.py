"""The table of tasks against the paper (Tables 1-4 and Figure 1), and which rows of a task belong
together.
"""

import pytest

from gpt1.tasks.definitions import DPRD, TASKS, scored_split
from gpt1.tasks.rows import Example, cluster_ids
from gpt1.town.qualities import quality_words

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


def test_shapes_outputs_and_metrics_are_the_paper_s():
    assert {
        name: (task.kind, task.sequences, task.outputs, task.metric) for name, task in TASKS.items()
    } == PAPER
    assert list(TASKS) == list(PAPER), "in the order of Table 1"


def test_columns_are_those_of_tables_2_to_4():
    columns = {}
    for task in TASKS.values():
        for column in task.columns:
            columns.setdefault(column.table, set()).add(column.title)
    assert columns == {
        "table2": {"MNLI-m", "MNLI-mm", "SNLI", "SciTail", "QNLI", "RTE"},
        "table3": {"Story Cloze", "RACE-m", "RACE-h", "RACE"},
        "table4": {"CoLA", "SST-2", "MRPC", "STS-B", "QQP"},
    }


def test_every_task_trains_selects_and_says_how_to_get_it():
    for task in TASKS.values():
        for layout in task.layouts:
            names = [split.name for split in layout]
            assert {"train", "dev"} <= set(names)
            assert len(names) == len(set(names))
            assert all(getattr(split.format, "label", True) for split in layout if split.required)
        assert f"data/raw/{task.name}" in task.source.way
        assert not task.file_labels or len(task.file_labels) == len(task.labels)


@pytest.mark.parametrize(
    ("layouts", "scored"),
    [
        (["snli 0", "scitail 0", "race 0", "story_cloze 0", "mrpc 0", "mrpc 1", "stsb 0"], "test"),
        (["mnli 0", "qnli 0", "rte 0", "qqp 0", "sst2 0", "cola 0", "mrpc 2", "stsb 1"], "dev"),
    ],
)
def test_scores_are_on_test_where_its_labels_are_public(layouts, scored):
    for task, layout in map(str.split, layouts):
        splits = {row.name: {"labelled": row.required} for row in TASKS[task].layouts[int(layout)]}
        assert scored_split(TASKS[task].columns[0], splits) == scored, task


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_one_premise_passage_or_story_belong_together_and_others_stand_alone(task):
    examples = [Example((first, "x"), ("a", "b")) for first in ("one", "two", "one", "three")]
    related = task in ("snli", "mnli", "race", "story_cloze")
    expected = [0, 1, 0, 2] if related else [0, 1, 2, 3]
    assert cluster_ids(TASKS[task], examples).tolist() == expected


def test_twins_share_candidates_and_all_before_the_pronoun():
    twins = [
        Example(("The bee landed on the flower because", "had pollen."), ("The bee", "the flower")),
        Example(("The bee landed on the flower because", "was tired."), ("the flower", "the bee")),
        Example(("The bee landed on the flower because", "was tired."), ("the ant", "the flower")),
    ]
    assert cluster_ids(DPRD, twins).tolist() == [0, 0, 1]


def test_made_up_pairs_belong_together_by_what_they_say_in_either_order():
    pairs = [
        ("Leon's daughter was glad.", "Leon's daughter turned merry."),
        ("Dear Effie. Abel's aunt proved merry. Yours, Ida.", "Abel's aunt became glad."),
        ("Owen's niece sang all day.", "Owen's niece turned merry."),
        ("Jack's niece sang all day.", "Jack's niece was merry."),
        ("Leon's daughter was glad.", "Leon's daughter turned sad."),
    ]
    examples = [Example(pair) for pair in pairs]
    assert cluster_ids(TASKS["snli"], examples, quality_words).tolist() == [0, 0, 1, 1, 2]
    assert cluster_ids(TASKS["snli"], examples).tolist() == [0, 1, 2, 3, 0]


def test_made_up_twins_belong_together_whatever_the_task():
    twins = [
        Example(("Ada helped Ben. Cora was helped by Dinah.", "Who helped?"), ("Ada", "Ben")),
        Example(("Ben helped Cora. Dinah was helped by Ada.", "Who helped?"), ("Ada", "Ben")),
        Example(("Ben helped Cora. Dinah was thanked by Ada.", "Who helped?"), ("Ada", "Ben")),
    ]
    assert cluster_ids(TASKS["race"], twins, quality_words).tolist() == [0, 0, 1]
