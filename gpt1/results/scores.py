"""From labels and logits to the scores of a table's columns, with all that a reader needs to judge
them. Pure but for `score_column`.

Which number: test, by the weights chosen on dev, where test labels are public; else dev at the last
update, chosen on nothing.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpt1.params.schema import Params
from gpt1.results.answers import Answers, Array, read_answers
from gpt1.results.paper import (
    GLUE,
    GLUE_ROW,
    NOT_ON_DEV,
    QNLI_V1_TRAIN_ROWS,
    QNLI_V2_SCORE,
    TABLES,
)
from gpt1.results.statistics.estimates import CrossedEstimate, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, jackknife
from gpt1.sources.table import is_made_up
from gpt1.tasks.metrics import is_one_class, majority_score, predictions, score, standard_error
from gpt1.tasks.table import TASKS, Column, Task, scored_split

Read = Callable[[Params, str], Answers]  # of a task's answers
CHOSEN_ON_DEV, LAST_UPDATE = "best on dev", "last update"
CORRELATIONS = ("matthews", "pearson", "spearman")


@dataclass(frozen=True)
class Measured:
    """The scores of one metric over the seeds (x 100), and what they were measured on."""

    scores: Mapping[int, float]  # by seed
    split: str
    chosen: str  # which weights: CHOSEN_ON_DEV or LAST_UPDATE
    examples: int
    standard_error: float  # of the run with the median score
    majority: float  # score of an answer that looks at no input
    chance_limit: float  # a score up to here is chance level
    one_class: tuple[int, ...] = ()  # seeds that give every example the same answer
    selected: Mapping[int, float] = field(
        default_factory=dict
    )  # the best evaluation, where it was chosen on these very rows

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.scores.values())

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the seeds; None for one seed."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None

    @property
    def best(self) -> float:
        """The best seed's score."""
        return max(self.scores.values())

    @property
    def median(self) -> float:
        """The median over the seeds."""
        return statistics.median(self.scores.values())

    @property
    def at_chance(self) -> bool:
        """Whether the mean is no better than chance."""
        return self.mean <= self.chance_limit

    @property
    def flagged(self) -> tuple[int, ...]:
        """Seeds at chance level, or with one answer for everything."""
        return tuple(
            seed
            for seed, value in self.scores.items()
            if value <= self.chance_limit or seed in self.one_class
        )


@dataclass(frozen=True)
class Cell:
    """One column of a table: the paper's number and ours."""

    key: str
    title: str
    task: str
    metric: str
    published: float | None  # the paper's model's score in this column
    # The score that ours is compared with: another for data drawn anew since; None where nothing
    # compares, on made-up tasks and where dev and the paper's test differ too much.
    compared: float | None
    measured: Measured | None  # None: the task was left out
    first: bool = True  # False: a second metric of the column before, for details only
    release: str = ""  # of the task's files, where there is more than one
    lacking: str = ""  # why there is nothing to measure though the task is there
    scores: JackknifeScores | None = None  # by seed, in the order of `measured`
    # The mean over the seeds and its variance. No other column lends that of its seeds: columns
    # differ in it, and a column's interval must not depend on which others a run has.
    estimate: CrossedEstimate | None = None

    @property
    def difference(self) -> float | None:
        """Our mean less the score it is compared with."""
        return (
            None
            if self.measured is None or self.compared is None
            else self.measured.mean - self.compared
        )


def table_cells(params: Params, table: str, read: Read = read_answers) -> list[Cell]:
    """Every column of a table, in the paper's order; columns of tasks that the paper does not know
    follow. `read` says whose answers. Raises UserError.
    """
    known = {
        column.title: (task, column)
        for task in TASKS.values()
        for column in task.columns
        if column.table == table
    }
    paper = [title for title in TABLES[table].columns if title != GLUE]
    cells = []
    for title in (*paper, *(title for title in known if title not in paper)):
        cells += column_cells(params, *known[title], read)
    return cells


def whole_column(task: str) -> Column:
    """The column of the whole task, MNLI's matched rows and all of RACE: the one without suffix or
    subset.
    """
    columns = TASKS[task].columns
    return next(
        (column for column in columns if not column.suffix and column.subset is None), columns[0]
    )


def column_cells(
    params: Params, task: Task, column: Column, read: Read = read_answers
) -> list[Cell]:
    """A task's column: one cell for its metric and one for a second metric. Raises UserError where
    results are missing or broken.
    """
    answers = read(params, task.name) if task.name in params.tasks else None
    alone = sum(other.table == column.table for other in task.columns) == 1
    key = task.name if alone else column.title.lower().replace("-", "_").replace(" ", "_")
    lacking = lacking_subsets(answers.description, column) if answers else ""
    rows = answered(answers, column) if answers and not lacking else None
    cells = []
    for metric in (task.metric, task.second_metric):
        if metric is None:
            continue
        first = metric == task.metric
        published = TABLES[column.table].published(column.title) if first else None
        if published is None:  # WNLI is in no table, but in the paper's GLUE score
            published = GLUE_ROW.get((column.title, metric))
        compared = published
        if answers and column.title == "QNLI" and not is_qnli_v1(answers.description):
            compared = QNLI_V2_SCORE
        ours = measured(rows, metric, params.report.chance_standard_errors) if rows else None
        on_dev = ours is not None and ours.chosen == LAST_UPDATE
        if (on_dev and (column.title, metric) == NOT_ON_DEV) or (
            answers and is_made_up(params.sources[task.name].folder)
        ):
            compared = None
        scores = clustered(rows, metric) if rows else None
        cells.append(
            Cell(
                key if first else f"{key}_{metric}",
                column.title,
                task.name,
                metric,
                published,
                compared,
                ours,
                first,
                str(answers.description.get("release", "")) if answers else "",
                lacking,
                scores,
                estimate([scores]) if scores else None,
            )
        )
    return cells


def is_qnli_v1(description: Mapping[str, Any]) -> bool:
    """Whether a task.json tells of QNLI's first version: by its release, or (written before there
    were releases) its training rows.
    """
    release = description.get("release")
    return bool(
        release == "v1"
        if release
        else description["splits"]["train"].get("rows_read") == QNLI_V1_TRAIN_ROWS
    )


def scored_splits(
    columns: Sequence[Column], systems: Iterable[Answers]
) -> Iterator[tuple[Answers, list[str]]]:
    """Each system's answers with the splits that these columns score."""
    for answers in systems:
        splits = answers.description["splits"]
        yield (
            answers,
            [
                scored_split(column, splits)
                for column in columns
                if not lacking_subsets(answers.description, column)
            ],
        )


def lacking_subsets(description: Mapping[str, Any], column: Column) -> str:
    """Which of the subsets that a column scores the files do not have, in words; empty where they
    have all.
    """
    there = (
        description["splits"]
        .get(scored_split(column, description["splits"]), {})
        .get("subsets", {})
    )
    absent = [name for name, rows in there.items() if not rows and column.subset in (None, name)]
    return f"the files have no {' or '.join(absent)} questions" if absent else ""


@dataclass(frozen=True)
class Answered:
    """A column's rows: their labels and clusters [n], and by seed what was answered [n] by the
    weights that count.
    """

    split: str
    chosen: str  # which weights: CHOSEN_ON_DEV or LAST_UPDATE
    labels: Array
    clusters: Array  # numbers [n], equal for rows that belong together
    given: Mapping[int, Array]
    # By the weights chosen on these very rows; empty where those that count are chosen on others.
    selected: Mapping[int, Array]


def answered(answers: Answers, column: Column) -> Answered:
    """Read a column's labels and every seed's answers. Raises UserError where labels or logits are
    missing or broken.
    """
    split = scored_split(column, answers.description["splits"])
    on_test = split.startswith("test")
    labels, rows = answers.labels(split, column.subset)

    def read(weights: str) -> dict[int, Array]:
        return {
            seed: predictions(
                answers.logits(seed, split, weights)[rows], answers.description["target"]
            )
            for seed in answers.seeds
        }

    return Answered(
        split,
        CHOSEN_ON_DEV if on_test else LAST_UPDATE,
        labels,
        answers.clusters(split)[rows],
        read("best" if on_test else "last"),
        {} if on_test else read("best"),
    )


def measured(rows: Answered, metric: str, chance_standard_errors: float) -> Measured:
    """Score every seed's answers, and say what a score by chance would be."""
    labels = rows.labels
    scores = {seed: 100 * score(metric, labels, answer) for seed, answer in rows.given.items()}
    middle = statistics.median_high(scores.values())
    error = 100 * standard_error(
        metric, labels, next(rows.given[seed] for seed in scores if scores[seed] == middle)
    )
    majority = 100 * majority_score(metric, labels)
    return Measured(
        scores,
        rows.split,
        rows.chosen,
        len(labels),
        error,
        majority,
        chance_limit=majority + chance_standard_errors * error,
        one_class=tuple(seed for seed, answer in rows.given.items() if is_one_class(answer)),
        selected={
            seed: 100 * score(metric, labels, answer) for seed, answer in rows.selected.items()
        },
    )


def clustered(rows: Answered, metric: str) -> JackknifeScores:
    """Every seed's score, in their order, and the share of each cluster in its error."""
    return jackknife(metric, rows.labels, np.stack(list(rows.given.values())), rows.clusters)


def score_range(metric: str) -> tuple[float, float]:
    """What scores x 100 of a metric, or a mean over tasks, lie within."""
    return (-100.0 if metric in (*CORRELATIONS, "mean") else 0.0), 100.0


def common_seeds(of: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The seeds that all have, in the order of the first."""
    first, *others = of
    return tuple(seed for seed in first if all(seed in other for other in others))


def on_seeds(
    scores: JackknifeScores, seeds: Sequence[int], wanted: Sequence[int]
) -> JackknifeScores:
    """Of scores by `seeds` those by the seeds `wanted`, in this order. Raises ValueError for one
    that is not there.
    """
    places = [seeds.index(seed) for seed in wanted]
    return JackknifeScores(scores.by_seed[..., places], scores.shares[..., places, :])
