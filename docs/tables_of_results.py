"""The runs that ship with gpt1 as the README and the pages have them: `town` and `small`."""

import pandas as pd

import gpt1.results
from gpt1.base.files import read_json, stage_folder
from gpt1.results.answer import primary_table, tasks_table
from gpt1.results.display import NONE, claims_table, markdown
from gpt1.results.runs import CLAIMS, RUN, SHIPPED


def reference_tasks(run: str) -> str:
    """The paper on top, then a run that ships and what it is to beat; a column a task that it has;
    where it ran.
    """
    table = tasks_table(gpt1.results.load(f"{SHIPPED.name}/{run}")[0])
    short = table[table["this run"] != NONE].T.map(lambda score: score.partition(" ±")[0])
    known = facts(run)
    return f"{markdown(short)}\n\n{known['Machine']}; {known['Time']}."


def reference_scores(run: str) -> str:
    """Where it ran, and every difference."""
    lines = "\n".join(f"- {name}: {fact}" for name, fact in facts(run).items())
    return f"{lines}\n\n{markdown(claims_table(claims(run)))}"


def reference_claims(run: str) -> str:
    """The differences that the three claims are about, beside the paper's; where it ran."""
    table = primary_table(claims(run))[["the paper", "this run", "95 % interval", "verdict"]]
    known = facts(run)
    return f"{markdown(table)}\n\n{known['Machine']}; {known['Time']}."


def claims(run: str) -> pd.DataFrame:
    """The claims of a run, a row a comparison."""
    return pd.read_parquet(SHIPPED / run / stage_folder("report", "claims", CLAIMS))


def facts(run: str) -> dict[str, str]:
    """Machine, commit and time of a run."""
    return dict(read_json(SHIPPED / run / RUN)["facts"])
