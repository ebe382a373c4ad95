"""The columns of the tables: which rows of which task each scores, and by which metric; and the
GLUE score, the mean over the tasks that a run has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from gpt1.results.paper import (
    GLUE,
    GLUE_ROW,
    GLUE_TASKS,
    NOT_ON_DEV,
    TABLE5_METRICS,
    TABLES,
    ZERO_SHOT,
)
from gpt1.tasks.definitions import TASKS, TableColumn, Task

FULL = "full"  # the whole model; other systems are ablations, layers-<n>, baselines, networks
METRIC_WORDS = {"accuracy": "acc", "f1": "F1", "matthews": "mc", "pearson": "pc", "spearman": "sc"}
TWO_METRICS = [task.title for task in TASKS.values() if task.second_metric]


@dataclass(frozen=True)
class ScoredColumn:
    """A column of a table: title, task and metric, and the parts of that task's rows whose mean
    score it shows. MNLI has two parts in Table 5, every other column one.
    """

    title: str
    task: str
    metric: str
    parts: tuple[TableColumn, ...] = ()  # none: all rows, as of a zero-shot set

    def header(self, table: str) -> str:
        """Return the column's heading, with the metric where the table has several."""
        alike = table in ("table2", "table3")
        plain = alike or (self.metric == "accuracy" and self.title not in TWO_METRICS)
        return self.title if plain else f"{self.title} {METRIC_WORDS[self.metric]}"


@cache
def columns_of(table: str) -> tuple[ScoredColumn, ...]:
    """Return the columns of a table in the paper's order, then those of other tasks. A task's
    second metric follows its first. figure2: whole tasks (left), then zero-shot sets (right).
    """
    every = [(task, column) for task in TASKS.values() for column in task.columns]
    chosen: list[tuple[str, Task, tuple[TableColumn, ...]]] = []
    if table == "table5":
        for title, metric in TABLE5_METRICS.items():
            titles = {name for name, metrics in GLUE_TASKS[title] if metrics == metric}
            parts = [pair for pair in every if pair[1].title in titles]
            chosen.append((title, parts[0][0], tuple(column for _, column in parts)))
    elif table in TABLES:
        paper_titles = list(TABLES[table])
        listed = [(task, column) for task, column in every if column.table == table]
        listed.sort(key=lambda pair: (*paper_titles, pair[1].title).index(pair[1].title))
        chosen = [(column.title, task, (column,)) for task, column in listed]
    else:
        whole = [pair for pair in every if not pair[1].suffix and pair[1].subset is None]
        layer_columns = [
            ScoredColumn(column.title, task.name, task.metric, (column,)) for task, column in whole
        ]
        zero_shot_columns = [
            ScoredColumn(title, name, "matthews" if name == "cola" else "accuracy")
            for name, title in ZERO_SHOT["title"].items()
        ]
        return (*layer_columns, *zero_shot_columns)
    return tuple(
        ScoredColumn(title, task.name, metric, parts)
        for title, task, parts in chosen
        for metric in (task.metric, task.second_metric)
        if metric
    )


def averaged() -> list[ScoredColumn]:
    """Return the columns that Table 5's mean and the claims are over. QQP counts by accuracy: F1
    depends on the share of duplicates, which differs between dev and the paper's server.
    """
    metrics = {**TABLE5_METRICS, NOT_ON_DEV[0]: "accuracy"}
    return [column for column in columns_of("table5") if column.metric == metrics[column.title]]


SEEDS = ["pretraining_seed", "seed"]


def glue_tasks(scores: pd.DataFrame, without: tuple[str, str] | None = NOT_ON_DEV) -> pd.DataFrame:
    """Return one column per task of GLUE: the mean of its metrics (Wang et al. 2018), without the
    metric `without`. NaN where a metric is missing. `scores` has columns (column, metric).
    """
    kept_metrics = {
        task: [key for key in keys if key != without] for task, keys in GLUE_TASKS.items()
    }
    return pd.DataFrame(
        {
            task: scores.reindex(columns=keys).mean(axis=1, skipna=False)
            for task, keys in kept_metrics.items()
        }
    )


def glue_of_paper(tasks: Sequence[str]) -> float:
    """Return the score of the paper's model on these tasks, QQP by accuracy alone."""
    return float(glue_tasks(pd.DataFrame([GLUE_ROW]))[list(tasks)].mean(axis=1).iloc[0])


def glue_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute the GLUE score by system and seed over the tasks of the full model, QQP by accuracy
    alone. Its rows are like those of `scores`; `task` lists the tasks. A seed that lacks one of
    these tasks is left out.
    """
    if (scored := scores.dropna(subset="score")).empty:
        return scored
    wide = scored.set_index(["system", *SEEDS, "column", "metric"])[["score", "n"]]
    wide = wide.unstack(["column", "metric"])
    by_task = glue_tasks(wide["score"])
    full = by_task[by_task.index.get_level_values("system") == FULL]
    tasks = full.dropna(axis=1, how="all").columns
    mean = by_task[tasks].mean(axis=1, skipna=False).dropna().rename("score").to_frame()
    rows = mean.assign(task=" ".join(tasks), n=wide["n"].sum(axis=1)).reset_index()
    return rows.assign(table="table4", column=GLUE, metric="mean")
