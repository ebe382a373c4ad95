"""What the report's pictures share: colours that the colour-blind tell apart, print sizes, and
equal bytes for equal drawings.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008: told apart with any colour vision.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#f0e442",
)
GREY, LIGHT = "#7a7a7a", "#e4e4e4"
NETWORK_COLOURS = {"transformer": BLUE, "lstm": VERMILION, "lstm_equal": ORANGE}
NETWORK_TITLES = {
    "transformer": "Transformer",
    "lstm": "LSTM",
    "lstm_equal": "LSTM of equal size",
}
NETWORK_DASHES: dict[str, Any] = {
    "transformer": "-",
    "lstm": (0, (4, 1.6)),
    "lstm_equal": (0, (1, 1.2)),
}  # as in the paper's Figure 2
POINTS, INCHES_WIDE = 8.0, 4.5  # print size: a column of text, or most of one
DOTS_AN_INCH = 200


def _style(points: float) -> Any:  # matplotlib's stubs want each key as a literal
    return {
        "svg.hashsalt": "gpt1",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": points,
    }


def svg(draw: "Callable[[], Figure]", points: float) -> str:
    """What `draw` draws in letters of so many points, as SVG. Equal drawings give equal bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with mpl.rc_context(_style(points)):
        text = io.StringIO()
        FigureCanvasSVG(draw()).print_svg(text, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return text.getvalue()


def png(draw: "Callable[[], Figure]", points: float) -> bytes:
    """The same as PNG, for print. Equal drawings give equal bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(_style(points) | {"savefig.dpi": DOTS_AN_INCH}):
        image, figure = io.BytesIO(), draw()
        figure.set_dpi(DOTS_AN_INCH)
        FigureCanvasAgg(figure).print_png(image, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return image.getvalue()


def write_pictures(folder: Path, name: str, draw: "Callable[[], Figure]", for_print: bool) -> None:
    """Put `name`.svg, and `name`.png `for_print`, of what `draw` draws into `folder`."""
    (folder / f"{name}.svg").write_text(svg(draw, POINTS), encoding="utf-8")
    if for_print:
        (folder / f"{name}.png").write_bytes(png(draw, POINTS))


def bare_axes(axes: "Axes") -> None:
    """No frame but the two axes, and a light grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=LIGHT, linewidth=0.6)
    axes.set_axisbelow(True)


def empty(text: str, size: tuple[float, float]) -> "Figure":
    """A panel that says why there is nothing in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.spines[:].set_color(LIGHT)
    axes.text(0.5, 0.5, text, ha="center", va="center", color=GREY, wrap=True)
    return figure


def apart(positions: Sequence[float], gap: float) -> list[float]:
    """The positions moved as little as keeps neighbours `gap` apart and their order: least squares,
    by pooling neighbours that collide.
    """
    order = sorted(range(len(positions)), key=lambda place: positions[place])
    # [sum of wished-for starts, members]; a pool stands as a stack with its start at their mean.
    pools: list[list[float]] = []
    for rank, place in enumerate(order):
        pools.append([positions[place] - rank * gap, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1] = [pools[-1][0] + last[0], pools[-1][1] + last[1]]
    starts = [total / members for total, members in pools for _ in range(int(members))]
    moved = [0.0] * len(positions)
    for rank, (place, start) in enumerate(zip(order, starts, strict=True)):
        moved[place] = start + rank * gap
    return moved
