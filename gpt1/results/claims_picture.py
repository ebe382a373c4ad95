"""The paper's claims drawn: every effect with its interval and verdict."""

import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpt1.results import drawing
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    EXPLORATORY,
    MADE_UP,
    POINTS,
    RANKS,
    REFUTED,
    SCALED,
    UNDECIDED,
    Claim,
    marked,
)

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERDICT_MARKS = {
    CONFIRMED: ("o", drawing.BLUE),
    REFUTED: ("X", drawing.VERMILION),
    UNDECIDED: ("D", drawing.GREY),
    DOES_NOT_COMPARE: ("s", drawing.GREY),
}
CLAIM_INCHES_WIDE, INCHES_A_LINE, INCHES_BETWEEN, INCHES_OF_AXIS = 7.0, 0.14, 0.11, 0.5
LETTERS_WIDE = 68  # a longer statement takes two lines
PANELS = {POINTS: "points (score × 100)", SCALED: SCALED, RANKS: RANKS}


def draw_claims(profile: str, claims: Sequence[Claim]) -> "Figure":
    """Every effect with its interval, a panel for each unit, the colour and form of a mark its
    verdict.
    """
    from matplotlib.figure import Figure

    panels = [
        (title, shown)
        for unit, title in PANELS.items()
        if (shown := [claim for claim in claims if claim.effect and claim.unit == unit])
    ]
    if not panels:
        return drawing.empty("no claim was measured", (CLAIM_INCHES_WIDE, 1.5))
    heights = [_places(shown)[-1] for _, shown in panels]
    figure = Figure(
        figsize=(CLAIM_INCHES_WIDE, sum(heights) + INCHES_OF_AXIS * len(heights) + 0.8),
        layout="constrained",
    )
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, shown) in zip(grid, panels, strict=True):
        _panel(axes, title, shown)
    invented = any(claim.made_up for _, shown in panels for claim in shown)
    marks = f"{EXPLORATORY} exploratory" + (f", {MADE_UP} on made-up tasks" if invented else "")
    figure.suptitle(
        f"Claims of the paper, {profile}: effects with {COVERAGE:.0%} intervals ({marks})",
        fontsize="medium",
    )
    paper = ("|", "black")
    for name, (marker, colour) in (VERDICT_MARKS | {"the paper's number": paper}).items():
        size = 9 if marker == "|" else 4.5
        grid[0].plot([], [], marker, color=colour, markersize=size, label=name)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(axes: "Axes", title: str, claims: Sequence[Claim]) -> None:
    drawing.bare_axes(axes)
    axes.axvline(0, color=drawing.GREY, linewidth=0.9)
    places = _places(claims)
    middles = [(begin + end) / 2 for begin, end in itertools.pairwise(places)]
    for place, claim in zip(middles, claims, strict=True):
        assert claim.effect is not None
        marker, colour = VERDICT_MARKS[claim.verdict]
        if claim.effect.interval:
            axes.plot(claim.effect.interval, [place, place], color=colour, linewidth=1.4)
        axes.plot(claim.effect.value, place, marker, color=colour, markersize=4.5)
        if claim.published_value is not None and not claim.made_up:
            paper = claim.published_value
            axes.plot(paper, place, "|", color="black", markersize=9, markeredgewidth=1.2)
    axes.set_yticks(middles, ["\n".join(_lines(claim)) for claim in claims])
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(places[-1], 0), xlabel=title)


def _lines(claim: Claim) -> list[str]:
    return textwrap.wrap(marked(claim), LETTERS_WIDE, break_on_hyphens=False)


def _places(claims: Sequence[Claim]) -> list[float]:
    """Where each claim's row begins from the top, in inches, and where the last ends: a row is as
    high as its lines.
    """
    heights = (INCHES_A_LINE * len(_lines(claim)) + INCHES_BETWEEN for claim in claims)
    return [0.0, *itertools.accumulate(heights)]
