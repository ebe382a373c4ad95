"""Figure 2 drawn: layers transferred (left), zero-shot behaviours over pre-training (right); ours,
and the paper's by eye.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpt1.results import drawing
from gpt1.results.bootstrap import COVERAGE
from gpt1.results.paper import FIGURE2_LAYERS, FIGURE2_ZERO_SHOT
from gpt1.results.transfer import Transferred
from gpt1.results.words import counted
from gpt1.results.zero_shot import Behaviour, normalised, normalised_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT_SIZE, RIGHT_SIZE, EMPTY_SIZE = (
    (drawing.INCHES_WIDE, 3.5),
    (drawing.INCHES_WIDE, 3.9),
    (drawing.INCHES_WIDE, 1.2),
)
PAPER_LAYERS = max(layers for curve in FIGURE2_LAYERS.values() for layers, _ in curve)
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
FAINT, BAND = 0.45, 0.16
BESIDE = (
    0.017  # share of the axis by which the seeds stand beside their mean, which would cover them
)
OTHERS_HIGH = 1.2  # inches that axis titles and legend take
LABEL_LINES, POINTS_AN_INCH = 2.5, 72
BY_EYE = "the paper, read off by eye"


def left(curves: Sequence[Transferred], layers: int) -> "Figure":
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
    figure = Figure(figsize=LEFT_SIZE, layout="constrained")
    metrics = sorted({curve.metric for curve in curves})
    axes = figure.add_subplot(
        xlabel="layers transferred",
        ylabel=f"{' or '.join(metrics)} × 100",
        xlim=(-0.025 * layers, 1.035 * layers),
    )
    drawing.plain(axes)
    others = iter(OTHER_STYLES)
    ends, compared = [], False
    for curve in curves:
        colour, marker = TASK_STYLES.get(curve.task) or next(others, OTHER_STYLES[-1])
        at, means = list(curve.points), [result.estimate.value for result in curve.points.values()]
        lows, highs = zip(
            *(result.estimate.interval for result in curve.points.values()), strict=True
        )
        axes.fill_between(at, lows, highs, color=colour, alpha=BAND, linewidth=0)
        for count, result in curve.points.items():
            if len(curve.seeds) > 1:
                axes.plot(
                    [count + BESIDE * layers] * len(curve.seeds),
                    list(result.sample.scores.values()),
                    marker,
                    color=colour,
                    alpha=FAINT,
                    markersize=2.6,
                    markeredgewidth=0,
                )
        axes.plot(at, means, color=colour, marker=marker, markersize=4.5, linewidth=1.5)
        majority = curve.measured.majority
        axes.plot(
            [0, layers], [majority, majority], color=colour, linewidth=0.8, linestyle=(0, (1, 2))
        )
        split = curve.measured.split.split("_")[0]
        ends.append(
            (
                means[-1],
                f"{curve.title} {split}\n{counted(len(curve.seeds), 'seed')}",
                colour,
                marker,
            )
        )
        if curve.task in FIGURE2_LAYERS and not curve.made_up:
            compared = True
            shares, scores = zip(
                *(
                    (count / PAPER_LAYERS * layers, score)
                    for count, score in FIGURE2_LAYERS[curve.task]
                ),
                strict=True,
            )
            axes.plot(
                shares,
                scores,
                color=colour,
                alpha=FAINT,
                linewidth=1.0,
                marker=marker,
                markerfacecolor="white",
                markersize=4.5,
                clip_on=False,
            )
    if compared and layers != PAPER_LAYERS:
        top = axes.secondary_xaxis(
            "top", functions=(_times(PAPER_LAYERS / layers), _times(layers / PAPER_LAYERS))
        )
        top.set_xlabel(f"the paper's, of {PAPER_LAYERS}", color=drawing.GREY)
        top.tick_params(colors=drawing.GREY)
        top.spines["top"].set_color(drawing.GREY)
        top.set_ticks(range(0, PAPER_LAYERS + 1, 3))
    axes.set_xticks(range(layers + 1) if layers <= PAPER_LAYERS else range(0, layers + 1, 2))
    _label_ends(axes, ends, 1.03, LEFT_SIZE[1] - OTHERS_HIGH)
    several = any(len(curve.seeds) > 1 for curve in curves)
    keys = [
        _key(
            "mean of the seeds" if several else "one seed: a dip may be its own",
            color="black",
            marker="o",
            markersize=4.5,
            linewidth=1.5,
        ),
        *(
            [
                _key(
                    "each seed",
                    color="black",
                    marker="o",
                    markersize=2.6,
                    linestyle="none",
                    alpha=FAINT,
                    markeredgewidth=0,
                )
            ]
            if several
            else []
        ),
        _band(f"{COVERAGE:.0%} interval" + ("" if several else " over examples alone")),
        _key("majority class", color="black", linewidth=0.8, linestyle=(0, (1, 2))),
    ]
    if compared:
        keys.append(
            _key(
                BY_EYE,
                color="black",
                alpha=FAINT,
                linewidth=1.0,
                marker="o",
                markerfacecolor="white",
                markersize=4.5,
            )
        )
    figure.legend(
        handles=keys, loc="outside lower center", ncols=2, frameon=False, columnspacing=1.4
    )
    return figure


def right(found: Sequence[Behaviour]) -> "Figure":
    """Relative task performance by pre-training update on a log axis: Transformer solid, LSTM
    dashed, bands of one standard error.
    """
    from matplotlib.figure import Figure

    if not found:
        return drawing.empty(
            "No zero-shot set is scored here\n(params.yaml: zero_shot is empty).", EMPTY_SIZE
        )
    figure = Figure(figsize=RIGHT_SIZE, layout="constrained")
    axes = figure.add_subplot(
        xlabel="pre-training updates",
        xscale="log",
        ylabel="relative task performance\n(0: random, 1: state of the art)",
    )
    drawing.plain(axes)
    axes.axhline(0, color=drawing.GREY, linewidth=0.8)
    ends = []
    for behaviour in found:
        colour, marker = SET_STYLES[behaviour.set]
        own = behaviour.network == "transformer"
        at = [point.update for point in behaviour.points]
        values = [normalised(point.score, behaviour.scale) for point in behaviour.points]
        errors = [
            normalised_error(point.standard_error, behaviour.scale) for point in behaviour.points
        ]
        axes.fill_between(
            at,
            [value - error for value, error in zip(values, errors, strict=True)],
            [value + error for value, error in zip(values, errors, strict=True)],
            color=colour,
            alpha=BAND if own else BAND / 2,
            linewidth=0,
        )
        axes.plot(
            at,
            values,
            color=colour,
            linestyle=drawing.NETWORK_DASHES[behaviour.network],
            linewidth=1.5 if own else 1.1,
            marker=marker,
            markersize=3.6 if own else 3.0,
            markerfacecolor=colour if own else "white",
            markeredgewidth=0.8,
        )
        if own:
            ends.append(
                (values[-1], behaviour.scale.behaviour.replace(" ", "\n", 1), colour, marker)
            )
        if own and not behaviour.made_up:
            axes.plot(
                [1.03],
                [FIGURE2_ZERO_SHOT[behaviour.set]],
                marker,
                color=colour,
                alpha=FAINT,
                markerfacecolor="white",
                markersize=5,
                clip_on=False,
                transform=axes.get_yaxis_transform(),
            )
    axes.margins(x=0.02)
    _label_ends(axes, ends, 1.075, RIGHT_SIZE[1] - OTHERS_HIGH)
    keys = [
        _key(
            drawing.NETWORK_TITLES[network],
            color="black",
            linestyle=drawing.NETWORK_DASHES[network],
            linewidth=1.3,
            marker="o",
            markersize=3.6,
            markerfacecolor="black" if network == "transformer" else "white",
            markeredgewidth=0.8,
        )
        for network in dict.fromkeys(behaviour.network for behaviour in found)
    ]
    keys.append(_band("± one standard error"))
    if any(not behaviour.made_up for behaviour in found):
        keys.append(
            _key(
                "the paper's Transformer, read off by eye",
                color="black",
                alpha=FAINT,
                marker="o",
                markerfacecolor="white",
                markersize=5,
                linestyle="none",
            )
        )
    figure.legend(
        handles=keys, loc="outside lower center", ncols=2, frameon=False, columnspacing=1.4
    )
    return figure


def _label_ends(
    axes: "Axes", ends: Sequence[tuple[float, str, str, str]], place: float, inches: float
) -> None:
    """Names of two lines behind their markers to the right of the curves, at their last values,
    moved apart where they would overlap.

    `ends` are value, name, colour and marker; `place` is a share of the axes' width; the axes are
    about so many `inches` high.
    """
    low, high = axes.get_ylim()
    gap = LABEL_LINES * drawing.POINTS / (POINTS_AN_INCH * inches) * (high - low)
    half = gap / 2
    moved = drawing.apart([min(max(value, low + half), high - half) for value, *_ in ends], gap)
    for value, (_, text, colour, marker) in zip(moved, ends, strict=True):
        axes.plot(
            [place],
            [value],
            marker,
            color=colour,
            markersize=3.6,
            clip_on=False,
            transform=axes.get_yaxis_transform(),
        )
        axes.annotate(
            text,
            (place + 0.025, value),
            xycoords=("axes fraction", "data"),
            color=colour,
            va="center",
            annotation_clip=False,
        )
    axes.set_ylim(low, high)


def _times(factor: float) -> Any:
    return lambda count: count * factor


def _key(label: str, **style: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def _band(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(label=label, color="black", alpha=BAND, linewidth=0)
