"""Table 5's files: the page in three formats, its numbers, and a picture of every column's rows."""

from pathlib import Path
from typing import TYPE_CHECKING

from gpt1.base.files import write_json
from gpt1.params.schema import Params
from gpt1.results import drawing
from gpt1.results.ablation_page import AVERAGE, CSV_COLUMNS, metrics, page, records
from gpt1.results.ablations import (
    AVERAGED,
    Ablation,
    ablation,
    columns_of,
    paper_average,
    paper_row,
    system_title,
    systems_of,
    tasks_there,
)
from gpt1.results.bootstrap import COVERAGE, Estimate
from gpt1.results.document import write_document
from gpt1.results.formats import as_csv, caption, latex
from gpt1.results.notes import METRIC_WORDS
from gpt1.results.paper import TABLE5
from gpt1.results.records import write_predictions, write_scores
from gpt1.results.scores import scored_splits
from gpt1.results.tables import made_up
from gpt1.results.words import alone

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.figure import Figure

INCHES_A_COLUMN, INCHES_HIGH = 0.78, 3.4
COLOURS = (
    drawing.BLUE,
    drawing.ORANGE,
    drawing.GREEN,
    drawing.VERMILION,
    drawing.PURPLE,
    drawing.SKY,
    drawing.YELLOW,
)
MARKERS = "osDv^Px"  # told apart in grey as well
SPREAD = 0.66  # of a column's width, over which its rows stand side by side


def write(params: Params, folder: Path) -> str:
    """Write Table 5 into `folder`; returns its markdown. Raises UserError where a result that
    params.yaml names is missing or broken.
    """
    table = ablation(params)
    laid_out = page(params, table)
    text = write_document(folder, "table5", laid_out.document)
    (folder / "table5.tex").write_text(latex(laid_out), encoding="utf-8")
    rows = records(params, table, caption(laid_out))
    write_scores(folder, rows)
    write_predictions(
        folder,
        (
            scored
            for task, columns in map(columns_of, TABLE5.columns)
            for scored in scored_splits(columns, systems_of(params, task.name).values())
        ),
    )
    (folder / "table5.csv").write_text(as_csv(rows, CSV_COLUMNS), encoding="utf-8")
    write_json(folder / "metrics.json", metrics(table))
    comparable = not made_up(params, tasks_there(params))
    drawing.write_pictures(folder, "table5", lambda: draw(params.profile, table, comparable))
    return text


def draw(profile: str, table: Ablation, comparable: bool) -> "Figure":
    """Scores x 100 from top to bottom, the average and then a column for each task, each row of
    ours as a point with its interval.

    `comparable`: whether the paper's numbers were measured on the same tasks; elsewhere they are
    left out.
    """
    from matplotlib.figure import Figure

    columns = [
        title
        for title in TABLE5.columns
        if any((system, title) in table.results for system in table.systems)
    ]
    systems = [
        system
        for system in table.systems
        if any((system, title) in table.results for title in columns)
    ]
    if not systems:
        return drawing.empty(
            "no task of Table 5 is in params.yaml", (drawing.INCHES_WIDE, INCHES_HIGH)
        )
    places = [AVERAGE, *columns] if table.averaged else columns
    figure = Figure(
        figsize=(1.0 + INCHES_A_COLUMN * max(len(places), 4), INCHES_HIGH), layout="constrained"
    )
    axes = figure.add_subplot(ylabel="score × 100")
    drawing.plain(axes)
    axes.grid(visible=False, axis="x")
    for number, system in enumerate(systems):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        shift = SPREAD * ((number + 0.5) / len(systems) - 0.5)
        for place, title in enumerate(places):
            estimate = (
                table.average(system) if title == AVERAGE else _estimate(table, system, title)
            )
            if estimate is None:
                continue
            low, high = estimate.interval
            axes.plot([place + shift] * 2, [low, high], color=colour, linewidth=1.2)
            axes.plot(place + shift, estimate.value, marker, color=colour, markersize=4)
            if comparable and (published := _published(table, system, title)) is not None:
                axes.plot(
                    place + shift,
                    published,
                    marker,
                    color=colour,
                    markersize=6.5,
                    markerfacecolor="none",
                    markeredgewidth=0.9,
                )
        axes.plot([], [], marker, color=colour, markersize=4, label=_label(table, system))
    if comparable:
        axes.plot(
            [],
            [],
            "o",
            color=drawing.GREY,
            markersize=6.5,
            markerfacecolor="none",
            label="hollow: the paper",
        )
    for place in range(1, len(places)):
        axes.axvline(place - 0.5, color=drawing.LIGHT, linewidth=0.6)
    words = {title: METRIC_WORDS[metric] for title, metric in TABLE5.columns.items()} | {
        AVERAGE: "mean"
    }
    axes.set_xticks(range(len(places)), [f"{title}\n{words[title]}" for title in places])
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_title(
        f"Table 5, {profile}: mean over the seeds with {COVERAGE:.0%} intervals",
        fontsize="medium",
        loc="left",
    )
    figure.legend(
        loc="outside lower center", ncols=2 if len(systems) % 3 == 1 else 3, frameon=False
    )
    return figure


def _label(table: Ablation, system: str) -> str:
    seeds = min(
        result.estimate.seeds for (name, _), result in table.results.items() if name == system
    )
    return system_title(system) + alone(seeds)


def _estimate(table: Ablation, system: str, title: str) -> Estimate | None:
    result = table.results.get((system, title))
    return result.estimate if result else None


def _published(table: Ablation, system: str, title: str) -> float | None:
    row = paper_row(system)
    if row is None:
        return None
    if title == AVERAGE:
        return paper_average(row, table.averaged)
    return TABLE5.score(row, title) if title in AVERAGED else None
