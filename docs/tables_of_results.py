"""The runs that ship with gpt1 as the README and the pages have them: `town` and `small`."""

import pandas as pd

import gpt1.results
from gpt1.base.files import read_json, stage_folder
from gpt1.results.answer import tasks_table
from gpt1.results.display import claims_table, markdown
from gpt1.results.runs import CLAIMS, RUN, SHIPPED

FACTS = ("Commit", "Predicted in", "Machine", "Time")


def reference_town() -> str:
    """The paper on top, then the shipped run of the made-up town and what it is to beat; a column
    a task; where it ran.
    """
    table = tasks_table(gpt1.results.load(f"{SHIPPED.name}/town")[0]).T
    known = facts("town")
    short = table.map(lambda score: score.partition(" ±")[0])
    return f"{markdown(short)}\n\n{known['Machine']}; {known['Time']}."


def reference_scores(run: str) -> str:
    """Where it ran, and every difference."""
    known = facts(run)
    lines = "\n".join(f"- {name}: {known[name]}" for name in FACTS if name in known)
    return f"{lines}\n\n{markdown(claims_table(claims(run)))}"


def claims(run: str) -> pd.DataFrame:
    """The claims of a run."""
    return pd.read_parquet(SHIPPED / run / stage_folder("report", "claims", CLAIMS))


def facts(run: str) -> dict[str, str]:
    """Machine, commit and time of a run."""
    return dict(read_json(SHIPPED / run / RUN)["facts"])
