"""The answer of a run on one screen."""

from typing import NamedTuple

import pandas as pd

from gpt1.base.files import stage_folder
from gpt1.results.agreement import agreement_with_shipped
from gpt1.results.claims import CONFIRMED, REFUTED, UNDECIDED
from gpt1.results.display import NONE, claims_table, number
from gpt1.results.paper import MODEL, TABLE5_ROWS
from gpt1.results.predictions import MADE_UP
from gpt1.results.provenance import facts
from gpt1.results.runs import CLAIMS, SCORES, Freshness, read_table
from gpt1.results.tables import FULL, TITLES, label, table_of

OTHERS = {"table2": ["SNLI", "SciTail"], "table3": ["Story Cloze", "RACE"]}  # not in Table 5
BESIDE = ("no_pretraining", "majority", "tfidf")


class Answer(NamedTuple):
    """The first screen of a run; fields without content are empty."""

    notice: str
    sentence: str
    agreement: str
    legend: str
    tasks: pd.DataFrame
    claims: pd.DataFrame


def answer(state: Freshness) -> Answer:
    """Summarise the reports that were made from the same inputs. Raises UserError."""
    paths = {path.parent.name: path for path in stage_folder("report").glob(f"table?/{SCORES}")}
    if (path := stage_folder("report", "claims", CLAIMS)).is_file():
        paths["claims"] = path
    tables = {name: read_table(paths[name]) for name in state.beside(sorted(paths))}
    notice = state.line(paths)
    if left_out := sorted(paths.keys() - tables.keys()):
        notice += f" (not shown here until then: {', '.join(left_out)})"
    claims = tables.pop("claims", None)
    if not tables:
        return Answer(notice, "", "", "", pd.DataFrame(), pd.DataFrame())
    scores, about = pd.concat(tables.values()), next(iter(tables.values())).attrs
    return Answer(
        notice,
        sentence(about.get("run", "A run"), facts().get("Time", ""), claims),
        "" if notice or claims is None else agreement_with_shipped(),
        legend(scores),
        tasks_table(scores),
        pd.DataFrame() if claims is None else primary_table(claims),
    )


def tasks_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per task: the paper (not beside made-up tasks), this run, the baselines."""
    rows = {}
    for name in ("table5", *OTHERS):
        table = table_of(scores, name)
        full = list(table.index).index(label(name, FULL))
        below = table.iloc[full + 1 : full + 2].filter(regex="^±", axis=0)
        for title in OTHERS.get(name, list(table.columns)):
            column = table[title]
            deviation = "".join(f" ±{number(value)}" for value in below[title].dropna())
            paper = TABLE5_ROWS[FULL] if name == "table5" else MODEL
            rows[title] = {
                "the paper": number(column[paper]) + " F1" * (title == "QQP acc"),
                "this run": number(column.iloc[full]) + deviation,
            } | {TITLES[system]: number(column.get(label(name, system))) for system in BESIDE}
    absent = ["the paper"] * (MADE_UP in {*scores["source"]})
    return pd.DataFrame.from_dict(rows, "index").drop(columns=absent)


def sentence(about: str, time: str, claims: pd.DataFrame | None) -> str:
    """Say what was run, how long it took, and what it shows."""
    text = about + (f", in {time}" if time else "") + "."
    if claims is None:
        return text
    row = claims_table(claims).iloc[0]
    if row["this run"] != NONE:
        value, ends = row["this run"].rpartition(" = ")[2], row["95 % interval"]
        beside = f", 95 % {ends}" if ends != NONE else ""
        text += (
            f" Pre-training brings {value} points on {row['tasks']} task"
            f"{'s' * (row['tasks'] != '1')}{beside} (the paper: {row['the paper']}, on its own data"
            " and size)."
        )
    verdicts = claims[claims["primary"]].drop_duplicates("claim")["verdict"]
    worded = verdicts.where(verdicts.isin([CONFIRMED, REFUTED, UNDECIDED]), "without a verdict")
    return (
        f"{text} Of three claims: "
        f"{', '.join(f'{n} {word}' for word, n in worded.value_counts().items())}."
    )


def legend(scores: pd.DataFrame) -> str:
    """Say what compares with the paper, and what the deviations are of."""
    full = scores[(scores["system"] == FULL) & (scores["metric"] != "mean")].dropna(subset="score")
    sentences = []
    if {*full["source"]} == {MADE_UP}:
        sentences.append("The tasks are made up: no score compares with the paper's.")
    if full["seed"].nunique() > 1:
        sentences.append("±: standard deviation over seeds.")
    return " ".join(sentences)


def primary_table(claims: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of the three claims."""
    table = claims_table(claims[claims["primary"]]).drop(columns="tasks")
    if claims["low"].isna().all():
        table = table.drop(columns=["95 % interval", "p"])
    return table.rename(columns={"p": "adjusted p"})
