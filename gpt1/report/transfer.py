"""Scores by the number of layers transferred (paper, section 5, Figure 2 left): 0 is the embeddings only, all layers the usual way."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpt1.config import Params
from gpt1.report.answers import transfer_answers
from gpt1.report.scores import Measured, measure
from gpt1.tasks.table import TASKS, Column


@dataclass(frozen=True)
class Transferred:
    """One task: its scores (x 100) by the number of layers transferred, in rising order, over the seeds of the transfer."""

    task: str
    title: str
    metric: str
    made_up: bool
    points: Mapping[int, Measured]


def standard_error(measured: Measured) -> float:
    """Standard error of a mean over seeds, x 100: the examples' sampling error, which all seeds share, and the spread of the seeds.

    sqrt(e^2 + s^2 / n), with e one run's error, s the sample deviation over n seeds; one seed shows no spread, so e alone.
    """
    deviation = measured.deviation or 0.0
    return math.hypot(measured.standard_error, deviation / math.sqrt(len(measured.scores)))


def transferred(params: Params) -> list[Transferred]:
    """Every task of params.transfer. Raises UserError where results are missing or broken."""
    return [_read(params, task) for task in params.transfer]


def _read(params: Params, task: str) -> Transferred:
    layers = sorted({*params.transferred_layers(task), params.model.layers})  # the ordinary fine-tuning is there in any case
    seeds, column = params.transfer_recipe(task).seeds, whole_column(task)
    points = {count: measure(replace(transfer_answers(params, task, count), seeds=seeds), column, TASKS[task].metric,
                             params.report.chance_standard_errors) for count in layers}
    return Transferred(task, column.title, TASKS[task].metric, params.sources[task].made_up, points)


def whole_column(task: str) -> Column:
    """The column of the whole task, MNLI's matched rows and all of RACE: the one without suffix or subset."""
    columns = TASKS[task].columns
    return next((column for column in columns if not column.suffix and column.subset is None), columns[0])
