"""The columns of the tables: which rows of which task each scores, and by which metric."""

from dataclasses import dataclass
from functools import cache

from gpt1.results.paper import GLUE_TASKS, NOT_ON_DEV, TABLE5_METRICS, TABLES, ZERO_SHOT
from gpt1.tasks.table import TASKS, Column, Task

FULL = "full"  # the whole model; other systems are variants, layers-<n>, baselines, networks
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
    parts: tuple[Column, ...] = ()  # none: all rows, as of a zero-shot set

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
    chosen: list[tuple[str, Task, tuple[Column, ...]]] = []
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
