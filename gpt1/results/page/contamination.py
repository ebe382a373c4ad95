"""Which texts of the tasks stand in the corpus, as the page shows what `contamination` counted."""

from collections.abc import Mapping
from typing import Any

from gpt1.results.page.cells import Cell, Sheet

SHOWN_WORDS = 30


def told(found: Mapping[str, Any]) -> str:
    """What was counted, in two sentences."""
    return (
        f"Runs of {found['ngram']} words that stand both in the corpus ({found['corpus']},"
        f" {found['corpus_words']:,} words, held-out books among them) and in a text of an example"
        " that is not trained on, both cleaned as for training. An overlap says that the words"
        " were there to be read, not that a score is wrong."
    )


def shares(found: Mapping[str, Any]) -> Sheet:
    """A split of a task a row, how many of its examples share a run with the corpus."""
    rows = tuple(
        (
            Cell(one["task"]),
            Cell(one["split"], "scored" if one["scored"] else ""),
            Cell(f"{one['examples']:,}"),
            Cell(f"{one['long_enough']:,}"),
            Cell(f"{one['overlapping']:,}"),
            Cell(
                f"{one['share']:.2%}" if one["long_enough"] else "-",
                tone="bad" if one["scored"] and one["overlapping"] else "",
            ),
        )
        for one in found["rows"]
    )
    return Sheet(
        "Examples that share a run of words with the corpus",
        (
            "task",
            "split",
            "examples",
            f"of {found['ngram']} words or more",
            "of these overlapping",
            "share",
        ),
        rows,
    )


def worst(found: Mapping[str, Any]) -> Sheet | None:
    """The examples that share most, with one of their runs; None where there are none."""
    rows = tuple(
        (
            Cell(one["task"]),
            Cell(one["split"]),
            Cell(f"{one['example']:,}"),
            Cell(f"{one['runs_found']:,} of {one['runs']:,}"),
            Cell(" ".join(str(one["words"]).split()[:SHOWN_WORDS])),
            Cell(one["book"]),
        )
        for one in found["worst"]
    )
    header = ("task", "split", "example", "runs found", "one of them", "first found in")
    return Sheet("The examples that share most, counted from 0", header, rows) if rows else None
