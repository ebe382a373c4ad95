"""Tables in the README and the pages of docs/ that are made from the code, each between two
markers. `python docs/made_tables.py` makes them anew; a test compares them with the code.
"""

import re
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path

import pandas as pd

import gpt1.results
from gpt1.base.files import read_json, stage_folder
from gpt1.estimate import OFFICIAL
from gpt1.results.answer import primary_table, tasks_table
from gpt1.results.display import NONE, claims_table, markdown
from gpt1.results.runs import CLAIMS, RUN, SHIPPED
from gpt1.sources.definitions import SOURCES, Source
from gpt1.tasks.definitions import DPRD, TASKS, Task

EVALUATED = {  # rows of dev and of a test set with labels, 0 for none, in the same releases
    "snli": (9_842, 9_824),
    "mnli": (19_647, 0),
    "qnli": (5_463, 0),
    "rte": (277, 0),
    "scitail": (1_304, 2_126),
    "race": (4_887, 4_934),
    "story_cloze": (374, 1_871),
    "mrpc": (408, 1_725),
    "qqp": (40_430, 0),
    "stsb": (1_500, 1_379),
    "sst2": (872, 0),
    "cola": (1_043, 0),
}


def tasks() -> str:
    """Return a table of all tasks, then a section on each: its files and how to get them."""
    head = (
        "| task | input | metric | in Table | rows to train on | dev | labelled test"
        " |\n|---|---|---|---|---:|---:|---:|"
    )
    return "\n".join([head, *map(_line, TASKS.values()), "", *map(_section, TASKS.values())])


def sources() -> str:
    """Return a section on each source that is no task."""
    return "\n".join(_source(source, source.name) for source in [*SOURCES.values(), DPRD.source])


def _line(task: Task) -> str:
    rows = (OFFICIAL.get(task.name, (0,))[0], *EVALUATED.get(task.name, (0, 0)))
    sizes = [f"{number:,}" if number else "-" for number in rows]
    metric = task.metric + (f" (and {task.second_metric})" if task.second_metric else "")
    table = ", ".join(dict.fromkeys(column.table.removeprefix("table") for column in task.columns))
    return (
        f"| [{task.title}](#{task.title.lower().replace(' ', '-')}) | {task.kind.replace('_', ' ')} | {metric} |"
        f" {table} | {' | '.join(sizes)} |"
    )


def _section(task: Task) -> str:
    """Return the section of a task: its source and its answers, with an export's integers."""
    answers = [f"`{name}`" for name in task.labels]
    if len(task.export_labels) == len(answers):
        answers = [f"{n} {name}" for n, name in enumerate(answers)]
    if task.target == "score":
        answers = ["a score from 0 to 5, learned as shares of six classes"]
    return f"{_source(task.source, task.title)}- Answers: {', '.join(answers)}.\n"


def _source(source: Source, title: str) -> str:
    forms = []
    for layout in source.layouts:
        if not layout.exported:
            more = f"; perhaps {_files(source, layout.optional)}" if layout.optional else ""
            forms.append(_files(source, layout.required) + more)
    if source.every:
        forms.append(f"{', '.join(f'`{every}`' for every in source.every)}, in any sub-folders")
    if any(layout.exported for layout in source.layouts):
        forms.append("an export")
    folders = ", ".join(f"`{name}`" for name in source.folders)
    origin = "; ".join(filter(None, (source.origin, source.how_to_get)))
    linked = re.sub(r"http[^\s(),;]+", r"<\g<0>>", origin)
    return (
        f"### {title}\n\n- Files: {'; **or** '.join(forms)}.\n- Folders"
        f" that `--data` finds: {folders}.\n- From: {linked}.\n- Licence:"
        f" {source.licence}.\n"
    )


def _files(source: Source, names: tuple[str, ...]) -> str:
    return ", ".join(f"`{source.official(name)}`" for name in names)


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
