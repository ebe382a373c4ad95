"""Tables in the README and the pages of docs/ that are made from the code, each between two
markers. `python docs/made_tables.py` makes them anew; a test compares them with the code.
"""

import re
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path

import pandas as pd
from tables_of_tasks import sources, tasks

import gpt1.results
from gpt1.base.files import read_json, stage_folder
from gpt1.results.answer import primary_table, tasks_table
from gpt1.results.display import NONE, claims_table, markdown
from gpt1.results.runs import CLAIMS, RUN, SHIPPED


def reference_tasks(run: str) -> str:
    """Return the paper's scores, a shipped run's and its baselines', and where it ran; a column per
    task.
    """
    table = tasks_table(gpt1.results.load(f"{SHIPPED.name}/{run}")[0])
    short = table[table["this run"] != NONE].T.map(lambda score: score.partition(" ±")[0])
    return with_machine(short, run)


def reference_scores(run: str) -> str:
    """Return where a run ran, and every difference."""
    lines = "\n".join(f"- {name}: {fact}" for name, fact in facts(run).items())
    return f"{lines}\n\n{markdown(claims_table(claims(run)))}"


def reference_claims(run: str) -> str:
    """Return the differences of the three claims, beside the paper's, and where the run ran."""
    table = primary_table(claims(run))[
        ["the paper", "this run", "95 % interval", "adjusted p", "verdict"]
    ]
    return with_machine(table, run)


def with_machine(table: pd.DataFrame, run: str) -> str:
    """Return a table as markdown, and where and how long the run ran."""
    known = facts(run)
    return f"{markdown(table)}\n\n{known['Machine']}; {known['Time']}."


def claims(run: str) -> pd.DataFrame:
    """Return the claims of a run, a row per comparison."""
    return pd.read_parquet(SHIPPED / run / stage_folder("report", "claims", CLAIMS))


def facts(run: str) -> dict[str, str]:
    """Return machine, commit and time of a run."""
    return dict(read_json(SHIPPED / run / RUN)["facts"])


PAGES = Path(__file__).resolve().parent
RENEW = "python docs/made_tables.py"
MADE: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "sources": sources,
    "reference_town": partial(reference_claims, "town"),
    "reference_small": partial(reference_tasks, "small"),
    "scores_town": partial(reference_scores, "town"),
    "scores_small": partial(reference_scores, "small"),
}
PLACE = re.compile(
    r"(?P<head><!-- made: (?P<name>\w+)[^\n]*-->\n)(?P<table>.*?)(?P<end>\n<!-- end of (?P=name)"
    r" -->)",
    re.DOTALL,
)


def renewed(text: str) -> str:
    """Return a page with its tables made anew."""
    with chdir(PAGES.parent):
        return PLACE.sub(
            lambda place: f"{place['head']}\n{MADE[place['name']]().strip()}\n{place['end']}", text
        )


def tables(text: str) -> dict[str, str]:
    """Return the tables of a page by their names."""
    return {place["name"]: place["table"].strip() for place in PLACE.finditer(text)}


if __name__ == "__main__":
    for page in (PAGES.parent / "README.md", *sorted(PAGES.glob("*.md"))):
        before = page.read_text(encoding="utf-8")
        if (after := renewed(before)) != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.relative_to(PAGES.parent)} is new")
