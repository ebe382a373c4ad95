"""Figure 2 drawn: layers transferred (left), zero-shot behaviours over pre-training (right); ours,
and the paper's by eye.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpt1.results import drawing
from gpt1.results.ablations import Transferred
from gpt1.results.document import counted
from gpt1.results.formats import ends as interval_ends
from gpt1.results.paper import FIGURE2_LAYERS, FIGURE2_ZERO_SHOT, PAPER_LAYERS
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.results.zero_shot import Behaviour, normalised, normalised_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT_INCHES_HIGH, RIGHT_INCHES_HIGH, EMPTY_SIZE = 3.5, 3.9, (drawing.INCHES_WIDE, 1.2)
TASK_STYLES = {
    "mnli": (drawing.BLUE, "o"),
    "race": (drawing.VERMILION, "s"),
}  # any further task takes the next of the others
OTHER_STYLES = (
    (drawing.GREEN, "^"),
    (drawing.PURPLE, "D"),
    (drawing.ORANGE, "v"),
    (drawing.GREY, "P"),
)
SET_STYLES = {
    "sst2": (drawing.BLUE, "o"),
    "dprd": (drawing.GREEN, "^"),
    "cola": (drawing.VERMILION, "s"),
    "race": (drawing.PURPLE, "D"),
}
BAND = 0.16
BESIDE = 0.017  # share of the axis between a mean and its seeds, which it would cover
OTHERS_HIGH = 1.2  # inches that axis titles and legend take
LABEL_LINES, POINTS_AN_INCH = 2.5, 72
Style = dict[str, Any]
# How a kind of line or marker looks, on the axes in its curve's colour and in the legend in black.
MEAN: Style = {"markersize": 4.5, "linewidth": 1.5}
SEED: Style = {"markersize": 2.6, "linestyle": "none", "alpha": 0.45, "markeredgewidth": 0}
MAJORITY: Style = {"linewidth": 0.8, "linestyle": (0, (1, 2))}
PAPER: Style = {"markersize": 4.5, "linewidth": 1.0, "alpha": 0.45, "markerfacecolor": "white"}


def draw_transfer(curves: Sequence[Transferred], layers: int) -> "Figure":
    """Score x 100 by layers transferred, 0 to `layers`: each seed, their mean, a band of its
    intervals.

    The paper's curve stands beside ours where the task is real; on its own axis above where it has
    another number of layers.
    """
    from matplotlib.figure import Figure

    if not curves:
        return drawing.empty(
            "No task has its layers transferred here\n(params.yaml: transfer is empty).", EMPTY_SIZE
        )
    figure = Figure(figsize=(drawing.INCHES_WIDE, LEFT_INCHES_HIGH), layout="constrained")
    axes = figure.add_subplot(
        xlabel="layers transferred",
        ylabel=f"{' or '.join(sorted({curve.metric for curve in curves}))} × 100",
        xlim=(-0.025 * layers, 1.035 * layers),
    )
    drawing.bare_axes(axes)
    others = iter(OTHER_STYLES)
    ends, compared, banded = [], False, False
    several = any(len(curve.seeds) > 1 for curve in curves)
    for curve in curves:
        colour, marker = TASK_STYLES.get(curve.task) or next(others, OTHER_STYLES[-1])
        style: Style = {"color": colour, "marker": marker}
        at, results = list(curve.points), list(curve.points.values())
        means = [float(result.estimate.value) for result in results]
        bands = [
            band for result in results if (band := interval_ends(result.estimate, curve.metric))
        ]
        if bands:  # all points have the same seeds
            banded = True
            lows, highs = zip(*bands, strict=True)
            axes.fill_between(at, lows, highs, color=colour, alpha=BAND, linewidth=0)
        for count, result in curve.points.items():
            scores = result.scores.by_seed.tolist()
            if len(scores) > 1:
                axes.plot([count + BESIDE * layers] * len(scores), scores, **style, **SEED)
        axes.plot(at, means, **style, **MEAN)
        axes.plot([0, layers], [curve.measured.majority] * 2, color=colour, **MAJORITY)
        split = curve.measured.split.split("_")[0]
        label = f"{curve.title} {split}\n{counted(len(curve.seeds), 'seed')}"
        ends.append((means[-1], label, colour, marker))
        if curve.task in FIGURE2_LAYERS and not curve.made_up:
            compared = True
            counts, scores = map(list, zip(*FIGURE2_LAYERS[curve.task], strict=True))
            shares = [count / PAPER_LAYERS * layers for count in counts]
            axes.plot(shares, scores, **style, **PAPER, clip_on=False)
    if compared and layers != PAPER_LAYERS:
        factor = PAPER_LAYERS / layers
        top = axes.secondary_xaxis("top", functions=(_times(factor), _times(1 / factor)))
        top.set_xlabel(f"the paper's, of {PAPER_LAYERS}", color=drawing.GREY)
        top.tick_params(colors=drawing.GREY)
        top.spines["top"].set_color(drawing.GREY)
        top.set_ticks(range(0, PAPER_LAYERS + 1, 3))
    axes.set_xticks(range(0, layers + 1, 1 if layers <= PAPER_LAYERS else 2))
    _label_ends(axes, ends, 1.03, LEFT_INCHES_HIGH)
    means_key = "mean of the seeds" if several else "one seed: a dip may be its own"
    _legend(
        figure,
        f"{COVERAGE:.0%} interval" if banded else "",
        {means_key: {"marker": "o"} | MEAN}
        | ({"each seed": {"marker": "o"} | SEED} if several else {})
        | {"majority class": MAJORITY}
        | ({"the paper, read off by eye": {"marker": "o"} | PAPER} if compared else {}),
    )
    return figure


def draw_zero_shot(found: Sequence[Behaviour]) -> "Figure":
    """Relative task performance by pre-training update on a log axis: Transformer solid, LSTM
    dashed, bands of one standard error.
    """
    from matplotlib.figure import Figure

    if not found:
        return drawing.empty(
            "No zero-shot set is scored here\n(params.yaml: zero_shot is empty).", EMPTY_SIZE
        )
    figure = Figure(figsize=(drawing.INCHES_WIDE, RIGHT_INCHES_HIGH), layout="constrained")
    axes = figure.add_subplot(
        xlabel="pre-training updates",
        xscale="log",
        ylabel="relative task performance\n(0: random, 1: state of the art)",
    )
    drawing.bare_axes(axes)
    axes.axhline(0, color=drawing.GREY, linewidth=0.8)
    ends, keys = [], dict[str, dict[str, Any]]()
    for behaviour in found:
        colour, marker = SET_STYLES[behaviour.set]
        own, scale = behaviour.network == "transformer", behaviour.scale
        at = [point.update for point in behaviour.points]
        values = [normalised(point.score, scale) for point in behaviour.points]
        errors = [normalised_error(point.standard_error, scale) for point in behaviour.points]
        axes.fill_between(
            at,
            [value - error for value, error in zip(values, errors, strict=True)],
            [value + error for value, error in zip(values, errors, strict=True)],
            color=colour,
            alpha=BAND if own else BAND / 2,
            linewidth=0,
        )
        style: Style = {
            "linestyle": drawing.NETWORK_DASHES[behaviour.network],
            "linewidth": 1.5 if own else 1.1,
            "markersize": 3.6 if own else 3.0,
            "markeredgewidth": 0.8,
        }
        face: Style = {} if own else {"markerfacecolor": "white"}
        axes.plot(at, values, color=colour, marker=marker, **style, **face)
        keys[drawing.NETWORK_TITLES[behaviour.network]] = {"marker": "o"} | style | face
        if own:
            ends.append((values[-1], scale.behaviour.replace(" ", "\n", 1), colour, marker))
        if own and not behaviour.made_up:
            keys["the paper's Transformer, read off by eye"] = {"marker": "o"} | PAPER
            keys["the paper's Transformer, read off by eye"] |= {"linestyle": "none"}
            axes.plot(
                1.03,
                FIGURE2_ZERO_SHOT[behaviour.set],
                color=colour,
                marker=marker,
                **PAPER,
                clip_on=False,
                transform=axes.get_yaxis_transform(),
            )
    axes.margins(x=0.02)
    _label_ends(axes, ends, 1.075, RIGHT_INCHES_HIGH)
    _legend(figure, "± one standard error", keys)
    return figure


def _times(factor: float) -> Any:
    return lambda count: count * factor


def _label_ends(
    axes: "Axes", ends: Sequence[tuple[float, str, str, str]], place: float, inches: float
) -> None:
    """Names of two lines behind their markers to the right of the curves, at their last values,
    moved apart where they would overlap.

    `ends` are value, name, colour and marker; `place` is a share of the axes' width; the figure is
    so many `inches` high.
    """
    low, high = axes.get_ylim()
    lines_high = LABEL_LINES * drawing.POINTS / POINTS_AN_INCH
    gap = lines_high / (inches - OTHERS_HIGH) * (high - low)
    within = [min(max(value, low + gap / 2), high - gap / 2) for value, *_ in ends]
    beside: dict[str, Any] = {"clip_on": False, "transform": axes.get_yaxis_transform()}
    for value, (_, text, colour, marker) in zip(drawing.apart(within, gap), ends, strict=True):
        axes.plot(place, value, marker, color=colour, markersize=3.6, **beside)
        axes.text(place + 0.025, value, text, color=colour, va="center", **beside)
    axes.set_ylim(low, high)


def _legend(figure: "Figure", band: str, lines: dict[str, dict[str, Any]]) -> None:
    """What each kind of line means, and the band where there is one."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys = [Line2D([], [], color="black", label=label, **style) for label, style in lines.items()]
    patches = [Patch(label=band, color="black", alpha=BAND, linewidth=0)] if band else []
    figure.legend(
        handles=[*keys, *patches],
        loc="outside lower center",
        ncols=2,
        frameon=False,
        columnspacing=1.4,
    )
