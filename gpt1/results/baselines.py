"""What the networks are to beat, scored as they are on the same rows: the rows under ours in Tables
2 to 5, and on which columns they are higher.
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
from gpt1.results.statistics.estimates import COVERAGE, CrossedEstimate, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, less, repeated
from gpt1.tasks.table import TASKS

BASELINE = "baseline"  # the row of its records
LEAD = "ours less baseline"  # that of our score less its, on the same examples
TITLES = {
    "majority": "majority class",
    "tfidf": "TF-IDF + logistic regression",
}
SYSTEMS = {  # in a sentence
    "majority": "A constant answer scores",
    "tfidf": "TF-IDF scores",
}
BEATEN = "higher than the fine-tuned Transformer on"
BY_POINT = "by the point estimate alone"  # no interval of the difference says so


class Higher(NamedTuple):
    """The columns in which a baseline is above ours, by the interval of the difference or by the
    point estimate alone, and how many columns both have.
    """

    shown: list[str]
    by_point: list[str]
    both: int


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


def lead(ours: Sequence[JackknifeScores], baseline: Sequence[JackknifeScores]) -> CrossedEstimate:
    """Our mean over the seeds and tasks less a baseline's one score on each task, paired by
    clusters of examples.
    """
    return estimate(
        [
            less(one, repeated(other, one.by_seed.shape[-1]))
            for one, other in zip(ours, baseline, strict=True)
        ]
    )


def baseline_records(
    params: Params, ours: Sequence[Cell], baselines: Mapping[str, BaselineScores]
) -> list[Record]:
    """Every score of the baselines as one flat record, and ours less each."""
    scores = {(cell.title, cell.metric): cell.scores for cell in ours}
    records: list[Record] = []
    for system, found in baselines.items():
        about = {
            "row": BASELINE,
            "system": system,
            "profile": params.profile,
            "corpus": params.clean.corpus_name,
        }
        for cell in found.cells:
            if cell.measured is None or cell.scores is None:
                continue
            column = about | {"column": cell.title, "task": cell.task, "metric": cell.metric}
            interval = estimate_record(cell.estimate, cell.metric, examples_alone=True)
            records.append(column | score_record([cell.measured], cell.measured.scores, interval))
            if own := scores.get((cell.title, cell.metric)):
                records.append(column | {"row": LEAD} | estimate_record(lead([own], [cell.scores])))
        if found.glue:
            records.append(about | glue_record(found.glue, examples_alone=True))
    return records


def higher(records: Sequence[Record]) -> dict[str, Higher]:
    """By baseline where it is above ours, by records of Tables 2 to 4. A task's second metric and
    means over tasks do not count.
    """
    found: dict[str, Higher] = {}
    for one in records:
        task = TASKS.get(one.get("task") or "")
        if one["row"] == LEAD and task and task.metric == one["metric"]:
            shown, by_point, both = found.get(one["system"], Higher([], [], 0))
            if one["score"] < 0:
                (shown if is_shown(one) else by_point).append(one["column"])
            found[one["system"]] = Higher(shown, by_point, both + 1)
    return found


def is_shown(record: Record) -> bool:
    """Whether a baseline is above ours by the whole interval of the difference."""
    high = record.get("high")
    return high is not None and high < 0


def higher_sentences(records: Sequence[Record]) -> list[str]:
    """A sentence for each baseline that is above ours in any column, the one with most first."""
    found = {system: one for system, one in higher(records).items() if one.shown or one.by_point}
    told = []
    for system, (shown, by_point, both) in sorted(
        found.items(), key=lambda one: (-len(one[1].shown), -len(one[1].by_point))
    ):
        parts = [f"{len(shown)} of {both}: {', '.join(shown)}"] if shown else []
        of = "more" if shown else f"of {both}"
        if by_point:
            parts.append(f"{len(by_point)} {of} {BY_POINT}: {', '.join(by_point)}")
        told.append(f"{SYSTEMS[system]} {BEATEN} {'; on '.join(parts)}.")
    return told


def baseline_notes(
    params: Params, baselines: Mapping[str, BaselineScores], records: Sequence[Record]
) -> Iterator[str]:
    """Which baselines are above ours, and what they are; or why they are not there."""
    cells = [cell for scores in baselines.values() for cell in scores.cells if cell.measured]
    yield from higher_sentences(records)
    yield from what_baselines_are(params, list(baselines), any(one.task == "stsb" for one in cells))


def what_baselines_are(params: Params, systems: Sequence[str], ridge: bool) -> Iterator[str]:
    """How the systems were fitted, and whether one by `ridge` regression; or why none is there."""
    if systems:
        yield (
            f"{', '.join(TITLES[system] for system in systems)}: on the same rows as ours, with"
            " intervals over examples alone, for there are no seeds"
            f"{'; ridge regression on STS-B' if ridge else ''}. Settings are those"
            " that score best on dev; where dev is scored, each half of its rows is answered by"
            " those that score best on the other half."
        )
    elif params.baselines.systems and not baselines_there():
        yield f"{LEFT_OUT}what to beat: {stage_folder(BASELINES)} is not there; gpt1 run baselines."
