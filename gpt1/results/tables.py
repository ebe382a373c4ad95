"""Tables 2 to 5: which rows each column scores, by which metric; the GLUE score."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from gpt1.results.paper import (
    AVERAGE,
    GLUE,
    GLUE_ROW,
    GLUE_TASKS,
    MODEL,
    NOT_ON_DEV,
    TABLE5_METRICS,
    TABLE5_ROWS,
    TABLES,
    ZERO_SHOT,
    paper_means,
)
from gpt1.tasks.definitions import TASKS, TableColumn

FULL = "full"  # the whole model; other systems are ablations, layers-<n>, baselines, networks
METRIC_WORDS = {"accuracy": "acc", "f1": "F1", "matthews": "mc", "pearson": "pc", "spearman": "sc"}
SEEDS = ["pretraining_seed", "seed"]
TWO_METRICS = [task.title for task in TASKS.values() if task.second_metric]


@dataclass(frozen=True)
class ScoredColumn:
    """A column, which shows the mean score over `parts` of a task's rows."""

    title: str
    task: str
    metric: str
    parts: tuple[TableColumn, ...] = ()  # none: all rows, as of a zero-shot set

    def header(self) -> str:
        """Return the heading, with the metric unless that is accuracy alone."""
        plain = self.metric == "accuracy" and self.title not in TWO_METRICS
        return self.title if plain else f"{self.title} {METRIC_WORDS[self.metric]}"


@cache
def columns_of(table: str) -> tuple[ScoredColumn, ...]:
    """Return a table's columns in the paper's order, then those of other tasks. Figure 2 has whole
    tasks (left), then zero-shot sets (right).
    """
    every = [(task, column) for task in TASKS.values() for column in task.columns]
    if table == "figure2":
        layer_columns = [
            ScoredColumn(column.title, task.name, task.metric, (column,))
            for task, column in every
            if not column.suffix and column.subset is None
        ]
        zero_shot_columns = [
            ScoredColumn(title, name, "matthews" if name == "cola" else "accuracy")
            for name, title in ZERO_SHOT["title"].items()
        ]
        return (*layer_columns, *zero_shot_columns)
    titles = {title: {name for name, _ in GLUE_TASKS[title]} for title in TABLE5_METRICS}
    if table != "table5":
        every = [(task, column) for task, column in every if column.table == table]
        listed = [column.title for _, column in every]
        titles = {title: {title} for title in [*TABLES[table], *listed] if title in listed}
    columns = []
    for title, names in titles.items():
        pairs = [(task, column) for task, column in every if column.title in names]
        parts, task = tuple(column for _, column in pairs), pairs[0][0]
        for metric in filter(None, (task.metric, task.second_metric)):
            columns.append(ScoredColumn(title, task.name, metric, parts))
    return tuple(columns)


def averaged() -> list[ScoredColumn]:
    """Return the columns that Table 5's mean and the claims are over."""
    # QQP's F1 depends on the share of duplicates, which differs between dev and the paper's server
    metrics = {**TABLE5_METRICS, NOT_ON_DEV[0]: "accuracy"}
    return [column for column in columns_of("table5") if column.metric == metrics[column.title]]


def glue_tasks(scores: pd.DataFrame, without: tuple[str, str] | None = NOT_ON_DEV) -> pd.DataFrame:
    """Return one column per task of GLUE, the mean of its metrics but `without` (Wang et al. 2018),
    from columns (column, metric).
    """
    return pd.DataFrame(
        {
            task: scores.reindex(columns=[key for key in keys if key != without]).mean(
                axis=1, skipna=False
            )
            for task, keys in GLUE_TASKS.items()
        }
    )


def glue_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the GLUE score by system and seed over the full model's tasks."""
    if (scored := scores.dropna(subset="score")).empty:
        return scored
    wide = scored.set_index(["system", *SEEDS, "column", "metric"])[["score", "n"]]
    wide = wide.unstack(["column", "metric"])
    by_task = glue_tasks(wide["score"])
    full = by_task[by_task.index.get_level_values("system") == FULL]
    tasks = full.dropna(axis=1, how="all").columns
    mean = by_task[tasks].mean(axis=1, skipna=False).dropna().rename("score").to_frame()
    rows = mean.assign(
        task=" ".join(tasks), n=wide["n"].T.groupby("column").first().sum()
    ).reset_index()
    return rows.assign(table="table4", column=GLUE, metric="mean")


TITLES = {
    FULL: "full",
    "no_pretraining": "no pre-training",
    "no_aux_lm": "no auxiliary LM",
    "embeddings_only": "embeddings alone",
    "lstm": "LSTM",
    "lstm_equal": "LSTM of equal size",
    "majority": "constant label",
    "tfidf": "TF-IDF",
}
BASELINES = ("majority", "tfidf")


def table_of(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return Table 2, 3, 4 or 5, the paper's rows first: scores x 100, means over seeds, each with
    its sample deviation below; NaN for no score.
    """
    table_scores = scores[(scores["table"] == name) & scores["score"].notna()]
    if name == "table5":
        titles = common_titles(table_scores)
        table_scores = pd.concat([table_scores, average(table_scores)])
    else:
        titles = " ".join(table_scores.loc[table_scores["column"] == GLUE, "task"].head(1)).split()
    headers = _headers(name, len(titles))
    header = pd.MultiIndex.from_frame(table_scores[["column", "metric"]]).map(headers)
    grouped = table_scores.groupby(["system", header])["score"]
    mean, deviation, seeds = (
        statistic.unstack() for statistic in (grouped.mean(), grouped.std(), grouped.count())
    )
    rows = [_paper(name, headers, titles)]
    for system in [*TITLES, *mean.index.difference(list(TITLES))]:
        if system in mean.index or system == FULL:
            rows.append(mean.reindex([system]).set_axis([label(name, system)]))
        if system in mean.index and (count := int(seeds.loc[system].max())) > 1:
            rows.append(deviation.loc[[system]].set_axis([f"± over {count} seeds"]))
    return pd.concat(rows).reindex(columns=list(headers.values()))


def common_titles(scores: pd.DataFrame) -> list[str]:
    """Return the columns of Table 5's mean that all of the paper's own systems have."""
    # only these, so that a row which somebody adds changes no mean and no claim
    of_paper = scores[scores["system"].isin(TABLE5_ROWS)]
    by_system = of_paper.groupby("system")["column"].agg(set)
    return [
        column.title for column in averaged() if all(column.title in titles for titles in by_system)
    ]


def average(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute each system's mean over the common columns by seed. A seed that lacks a column is
    left out.
    """
    keys = [(column.title, column.metric) for column in averaged()]
    common = scores.merge(pd.DataFrame(keys, columns=["column", "metric"]))
    titles = common_titles(common)
    common = common[common["column"].isin(titles)]
    grouped = common.groupby(["system", *SEEDS], dropna=False)["score"]
    mean = grouped.mean()[grouped.count() == len(titles)].reset_index()
    return mean.assign(column=AVERAGE, metric="mean")


def label(name: str, system: str) -> str:
    """Return the heading of a row of this run."""
    if name == "table5" and system not in BASELINES:
        return f"this run: {TITLES.get(system, system)}"
    return "this run" if system == FULL else TITLES.get(system, system)


def _headers(name: str, tasks: int) -> dict[tuple[str, str], str]:
    columns = averaged() if name == "table5" else columns_of(name)
    words = {(column.title, column.metric): column.header() for column in columns}
    if name == "table5":
        return {(AVERAGE, "mean"): AVERAGE} | words
    if name != "table4":
        return words
    first = {key[0]: key for key in reversed(words)}.values()
    main = {key: word for key, word in words.items() if key in first}
    return main | {(GLUE, "mean"): f"{GLUE} {tasks}/{len(GLUE_TASKS)}" if tasks else GLUE} | words


def _paper(name: str, headers: dict[tuple[str, str], str], titles: Sequence[str]) -> pd.DataFrame:
    if name == "table5":
        rows = TABLES[name].set_axis(list(headers.values()), axis=1)
        return rows.assign(**{AVERAGE: paper_means(titles)})
    first = {title: header for (title, _), header in reversed(headers.items())}
    rows = TABLES[name].rename(columns=first)
    if titles:
        by_task = glue_tasks(pd.DataFrame([GLUE_ROW], [MODEL]))
        rows[first[GLUE]] = by_task[list(titles)].mean(axis=1)
    for key in headers.keys() & GLUE_ROW.keys():
        rows.loc[MODEL, headers[key]] = GLUE_ROW[key]
    return rows
