"""A table as a picture: for every column each seed, their mean, the majority class and the paper's
number.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpt1.results import drawing
from gpt1.results.bootstrap import COVERAGE
from gpt1.results.scores import Cell

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.figure import Figure

INCHES_A_COLUMN, INCHES_HIGH, LETTER_POINTS = 0.95, 3.6, 9.0
OURS, MAJORITY, PAPER = "#1f4e8c", "#8a8a8a", "#c0504d"


def draw(title: str, cells: Sequence[Cell]) -> "Figure":
    """Scores x 100 from top to bottom, columns from left to right; the paper's number only where it
    compares.
    """
    from matplotlib.figure import Figure

    shown = [(cell, cell.measured) for cell in cells if cell.measured and cell.first]
    figure = Figure(
        figsize=(1.9 + INCHES_A_COLUMN * max(len(shown), 3), INCHES_HIGH), layout="constrained"
    )
    lowest = min([0.0, *(score for _, measured in shown for score in measured.scores.values())])
    axes = figure.add_subplot(title=title, ylabel="score × 100", ylim=(lowest - 2, 102))
    for place, (cell, measured) in enumerate(shown):
        once = "" if place == 0 else "_"  # a label that starts so stays out of the legend
        axes.bar(
            place,
            measured.mean,
            width=0.5,
            color=OURS,
            alpha=0.25,
            label=f"{once}ours, mean of seeds",
        )
        axes.plot(
            [place] * len(measured.scores),
            list(measured.scores.values()),
            "o",
            color=OURS,
            markersize=4,
            label=f"{once}each seed",
        )
        if cell.estimate:
            low, high = cell.estimate.interval
            axes.errorbar(
                place + 0.12,
                measured.mean,
                yerr=[[max(0.0, measured.mean - low)], [max(0.0, high - measured.mean)]],
                color=OURS,
                capsize=3,
                label=f"{once}{COVERAGE:.0%} interval",
            )
        axes.hlines(
            measured.majority,
            place - 0.32,
            place + 0.32,
            color=MAJORITY,
            linewidth=2,
            label=f"{once}majority class",
        )
        if cell.compared is not None:
            axes.plot(
                place,
                cell.compared,
                "D",
                color=PAPER,
                markersize=5,
                markerfacecolor="none",
                label=f"{once}the paper",
            )
    axes.set_xticks(range(len(shown)), [f"{cell.title}\n{cell.metric}" for cell, _ in shown])
    axes.spines[["top", "right"]].set_visible(False)
    if shown:
        figure.legend(loc="outside right upper", frameon=False)
    return figure


def svg(title: str, cells: Sequence[Cell]) -> str:
    """What `draw` draws, as SVG. Equal cells give equal bytes."""
    return drawing.svg(lambda: draw(title, cells), LETTER_POINTS)
