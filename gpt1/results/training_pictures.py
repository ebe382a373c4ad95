"""Training drawn: schedules of the learning rate, pre-training curves, parameters by component."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpt1.params.schema import Schedule
from gpt1.results import drawing
from gpt1.results.training import Trained, smoothed, thinned
from gpt1.train.schedules import schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATES_SIZE, CURVES_SIZE, PARAMETERS_INCHES = (6.2, 2.4), (drawing.INCHES_WIDE, 4.3), 0.72
# Points of a line, markers on one: a million updates at all their points would blacken the paper.
DRAWN, MARKED = 600, 16
WARMUP_SHOWN = 2.5  # its panel ends at so many times the warm-up
THOUSANDS_FROM = 2_500
RATE_STYLES: tuple[tuple[str, Any], ...] = (
    (drawing.BLUE, "-"),
    (drawing.VERMILION, (0, (4, 1.6))),
    (drawing.GREEN, (0, (1, 1.2))),
    (drawing.PURPLE, "-."),
)
COMPONENT_COLOURS = {  # from a network's input to its output
    "token_embeddings": drawing.SKY,
    "position_embeddings": drawing.YELLOW,
    "attention": drawing.ORANGE,
    "feed_forward": drawing.GREEN,
    "layer_norms": drawing.PURPLE,
    "recurrent": drawing.VERMILION,
    "projection": drawing.BLUE,
}
LABELLED, NAMED = (
    0.09,
    0.22,
)  # shares of the longest bar from which a component has room for its number, and for its name
PERPLEXITIES = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
MOST_PERPLEXITIES = 8
RAW = 0.28


@dataclass(frozen=True)
class RateSchedule:
    """A schedule of the learning rate: the highest rate, its name, and which share of all updates
    warms it up.
    """

    label: str
    peak: float
    name: Schedule
    warmup: float

    def at(self, updates: Sequence[int], of: int) -> list[float]:
        """Learning rates at these of `of` updates, counted from 1."""
        return [self.peak * schedule(self.name, update, of, self.warmup) for update in updates]


def learning_rates(
    pretraining: RateSchedule, updates: int, finetuning: Sequence[RateSchedule]
) -> "Figure":
    """Pre-training's rate by update, fine-tuning's by the share of updates done; beside each its
    warm-up, too short to be seen there.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=RATES_SIZE, layout="constrained")
    left, left_start, right, right_start = figure.subplots(1, 4, width_ratios=(2.2, 1, 2.2, 1))
    left.set_ylabel("learning rate")
    _schedule(left, left_start, [pretraining], updates, lambda update: update, "update")
    _schedule(
        right,
        right_start,
        finetuning,
        100 * DRAWN,
        lambda update: update / DRAWN,
        "share of updates, %",
    )
    alike = len({one.name for one in finetuning}) == 1  # else the legend names each
    titles = (
        f"pre-training: {pretraining.name}",
        f"fine-tuning: {finetuning[0].name}" if alike else "fine-tuning",
    )
    for axes, title in zip((left, right), titles, strict=True):
        axes.set_title(
            title, loc="left", fontsize=drawing.POINTS + 1, pad=14
        )  # above the axis' power of ten
    if len(finetuning) > 1:
        figure.legend(
            *right.get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False
        )
    return figure


def _schedule(
    whole: "Axes",
    start: "Axes",
    rates: Sequence[RateSchedule],
    of: int,
    scale: Callable[[int], float],
    xlabel: str,
) -> None:
    """The whole schedule, and its first updates up to WARMUP_SHOWN times the shortest warm-up;
    `scale` gives x.
    """
    from matplotlib.ticker import EngFormatter

    warmups = [one.warmup for one in rates if one.warmup > 0]
    first = max(2, min(of, round(WARMUP_SHOWN * min(warmups, default=1.0) * of)))
    for axes, last in ((whole, of), (start, first)):
        shown = _updates(1, last)
        for one, (colour, dashes) in zip(rates, RATE_STYLES, strict=False):
            axes.plot(
                [scale(update) for update in shown],
                one.at(shown, of),
                color=colour,
                linestyle=dashes,
                linewidth=1.5,
                label=f"{one.label}: {one.name}",
            )
        drawing.bare_axes(axes)
        axes.set(
            ylim=(0, 1.06 * max(one.peak for one in rates)),
            xlabel=xlabel if axes is whole else "warm-up",
        )
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=5 if axes is whole else 3)
        if scale(last) >= THOUSANDS_FROM:
            axes.xaxis.set_major_formatter(EngFormatter())  # 250 k, 1 M
    start.tick_params(labelleft=False)
    whole.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    start.set_visible(bool(warmups))


def _updates(first: int, last: int) -> list[int]:
    """At most DRAWN updates from first to last, both among them."""
    return [int(update) for update in np.unique(np.linspace(first, last, DRAWN).round())]


def pretraining_curves(trained: Sequence[Trained], clipped_at: float) -> "Figure":
    """Loss in nats a token, raw, smoothed and held out, by update and by token, with perplexity;
    below it the gradient's norm.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=CURVES_SIZE, layout="constrained")
    losses, norms = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.25))
    for one in trained:
        style = {
            "color": drawing.NETWORK_COLOURS[one.network],
            "linestyle": drawing.NETWORK_DASHES[one.network],
            "linewidth": 1.4,
        }
        title, at = drawing.NETWORK_TITLES[one.network], one.at[thinned(one.at, DRAWN)]
        for axes, values in ((losses, one.loss), (norms, one.gradient_norm)):
            raw = {"linestyle": "-", "linewidth": 0.5, "alpha": RAW}
            axes.plot(at, values[np.isin(one.at, at)], **style | raw)
            axes.plot(at, smoothed(one.at, values, at), **style, label=f"{title}, training")
        marked = thinned(one.heldout_at, MARKED)
        losses.plot(
            one.heldout_at[marked],
            one.heldout_loss[marked],
            "o" if one.network == "transformer" else "s",
            color=style["color"],
            markersize=4,
            markerfacecolor="white",
            label=f"{title}, held out",
        )
    norms.axhline(clipped_at, color=drawing.GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    norms.annotate(
        "clipped above",
        (0.005, clipped_at),
        (0, -2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        color=drawing.GREY,
        fontsize=drawing.POINTS - 1,
        va="top",
    )
    losses.set(xscale="log", ylabel="loss, nats a token")
    norms.set(yscale="log", xlabel="updates", ylabel="gradient norm")
    norms.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    norms.yaxis.set_major_formatter("{x:g}")
    norms.yaxis.set_minor_locator(NullLocator())
    for axes in (losses, norms):
        drawing.bare_axes(axes)
    ratio = trained[0].tokens_an_update
    top = losses.secondary_xaxis(
        "top", functions=(lambda update: update * ratio, lambda tokens: tokens / ratio)
    )
    top.set_xlabel("tokens")
    right = losses.secondary_yaxis("right")
    low, high = losses.get_ylim()
    shown = [value for value in PERPLEXITIES if low <= np.log(value) <= high]
    if len(shown) > MOST_PERPLEXITIES:
        shown = [value for value in shown if str(value).startswith("1")]
    right.set_yticks([float(np.log(value)) for value in shown], [f"{value:,}" for value in shown])
    right.set_ylabel("perplexity a token")
    losses.legend(frameon=False, loc="best", handlelength=2.6)
    return figure


def in_order(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    """A network's components from its input to its output, unknown ones last, without the total."""
    known = list(COMPONENT_COLOURS)
    names = sorted(
        parts.keys() - {"total"},
        key=lambda name: (known.index(name) if name in known else len(known), name),
    )
    return [(name, parts[name]) for name in names]


def parameters(counts: Mapping[str, Mapping[str, int]]) -> "Figure":
    """One bar a network, its components from left to right in millions; the total behind it."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(drawing.INCHES_WIDE, 1.15 + PARAMETERS_INCHES * len(counts)), layout="constrained"
    )
    longest = max(parts["total"] for parts in counts.values())
    unit, word = (
        (1e6, "million parameters")
        if longest >= 1e6
        else (1e3, "thousand parameters")
        if longest >= 1e4
        else (1, "parameters")
    )
    axes = figure.add_subplot(xlabel=word, xlim=(0, 1.13 * longest / unit))
    drawing.bare_axes(axes)
    axes.grid(visible=False, axis="y")
    named = set()
    for place, parts in enumerate(counts.values()):
        start = 0.0
        for name, count in in_order(parts):
            colour = COMPONENT_COLOURS.get(name, drawing.GREY)
            axes.barh(
                place,
                count / unit,
                0.72,
                left=start,
                color=colour,
                edgecolor="white",
                linewidth=0.8,
                label=name.replace("_", " ") if name not in named else f"_{name}",
            )
            words = name.replace("_", "\n") + "\n" if count > NAMED * longest else ""
            if count > LABELLED * longest:
                axes.text(
                    start + count / unit / 2,
                    place,
                    f"{words}{count / unit:.3g}",
                    ha="center",
                    va="center",
                    linespacing=1.0,
                    color="white" if colour == drawing.BLUE else "black",
                )
            named.add(name)
            start += count / unit
        axes.text(start, place, f" {start:.4g}", ha="left", va="center", fontweight="bold")
    axes.set_yticks(range(len(counts)), [drawing.NETWORK_TITLES[network] for network in counts])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    figure.legend(
        loc="outside lower center", ncols=3, frameon=False, columnspacing=1.2, handlelength=1.2
    )
    return figure
