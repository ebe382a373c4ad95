"""Tables 2 to 5 as pivots of the scores, under the paper's rows."""

from collections.abc import Sequence

import pandas as pd

from gpt1.results.columns import FULL, SEEDS, averaged, columns_of, glue_of_paper
from gpt1.results.paper import (
    AVERAGE,
    GLUE,
    GLUE_ROW,
    GLUE_TASKS,
    MODEL,
    TABLE5_ROWS,
    TABLES,
    paper_means,
)

TITLES = {
    FULL: "full",
    "no_pretraining": "no pre-training",
    "no_aux_lm": "no auxiliary LM",
    "embeddings_only": "embeddings alone",
    "lstm": "LSTM",
    "lstm_equal": "LSTM of equal size",
    "majority": "majority class",
    "tfidf": "TF-IDF",
}
BASELINES = ("majority", "tfidf")


def table_of(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return Table 2, 3, 4 or 5: one row per system, the paper's first; one column per title;
    scores x 100, means over seeds, each with its sample deviation in the row below where there are
    several. NaN where the paper prints a dash or the run has no score.
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
    """Return the columns of Table 5's mean that all of the paper's own systems have in these
    scores; so a row that somebody adds changes no mean and no claim.
    """
    of_paper = scores[scores["system"].isin(TABLE5_ROWS)]
    by_system = of_paper.groupby("system")["column"].agg(set)
    return [
        column.title for column in averaged() if all(column.title in titles for titles in by_system)
    ]


def average(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute each system's mean over the common columns by seed: Table 5's first column. A seed
    that lacks a column is left out.
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
    """Return {(column, metric): heading} in order; the GLUE score is over these tasks."""
    columns = averaged() if name == "table5" else columns_of(name)
    words = {(column.title, column.metric): column.header(name) for column in columns}
    if name == "table5":
        return {(AVERAGE, "mean"): AVERAGE} | words
    if name != "table4":
        return words
    first = {key[0]: key for key in reversed(words)}.values()
    main = {key: word for key, word in words.items() if key in first}
    return main | {(GLUE, "mean"): f"{GLUE} {tasks}/{len(GLUE_TASKS)}" if tasks else GLUE} | words


def _paper(name: str, headers: dict[tuple[str, str], str], titles: Sequence[str]) -> pd.DataFrame:
    """Return the paper's rows under these headers. Its mean of Table 5 and its GLUE score are over
    the same columns and tasks as ours.
    """
    if name == "table5":
        rows = TABLES[name].set_axis(list(headers.values()), axis=1)
        return rows.assign(**{AVERAGE: paper_means(titles)})
    first = {title: header for (title, _), header in reversed(headers.items())}
    rows = TABLES[name].rename(columns=first)
    if titles:
        rows[first[GLUE]] = pd.Series({MODEL: glue_of_paper(titles)})
    for key in headers.keys() & GLUE_ROW.keys():
        rows.loc[MODEL, headers[key]] = GLUE_ROW[key]
    return rows
