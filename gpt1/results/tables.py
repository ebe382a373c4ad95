"""Ours beside the paper's: caption, rows and notes of one table as plain words, for every format to
print.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Params
from gpt1.results import document
from gpt1.results.bootstrap import COVERAGE, Estimate
from gpt1.results.document import Block, Bullets, Grid, Heading
from gpt1.results.notes import CHANCE, COMPARED, METRIC_WORDS, legend, marks, notes
from gpt1.results.paper import CORPUS, GLUE, MODEL_SIZE, PRETRAINING, Table
from gpt1.results.scores import Cell, GlueMean
from gpt1.results.words import NONE, alone, counted, large, number, signed, spread
from gpt1.sources.table import is_made_up
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


@dataclass(frozen=True)
class Page:
    """A table ready to print: facts for the caption, a header, rows (system first), a legend of
    their signs, further tables, notes.
    """

    name: str
    heading: str
    facts: tuple[tuple[str, str], ...]
    header: tuple[str, ...]
    paper_rows: tuple[tuple[str, ...], ...]
    our_rows: tuple[tuple[str, ...], ...]  # the first stands out
    legend: tuple[str, ...]
    more: tuple[Grid, ...]
    notes: tuple[str, ...]

    @property
    def document(self) -> list[Block]:
        """The page in the order in which it is read, our first row in bold."""
        first, *others = self.our_rows
        bold = tuple(f"**{value}**" if value != NONE else value for value in first)
        return [
            Heading(1, self.heading),
            document.facts(self.facts),
            Grid(self.header, (*self.paper_rows, bold, *others)),
            Bullets(self.legend),
            *self.more,
            Bullets(self.notes),
        ]


def page(params: Params, table: Table, cells: Sequence[Cell], glue: GlueMean | None) -> Page:
    """Lay out a table. `glue` is for Table 4, None elsewhere or where no GLUE task is there. Raises
    UserError (see `facts`).
    """
    first = [cell for cell in cells if cell.first]
    more = [cell for cell in first if cell.title not in table.columns]
    part = glue is not None and not glue.complete
    titles = (
        *table.columns,
        *((f"GLUE {len(glue.tasks)} of 9",) if glue and part else ()),
        *(cell.title for cell in more),
    )
    cell_of = {cell.title: cell for cell in first}
    metrics = {cell.metric for cell in first} if table.name == "table4" else set()
    header = (
        "",
        *(
            (
                f"{title} ({METRIC_WORDS[cell_of[title].metric]})"
                if metrics and title in cell_of
                else title
            )
            for title in titles
        ),
    )

    def paper_row(system: str, scores: Sequence[float | None]) -> tuple[str, ...]:
        given = dict(zip(table.columns, scores, strict=True))
        return (system, *(_score(given.get(title)) for title in titles))

    model_row = paper_row(f"{table.model.system} (the paper)", table.model.scores)
    if glue and part:
        model_row = tuple(
            f"{glue.published:.1f}" if "of 9" in title else value
            for title, value in zip(header, model_row, strict=True)
        )
    tasks = tasks_of(params, table)
    our_rows = _our_rows(params, titles, cell_of, glue)
    kept = DETAILS if any(cell.difference is not None for cell in cells) else DETAILS[:-1]
    return Page(
        name=table.name,
        heading=f"Table {table.name[-1]} of the paper: {table.title.lower()}",
        facts=facts(params, tasks, table.measured),
        header=header,
        paper_rows=(*(paper_row(row.system, row.scores) for row in table.others), model_row),
        our_rows=our_rows,
        legend=legend(our_rows),
        more=(
            (Grid(kept, details),)
            if (details := tuple(_detail(cell)[: len(kept)] for cell in cells if cell.measured))
            else ()
        ),
        notes=tuple(notes(params, table, cells, glue)),
    )


def facts(params: Params, tasks: Sequence[str], measured: str) -> tuple[tuple[str, str], ...]:
    """What a reader must know before reading a number of these tasks, ours and the paper's;
    `measured` says on what data those were.

    Raises UserError where its files are missing or broken.
    """
    train = _read(stage_folder("shard", "index.json"), "shard", ("splits", "train"))
    pretrained = _read(
        stage_folder("pretrain", "transformer", "summary.json"), "pretrain@transformer", ()
    )
    books, documents = (
        sum("documents" not in book for book in train.get("books", ())),
        int(train.get("documents", 0)),
    )
    held = " and ".join(
        counted(count, word) for count, word in ((books, "book"), (documents, "document")) if count
    )
    model = params.model
    seeds = sorted({len(finetune_recipe(params, task).seeds) for task in tasks})
    try:
        updates = pretrained["updates"]
        trained = (
            f"{counted(updates, 'update')}, {large(pretrained['tokens'])} tokens"
            if updates
            else "none here, imported weights"
        )
        return (
            ("Profile", f"{params.profile}; not the paper's run unless every line below agrees"),
            (
                "Corpus",
                (
                    f"{params.clean.corpus_name}: {held}, {large(train['words'])} words,"
                    f" {large(train['tokens'])} tokens"
                    f" {'to train on' if updates else 'beside the held-out ones'} (the paper:"
                    f" {CORPUS})"
                ),
            ),
            (
                "Model",
                (
                    f"{counted(model.layers, 'layer')} of width {model.width},"
                    f" {large(pretrained['parameters']['total'])} parameters (the paper:"
                    f" {MODEL_SIZE})"
                ),
            ),
            (
                "Pre-training",
                (
                    f"{trained}; held-out perplexity {pretrained['heldout_perplexity']:.1f} a"
                    f" token, {pretrained['heldout_word_perplexity']:.1f} a word (the paper:"
                    f" {PRETRAINING})"
                ),
            ),
            (
                "Fine-tuning",
                (
                    f"{' to '.join(map(str, seeds))} seed{'s' if seeds != [1] else ''} a task;"
                    f" {_subsets(params, tasks)}"
                ),
            ),
            *(
                (
                    (
                        "Tasks",
                        (
                            f"{', '.join(invented)}: made up, in the official file formats; no"
                            " score on them compares with the paper's"
                        ),
                    ),
                )
                if (invented := made_up(params, tasks))
                else ()
            ),
            ("Beside it", f"the paper's numbers: {measured}"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            "data/shard/index.json or data/pretrain/transformer/summary.json: expected numbers for"
            f" the caption, found something else ({error}); run dvc repro -f pretrain@transformer"
        ) from None


def made_up(params: Params, tasks: Sequence[str]) -> list[str]:
    """The titles of those tasks that come from a made-up world."""
    return [TASKS[name].title for name in tasks if is_made_up(params.sources[name].folder)]


def _read(path: Path, stage: str, within: tuple[str, ...]) -> Any:
    try:
        value = read_json(path)
        for key in within:
            value = value[key]
        return value
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run dvc repro {stage}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read ({error}); run dvc repro -f {stage}") from None


def tasks_of(params: Params, table: Table) -> list[str]:
    """The tasks of params.yaml with a column in a table: its caption may depend on no other, or DVC
    would not re-run it.
    """
    return [
        name
        for name in params.tasks
        if any(column.table == table.name for column in TASKS[name].columns)
    ]


def _subsets(params: Params, tasks: Sequence[str]) -> str:
    """Which of these tasks are tried on a part of their rows."""
    parts = []
    for name in tasks:
        task = params.tasks[name]
        limits = [
            f"{large(rows)} {word}"
            for rows, word in ((task.train_rows, "to train"), (task.eval_rows, "to evaluate"))
            if rows
        ]
        if limits:
            parts.append(f"{TASKS[name].title} {' and '.join(limits)}")
    return f"at most these rows: {'; '.join(parts)}" if parts else "all rows of every task"


def _our_rows(
    params: Params,
    titles: Sequence[str],
    cell_of: dict[str, Cell],
    glue: GlueMean | None,
) -> tuple[tuple[str, ...], ...]:
    """Mean ± deviation with marks; its interval; the best seed; where the tasks are the paper's,
    the difference from its model.
    """
    means, intervals, bests, differences, splits = (
        [f"this run ({params.profile})"],
        [f"{COVERAGE:.0%} interval"],
        ["best seed"],
        ["ours less the paper's"],
        ["split"],
    )
    for title in titles:
        cell = cell_of.get(title)
        if title.startswith(GLUE):
            there = glue if glue and (glue.complete or title != GLUE) else None
            means.append(
                spread(there.mean, there.deviation) + (CHANCE if there.flagged else "")
                if there
                else NONE
            )
            intervals.append(between(there.estimate) if there else NONE)
            bests.append(NONE)
            differences.append(_difference(there.difference) if there else NONE)
            splits.append(NONE)
        elif cell and cell.measured:
            measured = cell.measured
            means.append(spread(measured.mean, measured.deviation) + marks(measured))
            intervals.append(between(cell.estimate))
            bests.append(number(measured.best))
            differences.append(
                _difference(cell.difference)
                + (COMPARED if cell.compared not in (None, cell.published) else "")
            )
            splits.append(measured.split.replace("_mismatched", ""))
        else:
            for row in (means, intervals, bests, differences, splits):
                row.append(NONE)
    compares = any(value != NONE for value in differences[1:])
    return tuple(
        tuple(row)
        for row in (means, intervals, bests, *([differences] if compares else []), splits)
    )


def _difference(value: float | None) -> str:
    return NONE if value is None else signed(value)


def between(estimate: Estimate | None) -> str:
    """An interval in the tables' form, with a word where it is of one seed: [4.0, 5.5]."""
    if estimate is None:
        return NONE
    return f"[{', '.join(map(number, estimate.interval))}]{alone(estimate.seeds)}"


def _detail(cell: Cell) -> tuple[str, ...]:
    measured = cell.measured
    assert measured is not None
    selected = number(statistics.fmean(measured.selected.values())) if measured.selected else NONE
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
        selected,
        _difference(cell.difference),
    )


def _score(value: float | None) -> str:
    return NONE if value is None else number(value)
