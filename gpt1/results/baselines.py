"""What the networks are to beat, scored as they are on the same rows: the rows under ours in Tables
2 to 4, and on which columns they are higher.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gpt1.base.files import stage_folder
from gpt1.params.schema import Params
from gpt1.results.answers import BASELINES, baseline_answers
from gpt1.results.document import LEFT_OUT, NONE, number
from gpt1.results.formats import bracketed, ends, estimate_record, score_record
from gpt1.results.glue import GlueMean, glue_cells, glue_record, our_glue_mean
from gpt1.results.notes import CHANCE, marks
from gpt1.results.paper import GLUE
from gpt1.results.records import Record
from gpt1.results.scores import Cell, table_cells
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.tasks.table import TASKS

BASELINE = "baseline"  # the row of its records
TITLES = {
    "majority": "majority class",
    "tfidf": "TF-IDF + logistic regression",
    "word_vectors": "word vectors of the same books + logistic regression",
}
SYSTEMS = {  # in a sentence
    "majority": "A constant answer scores",
    "tfidf": "TF-IDF scores",
    "word_vectors": "Word vectors of the same books score",
}
BEATEN = "higher than the fine-tuned Transformer on"


class BaselineScores(NamedTuple):
    """A baseline's columns of a table, and in Table 4 its mean over GLUE's tasks."""

    cells: Sequence[Cell]
    glue: GlueMean | None


def baselines_there() -> bool:
    """Whether the stage has written anything: a run of an earlier version has not."""
    return stage_folder(BASELINES).is_dir()


def baseline_scores(params: Params, table: str) -> dict[str, BaselineScores]:
    """The systems of params.baselines in a table; none where the stage has not run. Raises
    UserError where answers are missing or broken.
    """
    found: dict[str, BaselineScores] = {}
    for system in params.baselines.systems if baselines_there() else ():
        read = partial(baseline_answers, system=system)
        cells = table_cells(params, table, read)
        glue = our_glue_mean(glue_cells(params, cells, read)) if table == "table4" else None
        found[system] = BaselineScores(cells, glue)
    return found


def baseline_rows(
    titles: Sequence[str], baselines: Mapping[str, BaselineScores]
) -> tuple[tuple[str, ...], ...]:
    """Of each baseline a row of scores with marks, and one of their intervals; by column."""
    rows: list[tuple[str, ...]] = []
    for system, scores in baselines.items():
        shown = {
            cell.title: (
                number(cell.measured.mean) + marks(cell.measured),
                bracketed(ends(cell.estimate, cell.metric, examples_alone=True)),
            )
            for cell in scores.cells
            if cell.first and cell.measured
        }
        if glue := scores.glue:
            title = GLUE if glue.complete else glue.part
            flag = CHANCE if glue.flagged else ""
            shown[title] = (
                number(glue.mean) + flag,
                bracketed(ends(glue.estimate, "mean", examples_alone=True)),
            )
        names = (TITLES[system], f"its {COVERAGE:.0%} interval over examples")
        columns = (shown.get(title, (NONE, NONE)) for title in titles)
        rows += zip(names, *columns, strict=True)
    return tuple(rows)


def baseline_records(params: Params, baselines: Mapping[str, BaselineScores]) -> list[Record]:
    """Every score of the baselines as one flat record."""
    records: list[Record] = []
    for system, scores in baselines.items():
        about = {
            "row": BASELINE,
            "system": system,
            "profile": params.profile,
            "corpus": params.clean.corpus_name,
        }
        records += [
            about
            | {"column": cell.title, "task": cell.task, "metric": cell.metric}
            | score_record(
                [cell.measured],
                cell.measured.scores,
                estimate_record(cell.estimate, cell.metric, examples_alone=True),
            )
            for cell in scores.cells
            if cell.measured
        ]
        records += [about | glue_record(scores.glue, examples_alone=True)] if scores.glue else []
    return records


def higher(records: Sequence[Record]) -> dict[str, tuple[list[str], int]]:
    """By baseline the columns in which its score is above ours, and how many columns both have; of
    records of Tables 2 to 4. A task's second metric and means over tasks do not count.
    """
    scores = {
        (one["row"], one["system"], one["column"]): one["score"]
        for one in records
        if one.get("score") is not None
        and (task := TASKS.get(one.get("task") or ""))
        and task.metric == one["metric"]
    }
    ours = {column: score for (row, _, column), score in scores.items() if row == "ours"}
    found: dict[str, tuple[list[str], int]] = {}
    for (row, system, column), score in scores.items():
        if row == BASELINE and column in ours:
            columns, both = found.get(system, ([], 0))
            found[system] = ([*columns, *([column] if score > ours[column] else [])], both + 1)
    return found


def higher_sentences(records: Sequence[Record]) -> list[str]:
    """A sentence for each baseline that is above ours in any column, the one with most first."""
    found = {system: one for system, one in higher(records).items() if one[0]}
    return [
        f"{SYSTEMS[system]} {BEATEN} {len(columns)} of {both}: {', '.join(columns)}."
        for system, (columns, both) in sorted(found.items(), key=lambda one: -len(one[1][0]))
    ]


def baseline_notes(
    params: Params, baselines: Mapping[str, BaselineScores], records: Sequence[Record]
) -> Iterator[str]:
    """Which baselines are above ours, and what they are; or why they are not there."""
    yield from higher_sentences(records)
    if baselines:
        cells = [cell for scores in baselines.values() for cell in scores.cells if cell.measured]
        ridge = "; ridge regression on STS-B" if any(cell.task == "stsb" for cell in cells) else ""
        yield (
            f"{', '.join(TITLES[system] for system in baselines)}: on the same rows as ours, with"
            f" intervals over examples alone, for there are no seeds{ridge}. Settings are those"
            " that score best on dev; where dev is scored, each half of its rows is answered by"
            " those that score best on the other half."
        )
    elif params.baselines.systems and not baselines_there():
        yield f"{LEFT_OUT}what to beat: {stage_folder(BASELINES)} is not there; gpt1 run baselines."
