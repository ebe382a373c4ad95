"""The GLUE score: the mean over its nine tasks, or over those of them that are there."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpt1.params.schema import Params
from gpt1.results.answers import read_answers
from gpt1.results.formats import estimate_record
from gpt1.results.paper import GLUE, GLUE_ROW, GLUE_TASKS, GLUE_TASKS_ON_DEV
from gpt1.results.records import Record
from gpt1.results.scores import Cell, Read, column_cells, common_seeds, on_seeds
from gpt1.results.statistics.estimates import CrossedEstimate, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, mean_of_metrics, mean_of_parts
from gpt1.tasks.table import TASKS


@dataclass(frozen=True)
class GlueMean:
    """The mean over GLUE's tasks that are there, on the seeds that all of them have."""

    tasks: tuple[str, ...]
    mean: float
    published: float  # the paper's model on the same tasks
    compares: bool
    flagged: tuple[str, ...]  # columns with a flagged seed in the mean
    estimate: CrossedEstimate | None  # None where the tasks share no seed

    @property
    def difference(self) -> float | None:
        """Our mean less the paper's, where all of it compares."""
        return self.mean - self.published if self.compares else None

    @property
    def part(self) -> str:
        """How its column is called where it is not the GLUE score."""
        return f"GLUE {len(self.tasks)} of {len(GLUE_TASKS)}"

    @property
    def complete(self) -> bool:
        """Whether all nine tasks are there, so that this is the GLUE score."""
        return len(self.tasks) == len(GLUE_TASKS)


def glue_record(glue: GlueMean, examples_alone: bool = False) -> Record:
    """The mean with its interval by name, and of which tasks it is."""
    rest = f"mean over the {len(glue.tasks)} tasks that are there"
    return (
        {
            "column": GLUE if glue.complete else rest,
            "task": " ".join(glue.tasks),
            "metric": "mean",
        }
        | estimate_record(glue.estimate, "mean", examples_alone)
        | {"score": glue.mean}
    )


def glue_cells(params: Params, there: Sequence[Cell] = (), read: Read = read_answers) -> list[Cell]:
    """The columns of all tasks whose scores make the GLUE mean, some of them `there` already;
    `read` says whose answers. Raises UserError.
    """
    wanted = {title for metrics in GLUE_TASKS.values() for title, _ in metrics}
    known = {cell.title for cell in there}
    return [cell for cell in there if cell.title in wanted] + [
        cell
        for task in TASKS.values()
        for column in task.columns
        if column.title in wanted - known
        for cell in column_cells(params, task, column, read)
    ]


def glue_mean(
    scores: Mapping[tuple[str, str], float],
    metrics_of: Mapping[str, Sequence[tuple[str, str]]] = GLUE_TASKS,
) -> tuple[tuple[str, ...], float]:
    """GLUE's tasks that are wholly there and their mean: two metrics of a task are averaged first
    (Wang et al. 2018).

    `scores` are by column and metric. Raises ValueError where no task is there.
    """
    tasks = tuple(
        task for task, metrics in metrics_of.items() if all(metric in scores for metric in metrics)
    )
    if not tasks:
        raise ValueError("expected at least one of GLUE's tasks, found none")
    return tasks, statistics.fmean(
        statistics.fmean(scores[metric] for metric in metrics_of[task]) for task in tasks
    )


def our_glue_mean(cells: list[Cell]) -> GlueMean | None:
    """The mean of our means over GLUE's tasks that are there, of each the metrics that compare on
    dev; None where none is there.
    """
    of = GLUE_TASKS_ON_DEV
    cell_of = {(cell.title, cell.metric): cell for cell in cells if cell.measured}
    there = {name: cell.measured for name, cell in cell_of.items() if cell.measured}
    try:
        tasks, mean = glue_mean({name: measured.mean for name, measured in there.items()}, of)
    except ValueError:
        return None
    names = [name for task in tasks for name in of[task]]
    compared = {name: cell_of[name].compared for name in names}
    _, published = glue_mean(
        {name: GLUE_ROW[name] if (value := compared[name]) is None else value for name in names}, of
    )
    flagged = tuple(dict.fromkeys(title for title, metric in names if there[title, metric].flagged))
    found = None
    if seeds := common_seeds(tuple(there[name].scores) for name in names):
        found = estimate([_on_seeds(cell_of, of[task], seeds) for task in tasks])
        mean = float(found.value)
    return GlueMean(tasks, mean, published, None not in compared.values(), flagged, found)


def _on_seeds(
    cell_of: Mapping[tuple[str, str], Cell],
    names: Sequence[tuple[str, str]],
    seeds: Sequence[int],
) -> JackknifeScores:
    """A task's one score: metrics of a column are of the same examples, columns of their own."""
    by_column: dict[str, list[JackknifeScores]] = {}
    for name in names:
        cell = cell_of[name]
        assert cell.scores is not None
        assert cell.measured is not None
        scores = on_seeds(cell.scores, tuple(cell.measured.scores), seeds)
        by_column.setdefault(cell.title, []).append(scores)
    return mean_of_parts([mean_of_metrics(metrics) for metrics in by_column.values()])
