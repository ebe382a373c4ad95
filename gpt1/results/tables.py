"""Tables 2 to 5 as pivots of the scores, under the paper's rows, in the formats of pandas."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import pandas as pd

from gpt1.results.columns import FULL, averaged, columns_of
from gpt1.results.glue import glue_of_paper
from gpt1.results.paper import GLUE, GLUE_ROW, GLUE_TASKS, TABLE5, TABLES, PaperRow

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
AVERAGE = "Avg"
HEADINGS = {name: f"Table {name[-1]}. {table.title}" for name, table in TABLES.items()}
HEADINGS |= {TABLE5.name: "Table 5. Ablations"}


def table_of(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """Table 2, 3, 4 or 5: a row a system, the paper's first; a column a title; scores x 100, means
    over seeds, and below them their sample deviation where there are several. Not a number where
    the paper prints a dash, or the run has no score.
    """
    mine = scores[(scores["table"] == name) & scores["score"].notna()]
    mine = pd.concat([mine, average(mine)]) if name == TABLE5.name else mine
    headers = _headers(name, mine)
    mine = mine.assign(header=pd.MultiIndex.from_frame(mine[["column", "metric"]]).map(headers))
    by = mine.dropna(subset="header").groupby(["system", "header"])["score"]
    mean, deviation, seeds = (one.unstack() for one in (by.mean(), by.std(), by.count()))
    rows = list(_paper_rows(name, mine, headers))
    known = [one for one in TITLES if one in mean.index or one == FULL]
    for system in [*known, *sorted(set(mean.index) - set(TITLES))]:
        there = system in mean.index
        rows.append((label(name, system), mean.loc[system].to_dict() if there else {}))
        if there and (count := int(seeds.loc[system].max())) > 1:
            rows.append((f"± over {count} seeds", deviation.loc[system].to_dict()))
    labels, values = zip(*rows, strict=True)
    return pd.DataFrame(list(values), list(labels), list(headers.values()), dtype=float)


def common_titles(scores: pd.DataFrame) -> list[str]:
    """The columns of Table 5's mean that every system of the scores has."""
    there = scores.groupby("system")["column"].agg(set)
    return [one.title for one in averaged() if all(one.title in those for those in there)]


def average(scores: pd.DataFrame) -> pd.DataFrame:
    """Each system's mean over the columns that all have, by seed: Table 5's first column."""
    keys = pd.DataFrame(
        [(one.title, one.metric) for one in averaged()], columns=["column", "metric"]
    )
    titles = common_titles(scores.merge(keys))
    mine = scores.merge(keys[keys["column"].isin(titles)])
    by = mine.groupby(["system", "pretraining_seed", "seed"], dropna=False)["score"]
    mean = by.agg(["mean", "count"]).query(f"count == {len(titles)}").reset_index()
    return mean.rename(columns={"mean": "score"}).assign(column=AVERAGE, metric="mean")


def paper_average(row: PaperRow, titles: Sequence[str]) -> float:
    """A row of the paper's Table 5 averaged over columns; over all of them as it is printed."""
    if len(titles) == len(TABLE5.columns):
        return TABLE5.printed_means[row.system]
    return fmean(TABLE5.score(row, title) for title in titles)


def _headers(name: str, mine: pd.DataFrame) -> dict[tuple[str, str], str]:
    """{(column, metric): what stands above it}, in order."""
    columns = averaged() if name == TABLE5.name else columns_of(name)
    words = {(one.title, one.metric): one.header(name) for one in columns}
    if name == TABLE5.name:
        return {(AVERAGE, "mean"): AVERAGE} | words
    if name != "table4":
        return words
    known = TABLES[name].columns
    main = [next(key for key in words if key[0] == title) for title in known if title != GLUE]
    tasks = mine.loc[mine["column"] == GLUE, "task"]
    count, every = len(tasks.iloc[0].split()) if len(tasks) else len(GLUE_TASKS), len(GLUE_TASKS)
    glue = {(GLUE, "mean"): GLUE if count == every else f"{GLUE} {count}/{every}"}
    return {key: words[key] for key in main} | glue | words


def label(name: str, system: str) -> str:
    """What a row of ours is called."""
    if name == TABLE5.name and system not in BASELINES:
        return f"this run: {TITLES.get(system, system)}"
    return "this run" if system == FULL else TITLES.get(system, system)


def _paper_rows(
    name: str, mine: pd.DataFrame, headers: dict[tuple[str, str], str]
) -> Iterator[tuple[str, dict[str, float | None]]]:
    """The paper's rows by header; its model's last, with all that the GLUE server said of it."""
    scores: dict[str, float | None]
    if name == TABLE5.name:
        titles = common_titles(mine[mine["column"] != AVERAGE]) or list(TABLE5.columns)
        for row in (TABLE5.full, *TABLE5.variants.values()):
            values = (paper_average(row, titles), *row.scores)
            yield row.system, dict(zip(headers.values(), values, strict=True))
        return
    table = TABLES[name]
    first: dict[str, str] = {}
    for (title, _), header in headers.items():
        first.setdefault(title, header)
    for row in (*table.others, table.model):
        scores = {first[one]: score for one, score in zip(table.columns, row.scores, strict=True)}
        tasks = mine.loc[mine["column"] == GLUE, "task"]
        if first.get(GLUE, GLUE) != GLUE:  # over other tasks
            scores.pop(first[GLUE])
        if row is table.model:
            known = {header: GLUE_ROW[key] for key, header in headers.items() if key in GLUE_ROW}
            scores = {**known, **scores}
            if len(tasks):
                scores[first[GLUE]] = glue_of_paper(tasks.iloc[0].split())
        yield row.system, scores
