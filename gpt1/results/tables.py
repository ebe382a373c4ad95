"""Tables 2 to 4, ours beside the paper's: as words, and as records, one flat row a number."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.answers import baseline_answers, read_answers
from gpt1.results.baselines import (
    BaselineScores,
    baseline_notes,
    baseline_records,
    baseline_rows,
    baseline_scores,
)
from gpt1.results.captions import caption_facts
from gpt1.results.document import NONE, Grid, number, signed, spread
from gpt1.results.formats import (
    ReportContent,
    TablePage,
    bracketed,
    ends,
    estimate_record,
    latex,
    rounded,
    score_record,
)
from gpt1.results.glue import GlueMean, glue_cells, glue_record, our_glue_mean
from gpt1.results.notes import CHANCE, COMPARED, METRIC_WORDS, legend, marks, table_notes
from gpt1.results.paper import GLUE, Table
from gpt1.results.records import Record
from gpt1.results.score_pictures import draw_cells
from gpt1.results.scores import Cell, scored_splits, table_cells
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.tasks.table import TASKS

DETAILS = (
    "column",
    "metric",
    "split",
    "weights",
    "examples",
    "seeds",
    "median",
    "one SE",
    "majority",
    "best evaluation",
    "ours less the paper's",
)
CSV_COLUMNS = (
    "table row system source column task metric score low high sd best median seeds scores"
    " difference compared_with split weights examples standard_error majority at_chance"
    " flagged_seeds one_class_seeds best_evaluation reason profile corpus caption"
)

NO_BASELINES: Mapping[str, BaselineScores] = {}


def table_report(params: Params, table: Table) -> ReportContent:
    """Table 2, 3 or 4, every task scored. Raises UserError where a result is missing or broken."""
    cells = table_cells(params, table.name)
    glue = our_glue_mean(glue_cells(params, cells)) if table.name == "table4" else None
    baselines = baseline_scores(params, table.name)
    page = table_page(params, table, cells, glue, baselines)
    records = table_records(params, table, cells, glue, page.caption, baselines)
    scored = (
        scored
        for task in tasks_of(params, table)
        for scored in scored_splits(
            [column for column in TASKS[task].columns if column.table == table.name],
            [
                read_answers(params, task),
                *(baseline_answers(params, task, system) for system in baselines),
            ],
        )
    )
    return ReportContent(
        table.name,
        page.document,
        table_metrics(cells, glue),
        {table.name: (CSV_COLUMNS, records)},
        {table.name: lambda: draw_cells(f"{table.title} ({params.profile})", cells)},
        records,
        scored,
        latex(page),
        for_print=False,
    )


def table_page(
    params: Params,
    table: Table,
    cells: Sequence[Cell],
    glue: GlueMean | None,
    baselines: Mapping[str, BaselineScores] = NO_BASELINES,
) -> TablePage:
    """Lay out a table. `glue` is for Table 4, None elsewhere or where no GLUE task is there. Raises
    UserError (see `caption_facts`).
    """
    first = {cell.title: cell for cell in cells if cell.first}
    part = glue.part if glue and not glue.complete else ""
    further = [title for title in first if title not in table.columns]
    titles = (*table.columns, *filter(None, [part]), *further)

    def head(title: str) -> str:
        named = table.name == "table4" and title in first
        return f"{title} ({METRIC_WORDS[first[title].metric]})" if named else title

    def paper_row(system: str, scores: Sequence[float | None], **more: float) -> tuple[str, ...]:
        given = dict(zip(table.columns, scores, strict=True)) | more
        there = [given.get(title) for title in titles]
        return (system, *(NONE if score is None else number(score) for score in there))

    more = {part: glue.published} if glue and part else {}
    our_rows = _our_rows(params, titles, first, glue) + baseline_rows(titles, baselines)
    scores = table_records(params, table, cells, glue, "", baselines)
    details = [_details(cell) for cell in cells if cell.measured]
    kept = len(DETAILS) - all(cell.difference is None for cell in cells)
    return TablePage(
        name=table.name,
        heading=f"Table {table.name[-1]} of the paper: {table.title.lower()}",
        facts=caption_facts(params, tasks_of(params, table), table.measured),
        header=("", *map(head, titles)),
        paper_rows=(
            *(paper_row(row.system, row.scores) for row in table.others),
            paper_row(f"{table.model.system} (the paper)", table.model.scores, **more),
        ),
        our_rows=our_rows,
        legend=legend(our_rows),
        more=(Grid(DETAILS[:kept], tuple(row[:kept] for row in details)),) if details else (),
        notes=(
            *baseline_notes(params, baselines, scores),
            *table_notes(params, table, cells, glue),
        ),
    )


def tasks_of(params: Params, table: Table) -> list[str]:
    """The tasks of params.yaml with a column in a table: its caption may depend on no other, or DVC
    would not re-run it.
    """
    return [
        name
        for name in params.tasks
        if any(column.table == table.name for column in TASKS[name].columns)
    ]


def table_records(
    params: Params,
    table: Table,
    cells: Sequence[Cell],
    glue: GlueMean | None,
    caption: str,
    baselines: Mapping[str, BaselineScores] = NO_BASELINES,
) -> list[Record]:
    """Every cell of the paper's rows, of ours (these with the caption) and of the baselines' as one
    flat record; what does not apply is left out.
    """
    metric = {cell.title: cell.metric for cell in cells if cell.first} | {GLUE: "mean"}
    records: list[Record] = [
        {
            "row": "paper's model" if row is table.model else "paper",
            "system": row.system,
            "source": row.source,
            "column": title,
            "metric": metric[title],
            "score": value,
        }
        for row in (*table.others, table.model)
        for title, value in zip(table.columns, row.scores, strict=True)
        if value is not None
    ]
    ours = {
        "row": "ours",
        "system": "this run",
        "profile": params.profile,
        "corpus": params.clean.corpus_name,
        "caption": caption,
    }
    records += [
        ours
        | {
            "column": cell.title,
            "task": cell.task,
            "metric": cell.metric,
            "compared_with": cell.compared,
        }
        | (cell_record(cell) or {"reason": "left out"})
        for cell in cells
    ]
    if glue:
        records.append(
            ours
            | glue_record(glue)
            | {
                "difference": glue.difference,
                "compared_with": glue.published if glue.compares else None,
            }
        )
    records += baseline_records(params, cells, baselines)
    return [{"table": table.name} | record for record in records]


def cell_record(cell: Cell) -> Record:
    """Every fact of a cell by name; none of a task that was left out."""
    measured = cell.measured
    if measured is None:
        return {}
    selected = measured.selected.values()
    interval = estimate_record(cell.estimate, cell.metric)
    return score_record([measured], measured.scores, interval) | {
        "best": measured.best,
        "median": measured.median,
        "difference": cell.difference,
        "best_evaluation": statistics.fmean(selected) if selected else None,
    }


def table_metrics(cells: Sequence[Cell], glue: GlueMean | None) -> dict[str, Any]:
    """Our numbers for `dvc metrics`: {"snli": {"mean": …}}; nothing that is not a number."""
    columns = {
        cell.key: rounded(cell_record(cell), score="mean") for cell in cells if cell.measured
    }
    if glue:
        interval = estimate_record(glue.estimate, "mean") | {"seeds": None}
        columns["glue" if glue.complete else "glue_tasks_there"] = rounded(
            interval
            | {"score": glue.mean, "tasks": len(glue.tasks), "difference": glue.difference},
            score="mean",
        )
    return columns


def _our_rows(
    params: Params, titles: Sequence[str], cells: Mapping[str, Cell], glue: GlueMean | None
) -> tuple[tuple[str, ...], ...]:
    """Mean ± deviation with marks; its interval; the best seed; where the tasks are the paper's,
    the difference from its model; the split.
    """

    def column(title: str) -> tuple[str, str, str, str, str]:
        cell = cells.get(title)
        if title.startswith(GLUE) and glue and (glue.complete or title != GLUE):
            deviation = glue.estimate.deviation if glue.estimate else None
            mean = spread(glue.mean, deviation) + (CHANCE if glue.flagged else "")
            interval = bracketed(ends(glue.estimate, "mean"))
            return mean, interval, NONE, _difference(glue.difference), NONE
        if cell is None or cell.measured is None:
            return NONE, NONE, NONE, NONE, NONE
        measured = cell.measured
        drawn_anew = cell.compared not in (None, cell.published)
        return (
            spread(measured.mean, measured.deviation) + marks(measured),
            bracketed(ends(cell.estimate, cell.metric)),
            number(measured.best),
            _difference(cell.difference) + (COMPARED if drawn_anew else ""),
            measured.split.replace("_mismatched", ""),
        )

    names = (f"this run ({params.profile})", f"{COVERAGE:.0%} interval", "best seed")
    columns = ((*names, DETAILS[-1], "split"), *map(column, titles))
    means, intervals, bests, differences, splits = zip(*columns, strict=True)
    compares = any(value != NONE for value in differences[1:])
    return (means, intervals, bests, *([differences] if compares else []), splits)


def _difference(value: float | None) -> str:
    return NONE if value is None else signed(value)


def _details(cell: Cell) -> tuple[str, ...]:
    measured, facts = cell.measured, cell_record(cell)
    assert measured is not None
    selected = facts["best_evaluation"]
    return (
        cell.title,
        METRIC_WORDS[cell.metric],
        measured.split,
        measured.chosen,
        f"{measured.examples:,}",
        str(len(measured.scores)),
        number(measured.median),
        f"{measured.standard_error:.1f}",
        f"{measured.majority:.1f}",
        NONE if selected is None else number(selected),
        _difference(cell.difference),
    )
