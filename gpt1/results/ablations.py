"""Section 5 of the paper scored: Table 5, what fine-tuning scores without pre-training, without the
auxiliary objective, and with either LSTM; Figure 2 left, by the number of layers transferred.

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
from gpt1.results.paper import GLUE_TASKS, NOT_ON_DEV, TABLE5, PaperRow
from gpt1.results.scores import (
    Measured,
    answered,
    clustered,
    common_seeds,
    measured,
    on_seeds,
    whole_column,
)
from gpt1.results.statistics.estimates import CrossedEstimate, estimate
from gpt1.results.statistics.jackknife import JackknifeScores, less, mean_of_parts
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS, Column, Task

AVERAGE = "Avg"  # Table 5's first column
TITLES = {
    "embeddings_only": "Transformer, embeddings only (0 layers transferred)",
    "lstm_equal": "LSTM of equal size w/ aux LM",
}
COLUMNS = {AVERAGE: "mean", **TABLE5.columns}
AVERAGED = tuple(title for title, metric in TABLE5.columns.items() if (title, metric) != NOT_ON_DEV)


@dataclass(frozen=True, eq=False)
class SystemScore:
    """One system in one column: its score's parts (two for MNLI), its scores by seed in the order
    of `seeds`, and their mean with its variance.
    """

    parts: tuple[Measured, ...]
    seeds: tuple[int, ...]
    scores: JackknifeScores
    estimate: CrossedEstimate

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
    # FULL less the variant, by variant and column, on the seeds that both have.
    differences: Mapping[tuple[str, str], JackknifeScores]
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

    def average(self, system: str) -> CrossedEstimate | None:
        """A row's mean over the averaged columns, if it has them, on the seeds that all of these
        have; None without such.
        """
        there = [
            self.results[system, title]
            for title in self.averaged
            if (system, title) in self.results
        ]
        scores = common_on(there)
        return estimate(scores) if scores else None

    def mean_difference(
        self, variant: str, titles: Sequence[str], less_than: str = FULL
    ) -> CrossedEstimate | None:
        """The mean of `less_than` less the variant over those of the columns that have both, on the
        seeds that all of these have; None without such. The difference on the other columns with
        these seeds lends the variance between them.
        """
        pairs = {
            title: (self.results[less_than, title], self.results[variant, title])
            for title in TABLE5.columns
            if variant != less_than
            and (less_than, title) in self.results
            and (variant, title) in self.results
        }
        wanted = [title for title in titles if title in pairs]
        seeds = (
            common_seeds(one.seeds for title in wanted for one in pairs[title]) if wanted else ()
        )
        if not seeds:
            return None
        differences = {
            title: less(*(on_seeds(one.scores, one.seeds, seeds) for one in pair))
            for title, pair in pairs.items()
            if all(set(seeds) <= set(one.seeds) for one in pair)
        }
        tasks = [differences.pop(title) for title in wanted]
        return estimate(tasks, list(differences.values()))


def common_on(columns: Sequence[SystemScore]) -> list[JackknifeScores]:
    """Scores of columns on the seeds that all of these have; none where they share no seed."""
    seeds = common_seeds(one.seeds for one in columns) if columns else ()
    return [on_seeds(one.scores, one.seeds, seeds) for one in columns] if seeds else []


def paper_row(system: str) -> PaperRow | None:
    """The paper's row of a system; None for a variant that the paper does not have."""
    return TABLE5.full if system == FULL else TABLE5.variants.get(system)


def system_title(system: str) -> str:
    """A row's name: the paper's, or a variant's own."""
    row = paper_row(system)
    return row.system if row else TITLES.get(system, system)


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


def losses_of(table: AblationScores, variant: str) -> dict[str, CrossedEstimate | None]:
    """What the whole model has over a variant, by column."""
    mean = table.mean_difference(variant, table.averaged)
    return {AVERAGE: mean} | {
        title: table.mean_difference(variant, [title]) for title in TABLE5.columns
    }


def scores_of(table: AblationScores, system: str) -> dict[str, CrossedEstimate | None]:
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
    differences: dict[tuple[str, str], JackknifeScores] = {}
    absent: dict[tuple[str, str], str] = {}
    for title in TABLE5.columns:
        task, columns = columns_of(title)
        found = systems_of(params, task.name)
        for system in systems:
            if task.name not in params.tasks:
                absent[system, title] = f"the task {task.name} is not in params.yaml"
            elif system not in found:
                absent[system, title] = f"{task.name} is not in variants.{system}.tasks"
        if not found:
            continue
        column = scored(columns, TABLE5.columns[title], found, params.report.chance_standard_errors)
        for system, result in column.items():
            results[system, title] = result
            if system != FULL:
                differences[system, title] = difference(
                    column[FULL], result, f"{system}@{task.name}"
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
    columns: Sequence[Column],
    metric: str,
    systems: Mapping[str, Answers],
    chance_standard_errors: float,
) -> dict[str, SystemScore]:
    """Every system on the same rows: the mean of the columns' scores. Raises UserError where
    results are missing or broken.
    """
    found = {}
    for system, answers in systems.items():
        parts = [answered(answers, column) for column in columns]
        scores = mean_of_parts([clustered(part, metric) for part in parts])
        found[system] = SystemScore(
            tuple(measured(part, metric, chance_standard_errors) for part in parts),
            answers.seeds,
            scores,
            estimate([scores]),
        )
    return found


def difference(one: SystemScore, other: SystemScore, stage: str) -> JackknifeScores:
    """`one` less `other`, by their common seeds, on the same examples. Raises UserError naming the
    stage of `other` where they share no seed.
    """
    if seeds := common_seeds((one.seeds, other.seeds)):
        return less(*(on_seeds(each.scores, each.seeds, seeds) for each in (one, other)))
    raise UserError(
        f"{stage}: expected a seed of the ordinary fine-tuning"
        f" ({', '.join(map(str, one.seeds))}) among its seeds, found"
        f" {', '.join(map(str, other.seeds))}; give both a common seed in params.yaml and run"
        " dvc repro"
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
    """A task's scores by the number of layers transferred, ascending, on the same rows:
    MNLI's matched, all of RACE.

    The ordinary fine-tuning is there in any case. Raises UserError where results are missing or
    broken.
    """
    layers = sorted({*transferred_layers(params, task), params.model.layers})
    found = scored(
        (whole_column(task),),
        TASKS[task].metric,
        {str(count): transfer_answers(params, task, count) for count in layers},
        params.report.chance_standard_errors,
    )
    return {count: found[str(count)] for count in layers}
