"""Scores by the number of layers transferred (paper, section 5, Figure 2 left): 0 is the embeddings
only, all layers the usual way.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpt1.params.recipes import transferred_layers
from gpt1.params.schema import Params
from gpt1.results.ablations import Result, scored
from gpt1.results.answers import transfer_answers
from gpt1.results.scores import Measured, whole_column
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS


@dataclass(frozen=True)
class Transferred:
    """One task: its scores (x 100) by the number of layers transferred, in rising order, over the
    seeds of the transfer.
    """

    task: str
    title: str
    metric: str
    made_up: bool
    points: Mapping[int, Result]

    @property
    def measured(self) -> Measured:
        """What the scores of all numbers of layers have in common: split, rows, majority."""
        return next(iter(self.points.values())).parts[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that every number of layers has."""
        return tuple(self.measured.scores)


def transferred(params: Params) -> list[Transferred]:
    """Every task of params.transfer. Raises UserError where results are missing or broken."""
    return [
        Transferred(
            task,
            whole_column(task).title,
            TASKS[task].metric,
            is_made_up(params.sources[task].folder),
            by_layers(params, task),
        )
        for task in params.transfer
    ]


def by_layers(params: Params, task: str) -> dict[int, Result]:
    """A task's scores by the number of layers transferred, ascending, on the same drawn rows:
    MNLI's matched, all of RACE.

    The ordinary fine-tuning is there in any case. Raises UserError where results are missing or
    broken.
    """
    layers = sorted({*transferred_layers(params, task), params.model.layers})
    found = scored(
        task,
        (whole_column(task),),
        TASKS[task].metric,
        {str(count): transfer_answers(params, task, count) for count in layers},
        params.report.chance_standard_errors,
    )
    return {count: found[str(count)] for count in layers}
