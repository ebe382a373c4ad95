"""What the plots share: colours that colour-blind people can tell apart, light axes, equal bytes
for equal numbers.
"""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008: told apart with any colour vision.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"
GREY, LIGHT = "#7a7a7a", "#e4e4e4"
NETWORK_COLOURS = {"transformer": BLUE, "lstm": VERMILION, "lstm_equal": ORANGE}
NETWORK_TITLES = {"transformer": "Transformer", "lstm": "LSTM", "lstm_equal": "LSTM of equal size"}
NETWORK_DASHES: dict[str, Any] = {
    "transformer": "-",
    "lstm": (0, (4, 1.6)),
    "lstm_equal": (0, (1, 1.2)),
}


def svg(plot: "Callable[[], Figure]", points: float = 8.0) -> str:
    """Return the figure that `plot` makes as SVG, with letters of this many points."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    style: Any = {"svg.hashsalt": "gpt1", "svg.fonttype": "none", "font.size": points}
    with mpl.rc_context(style | {"font.family": "sans-serif"}):
        text = io.StringIO()
        FigureCanvasSVG(plot()).print_svg(
            text, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )  # type: ignore[no-untyped-call]
    return text.getvalue()


def panels(rows: int, columns: int, inches: tuple[float, float]) -> "tuple[Figure, list[Axes]]":
    """Axes with a light grid and no frame."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in every:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=LIGHT, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, every
