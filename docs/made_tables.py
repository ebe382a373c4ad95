"""Tables in the README and the pages of docs/ that are made from the code, each between two markers. `python
docs/made_tables.py` makes them anew.

A page so reads the same on disk, in the repository and built. A test compares what stands there
with what the code says now.
"""

import re
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path

from tables_of_results import reference_claims, reference_scores, reference_tasks
from tables_of_tasks import downloads, sources, tasks

PAGES = Path(__file__).resolve().parent
RENEW = "python docs/made_tables.py"
MADE: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "sources": sources,
    "downloads": downloads,
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
    """A page with each of its tables as the code has it now."""
    with chdir(PAGES.parent):
        return PLACE.sub(
            lambda place: f"{place['head']}\n{MADE[place['name']]().strip()}\n{place['end']}", text
        )


def tables(text: str) -> dict[str, str]:
    """The tables of a page by their names."""
    return {place["name"]: place["table"].strip() for place in PLACE.finditer(text)}


if __name__ == "__main__":
    for page in (PAGES.parent / "README.md", *sorted(PAGES.glob("*.md"))):
        before = page.read_text(encoding="utf-8")
        if (after := renewed(before)) != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.relative_to(PAGES.parent)} is new")
