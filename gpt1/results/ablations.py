"""Section 5 of the paper scored: Table 5, what fine-tuning scores without pre-training, without the
auxiliary objective, and with an LSTM; Figure 2 left, by the number of layers transferred.

The same rows and weights count as in Tables 2 to 4. MNLI of Table 5 is the mean of matched and
mismatched, as the paper's 81.8 is.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpt1.base.errors import UserError
from gpt1.params.recipes import is_ablated, transferred_layers
from gpt1.params.schema import Params
from gpt1.results.answers import FULL, Answers, ablation_answers, read_answers, transfer_answers
from gpt1.results.bootstrap import (
    Estimate,
    Resample,
    ScoredRows,
    less,
    mean_of,
    over_seeds,
    resample,
    within_range,
)
from gpt1.results.paper import GLUE_TASKS, NOT_ON_DEV, TABLE5, PaperRow
from gpt1.results.scores import Answered, Measured, answered, measured, whole_column
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS, Column, Task

AVERAGE = "Avg"  # Table 5's first column
COLUMNS = {AVERAGE: "mean", **TABLE5.columns}
AVERAGED = tuple(title for title, metric in TABLE5.columns.items() if (title, metric) != NOT_ON_DEV)


@dataclass(frozen=True, eq=False)
class SystemScore:
    """One system in one column: its score's parts (two for MNLI), its scores by seed, and their
    mean with its interval.
    """

    parts: tuple[Measured, ...]
    sample: Resample
    estimate: Estimate

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the seeds; None for one seed."""
        return (
            statistics.stdev(self.sample.scores.values()) if len(self.sample.scores) > 1 else None
        )

    @property
    def examples(self) -> int:
        """Rows that the score is over."""
        return sum(part.examples for part in self.parts)


@dataclass(frozen=True, eq=False)
class AblationScores:
    """Our Table 5. A result, or a difference from the whole model, is absent where the task or the
    run is not in params.yaml.
    """

    systems: tuple[str, ...]  # FULL and the variants of params.yaml
    results: Mapping[tuple[str, str], SystemScore]  # by system and column
    differences: Mapping[tuple[str, str], Estimate]  # FULL less the variant, by variant and column
    absent: Mapping[tuple[str, str], str]  # why, by system and column

    @property
    def averaged(self) -> tuple[str, ...]:
        """The columns of the average: those of AVERAGED that every row with any result has."""
        rows = [
            system
            for system in self.systems
            if any((system, title) in self.results for title in TABLE5.columns)
        ]
        return tuple(
            title
            for title in AVERAGED
            if rows and all((system, title) in self.results for system in rows)
        )

    def average(self, system: str) -> Estimate | None:
        """A row's mean over the averaged columns, if it has them."""
        there = [
            self.results[system, title].estimate
            for title in self.averaged
            if (system, title) in self.results
        ]
        return mean_of(there) if there else None

    def mean_difference(self, variant: str, titles: Sequence[str]) -> Estimate | None:
        """The mean over those of the columns that have a difference; None where none has."""
        there = [
            self.differences[variant, title]
            for title in titles
            if (variant, title) in self.differences
        ]
        return mean_of(there) if there else None


def paper_row(system: str) -> PaperRow | None:
    """The paper's row of a system; None for a variant that the paper does not have."""
    return TABLE5.full if system == FULL else TABLE5.variants.get(system)


def system_title(system: str) -> str:
    """A row's name: the paper's, or a variant's own."""
    row = paper_row(system)
    return row.system if row else system


def paper_average(row: PaperRow, titles: Sequence[str]) -> float:
    """A row of the paper averaged over columns; over all of them as it is printed. Raises
    StatisticsError for no column.
    """
    if len(titles) == len(TABLE5.columns):
        return TABLE5.printed_means[row.system]
    return statistics.fmean(TABLE5.score(row, title) for title in titles)


def paper_scores(row: PaperRow, table: AblationScores) -> dict[str, float | None]:
    """A row of the paper by column; its average is over the columns of ours, None without any."""
    average = paper_average(row, table.averaged) if table.averaged else None
    return {AVERAGE: average} | {title: TABLE5.score(row, title) for title in TABLE5.columns}


def losses_of(table: AblationScores, variant: str) -> dict[str, Estimate | None]:
    """What the whole model has over a variant, by column."""
    mean = table.mean_difference(variant, table.averaged)
    there = {title: table.differences.get((variant, title)) for title in TABLE5.columns}
    return {AVERAGE: mean} | there


def scores_of(table: AblationScores, system: str) -> dict[str, Estimate | None]:
    """A system's scores by column."""
    there = {title: table.results.get((system, title)) for title in TABLE5.columns}
    scores = {title: result.estimate if result else None for title, result in there.items()}
    return {AVERAGE: table.average(system)} | scores


def columns_of(title: str) -> tuple[Task, tuple[Column, ...]]:
    """The task of a column of Table 5 and the columns of Tables 2 and 4 whose mean it is: two for
    MNLI, one for the others.
    """
    titles = {name for name, metric in GLUE_TASKS[title] if metric == TABLE5.columns[title]}
    return next(
        (task, found)
        for task in TASKS.values()
        if (found := tuple(column for column in task.columns if column.title in titles))
    )


def tasks_there(params: Params) -> list[str]:
    """The tasks of Table 5 that are in params.yaml, in the table's order."""
    return [task.name for task, _ in map(columns_of, TABLE5.columns) if task.name in params.tasks]


def ablation(params: Params) -> AblationScores:
    """Score every row of Table 5. Raises UserError where a result that params.yaml names is missing
    or broken.
    """
    systems = (FULL, *params.variants)
    results: dict[tuple[str, str], SystemScore] = {}
    differences: dict[tuple[str, str], Estimate] = {}
    absent: dict[tuple[str, str], str] = {}
    for title in TABLE5.columns:
        task, columns = columns_of(title)
        found = systems_of(params, task.name)
        for system in systems:
            if task.name not in params.tasks:
                absent[system, title] = f"the task {task.name} is not in params.yaml"
            elif system not in found:
                absent[system, title] = f"ablate has no row {system}-{task.name} in params.yaml"
        if not found:
            continue
        column = scored(
            task.name, columns, TABLE5.columns[title], found, params.report.chance_standard_errors
        )
        for system, result in column.items():
            results[system, title] = result
            if system != FULL:
                differences[system, title] = difference(
                    task.name, column[FULL].sample, result.sample, f"ablate@{system}-{task.name}"
                )
    return AblationScores(systems, results, differences, absent)


def systems_of(params: Params, task: str) -> dict[str, Answers]:
    """The answers of every row of Table 5 that the run has of a task, the whole model's first.
    Raises UserError where they are missing or broken.
    """
    if task not in params.tasks:
        return {}
    rows = [variant for variant in params.variants if is_ablated(params, variant, task)]
    return {FULL: read_answers(params, task)} | {
        variant: ablation_answers(params, variant, task) for variant in rows
    }


def scored(
    task: str,
    columns: Sequence[Column],
    metric: str,
    systems: Mapping[str, Answers],
    chance_standard_errors: float,
) -> dict[str, SystemScore]:
    """Every system on the same rows: the mean of the columns' scores. Raises UserError where
    results are missing or broken.
    """
    rows = {
        system: [answered(answers, column) for column in columns]
        for system, answers in systems.items()
    }
    samples = resample(
        task,
        [
            _part(metric, {system: parts[place] for system, parts in rows.items()})
            for place in range(len(columns))
        ],
    )
    return {
        system: SystemScore(
            tuple(measured(part, metric, chance_standard_errors) for part in parts),
            samples[system],
            within_range(over_seeds(task, samples[system]), metric),
        )
        for system, parts in rows.items()
    }


def difference(task: str, one: Resample, other: Resample, stage: str) -> Estimate:
    """`one` less `other`, the mean over their common seeds. Raises UserError naming the stage of
    `other` where they share none.
    """
    try:
        return over_seeds(task, less(one, other))
    except ValueError:
        raise UserError(
            f"{stage}: expected a seed of the ordinary fine-tuning"
            f" ({', '.join(map(str, one.scores))}) among its seeds, found"
            f" {', '.join(map(str, other.scores))}; give both a common seed in params.yaml and run"
            " dvc repro"
        ) from None


def _part(metric: str, rows: Mapping[str, Answered]) -> ScoredRows:
    return ScoredRows(
        metric,
        next(iter(rows.values())).labels,
        {
            (system, seed): answer
            for system, part in rows.items()
            for seed, answer in part.given.items()
        },
    )


@dataclass(frozen=True)
class Transferred:
    """One task: its scores (x 100) by the number of layers transferred, in rising order, over the
    seeds of the transfer.
    """

    task: str
    title: str
    metric: str
    made_up: bool
    points: Mapping[int, SystemScore]

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


def by_layers(params: Params, task: str) -> dict[int, SystemScore]:
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
