"""Scores and effects drawn with their intervals: Tables 2 to 4 and 5."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gpt1.results import drawing
from gpt1.results.ablations import (
    AVERAGE,
    AVERAGED,
    COLUMNS,
    AblationScores,
    paper_row,
    paper_scores,
    scores_of,
    system_title,
)
from gpt1.results.document import counted
from gpt1.results.formats import ends
from gpt1.results.notes import METRIC_WORDS
from gpt1.results.scores import Cell
from gpt1.results.statistics.estimates import COVERAGE, LEAST_SEEDS, CrossedEstimate

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
SPREAD = 0.66  # of a column's width, over which its systems stand side by side


class DrawnScore(NamedTuple):
    """A system's score in a column; what is not drawn of it is empty or None."""

    value: float
    interval: Sequence[float]  # empty under three seeds
    seeds: Sequence[float] = ()
    majority: float | None = None
    paper: float | None = None


def draw_cells(title: str, cells: Sequence[Cell]) -> "Figure":
    """Table 2, 3 or 4: each seed, their mean with its interval, the majority class, and the paper's
    number where it compares.
    """
    marks = {
        f"{cell.title}\n{cell.metric}": DrawnScore(
            cell.measured.mean,
            ends(cell.estimate, cell.metric) or (),
            list(cell.measured.scores.values()),
            cell.measured.majority,
            cell.compared,
        )
        for cell in cells
        if cell.measured and cell.first
    }
    return draw_scores(
        title, list(marks), {f"ours, mean of seeds, {COVERAGE:.0%} interval": list(marks.values())}
    )


def draw_scores(
    title: str, columns: Sequence[str], systems: Mapping[str, Sequence[DrawnScore | None]]
) -> "Figure":
    """Scores x 100 from top to bottom, a group of points a column, each system's at its place."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(1.0 + INCHES_A_COLUMN * max(len(columns), 4), INCHES_HIGH), layout="constrained"
    )
    axes = figure.add_subplot(ylabel="score × 100", xlim=(-0.5, max(len(columns), 1) - 0.5))
    drawing.bare_axes(axes)
    axes.grid(visible=False, axis="x")
    shared: dict[str, Any] = {}  # what every system's marks have in common, for the legend
    hollow: dict[str, Any] = {"markersize": 6.5, "markerfacecolor": "none", "markeredgewidth": 0.9}
    for number, (system, marks) in enumerate(systems.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        shift = SPREAD * ((number + 0.5) / len(systems) - 0.5)
        axes.plot([], [], marker, color=colour, markersize=4, label=system)
        for place, mark in enumerate(marks):
            if mark is None:
                continue
            at = place + shift
            axes.plot([at] * len(mark.interval), mark.interval, color=colour, linewidth=1.2)
            axes.plot(at, mark.value, marker, color=colour, markersize=4)
            if mark.seeds:
                beside = [at + 0.13] * len(mark.seeds)
                (shared["each seed"],) = axes.plot(
                    beside, mark.seeds, marker, color=colour, alpha=0.5, markersize=2.6
                )
            if mark.majority is not None:
                shared["majority class"] = axes.hlines(
                    mark.majority, place - 0.32, place + 0.32, color=drawing.GREY, linewidth=1.4
                )
            if mark.paper is not None:
                axes.plot(at, mark.paper, marker, color=colour, **hollow)
                shared["hollow: the paper"] = axes.plot([], [], "o", color=drawing.GREY, **hollow)[
                    0
                ]
    for place in range(1, len(columns)):
        axes.axvline(place - 0.5, color=drawing.LIGHT, linewidth=0.6)
    axes.set_xticks(range(len(columns)), list(columns))
    axes.set_title(title, fontsize="medium", loc="left")
    handles, labels = axes.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True)) | shared
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=2 if len(entries) % 3 == 1 else 3,
        frameon=False,
    )
    return figure


def draw_ablation(profile: str, table: AblationScores, comparable: bool) -> "Figure":
    """The average and then a column for each task, each row of ours as a point with its interval.

    `comparable`: whether the paper's numbers were measured on the same tasks; elsewhere they are
    left out.
    """
    scores = {system: scores_of(table, system) for system in table.systems}
    places = [title for title in COLUMNS if any(row[title] for row in scores.values())]
    systems: dict[str, list[DrawnScore | None]] = {}
    for system, row in scores.items():
        there = [estimate for estimate in row.values() if estimate]
        if there:
            few = min(one.seeds for one in there)
            note = f", {counted(few, 'seed')}" if few < LEAST_SEEDS else ""
            label = system_title(system) + note
            paper = _drawn_beside(system, table) if comparable else {}
            systems[label] = [
                _mark(row[title], COLUMNS[title], paper.get(title)) for title in places
            ]
    if not systems:
        size = (drawing.INCHES_WIDE, INCHES_HIGH)
        return drawing.empty("no task of Table 5 is in params.yaml", size)
    words = [f"{title}\n{METRIC_WORDS.get(COLUMNS[title], 'mean')}" for title in places]
    title = f"Table 5, {profile}: mean over the seeds with {COVERAGE:.0%} intervals"
    return draw_scores(title, words, systems)


def _drawn_beside(system: str, table: AblationScores) -> Mapping[str, float | None]:
    row = paper_row(system)
    scores = paper_scores(row, table) if row else {}
    return {title: score for title, score in scores.items() if title in (AVERAGE, *AVERAGED)}


def _mark(estimate: CrossedEstimate | None, metric: str, paper: float | None) -> DrawnScore | None:
    if estimate is None:
        return None
    return DrawnScore(float(estimate.value), ends(estimate, metric) or (), paper=paper)
