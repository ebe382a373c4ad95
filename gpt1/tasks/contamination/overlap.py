"""The table of contamination: for each task's splits how many examples share a run of words with
the corpus, and the worst of them.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from gpt1.tasks.contamination.index import Index

WORST = 5  # examples shown of a split
SHOWN_WORDS = 40


@dataclass(frozen=True)
class EvaluatedSplit:
    """One split of a task: its examples, each as the numbers of its texts; scored: the table of
    scores is about it.
    """

    task: str
    split: str
    scored: bool
    examples: Sequence[Sequence[int]]


@dataclass(frozen=True)
class SplitOverlap:
    """Counts of a split. long_enough: examples with a text of n words or more; share: of these."""

    task: str
    split: str
    scored: bool
    examples: int
    long_enough: int
    overlapping: int
    share: float
    runs: int
    runs_found: int


@dataclass(frozen=True)
class Worst:
    """An example that shares runs with the corpus: its number in the split from 0, its runs and
    those found, one of them, and its book.
    """

    task: str
    split: str
    example: int
    runs: int
    runs_found: int
    words: str
    book: str


def count(
    split: EvaluatedSplit, index: Index, found: Mapping[int, str]
) -> tuple[SplitOverlap, list[Worst]]:
    """The row of a split and its worst examples, by the share of their runs found; `found`: {run:
    book}. Of equal texts one is shown.
    """
    long_enough = overlapping = 0
    candidates: list[tuple[float, int, int, frozenset[int]]] = []
    runs_of_split: set[int] = set()
    for number, example in enumerate(split.examples):
        every = frozenset[int]().union(*(index.of_texts[text] for text in example))
        hits = every.intersection(found)
        runs_of_split |= every
        long_enough += bool(every)
        overlapping += bool(hits)
        if hits:
            candidates.append((-len(hits) / len(every), number, len(every), hits))
    worst: list[Worst] = []
    shown: set[frozenset[int]] = set()
    for _, number, of, hits in sorted(candidates, key=lambda one: one[:2]):
        if len(worst) < WORST and hits not in shown:
            shown.add(hits)
            first = min(hits)
            worst.append(
                Worst(
                    split.task, split.split, number, of, len(hits), index.words(first), found[first]
                )
            )
    row = SplitOverlap(
        split.task,
        split.split,
        split.scored,
        len(split.examples),
        long_enough,
        overlapping,
        overlapping / long_enough if long_enough else 0.0,
        len(runs_of_split),
        len(runs_of_split & found.keys()),
    )
    return row, worst


def markdown(
    rows: Sequence[SplitOverlap], worst: Sequence[Worst], n: int, corpus: str, words: int
) -> str:
    """The table as people read it, with what was compared and how."""
    lines = [
        f"# Contamination: {corpus} and the tasks",
        "",
        (
            f"Runs of {n} words that stand in the corpus ({corpus}: {words:,} words, held-out books"
            " among them) and in an example's text. Both are cleaned as for training and in lower"
            " case; a word holds a letter or a digit, punctuation and line breaks are left out; a"
            " run lies inside one text. An overlap says that the words were there to be read, not"
            " that a score is wrong."
        ),
        "",
        (
            f"| Task | split | examples | with {n} words or more in a text | of these overlapping |"
            " share |"
        ),
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.task} | {row.split}{' (scored)' if row.scored else ''} | {row.examples:,} |"
        f" {row.long_enough:,} | {row.overlapping:,} |"
        f" {f'{row.share:.2%}' if row.long_enough else '-'} |"
        for row in rows
    ]
    if worst:
        lines += [
            "",
            (
                f"The worst of each split, at most {WORST}: by the share of an example's runs that"
                " the corpus has; of examples with the same runs one is shown. Examples count"
                " from 0."
            ),
            "",
            "| Task | split | example | runs found | one of them | first found in |",
            "|---|---|---:|---:|---|---|",
        ]
        lines += [
            f"| {one.task} | {one.split} | {one.example} | {one.runs_found:,} of {one.runs:,} |"
            f" {_escaped(one.words)} | {_escaped(one.book)} |"
            for one in worst
        ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Words that no reader of Markdown takes for a mark of its own."""
    words = text.split(" ")
    shown = " ".join(words[:SHOWN_WORDS]) + (" …" if len(words) > SHOWN_WORDS else "")
    return "".join(
        f"\\{mark}" if mark in "\\`*_{}[]<>|#~" else mark for mark in shown if mark.isprintable()
    )


def as_csv(rows: Sequence[SplitOverlap], n: int, corpus: str) -> str:
    """The rows for a spreadsheet."""
    text = io.StringIO()
    table = csv.DictWriter(
        text, ["corpus", "ngram", *SplitOverlap.__dataclass_fields__], lineterminator="\n"
    )
    table.writeheader()
    table.writerows({"corpus": corpus, "ngram": n, **asdict(row)} for row in rows)
    return text.getvalue()
