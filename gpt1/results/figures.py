"""Table 5, Figure 2 and the curves as pictures that colour-blind people can read; equal numbers
give equal bytes.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpt1.results.paper import AVERAGE, FIGURE2_LAYERS, TABLE5, TABLE5_ROWS, ZERO_SHOT
from gpt1.results.tables import FULL, TITLES, average, averaged

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008: told apart with any colour vision.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"
GREY, LIGHT = "#7a7a7a", "#e4e4e4"
NETWORK_TITLES = {"transformer": "Transformer", "lstm": "LSTM", "lstm_equal": "LSTM of equal size"}
NETWORK_STYLES: dict[str, Any] = {
    "transformer": {"color": BLUE, "linestyle": "-"},
    "lstm": {"color": VERMILION, "linestyle": (0, (4, 1.6))},
    "lstm_equal": {"color": ORANGE, "linestyle": (0, (1, 1.2))},
}
STYLE: Any = {  # a light grid and no frame
    "svg.hashsalt": "gpt1",
    "svg.fonttype": "none",
    "font.size": 8.0,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
POINTS_PER_E = 15  # of a drawn curve: every point of a million updates would blacken the paper
SET_COLOURS = dict(zip(ZERO_SHOT.index, (BLUE, VERMILION, GREEN, PURPLE), strict=True))
SYSTEMS = {FULL: BLUE, "no_aux_lm": GREEN, "lstm": VERMILION, "no_pretraining": GREY}


def plot_table5(scores: pd.DataFrame) -> "Figure":
    """Plot a group of bars per column: this run's above the paper's."""
    keys = [(AVERAGE, "mean"), *((column.title, column.metric) for column in averaged())]
    grouped = pd.concat([scores, average(scores)]).groupby(["system", "column", "metric"])["score"]
    means, deviations = (
        statistic.unstack("system").reindex(keys, columns=list(SYSTEMS)).set_axis(list(TABLE5))
        for statistic in (grouped.mean(), grouped.std())
    )
    figure, (ours, paper) = panels(2, 1, (7.2, 3.9))
    style: Any = {
        "color": list(SYSTEMS.values()),
        "alpha": 0.55,
        "width": 0.8,
        "rot": 0,
        "legend": False,
    }
    means.plot.bar(ax=ours, yerr=deviations, ecolor=GREY, **style)
    TABLE5.loc[[TABLE5_ROWS[system] for system in SYSTEMS]].T.plot.bar(ax=paper, **style)
    of_seeds = ", ± deviation over seeds" if deviations.count().any() else ""
    for axes, title in ((ours, f"this run{of_seeds}"), (paper, "the paper (QQP: F1)")):
        axes.set(ylabel="score × 100", ylim=(min(0, axes.get_ylim()[0]), 103))
        axes.set_title(title, loc="left", fontsize=9)
        axes.grid(visible=False)
    figure.legend(
        paper.get_legend_handles_labels()[0],
        [TITLES[system] for system in SYSTEMS],
        loc="outside lower center",
        ncols=4,
    )
    return figure


def plot_layers(scores: pd.DataFrame, layers: int) -> "Figure":
    """Plot Figure 2, left: score by layers transferred, of `layers` in all."""
    figure, [axes] = panels(1, 1, (4.2, 2.9))
    layer_scores = scores[scores["update"].isna()]
    tasks = layer_scores["task"].unique()
    for task, colour in zip(tasks, (BLUE, VERMILION, GREEN, PURPLE) * 3, strict=False):
        task_scores = layer_scores[layer_scores["task"] == task]
        count = (
            task_scores["system"].str.removeprefix("layers-").replace(FULL, str(layers)).astype(int)
        )
        means = task_scores.groupby(count)["score"].mean()
        axes.plot(
            means.index, means, color=colour, label=f"{task_scores['column'].iloc[0]}, this run"
        )
        axes.plot(count, task_scores["score"], "o", color=colour, markersize=2.5)
        if task in FIGURE2_LAYERS and (task_scores["source"] != "made up").all():
            named = f"{task_scores['column'].iloc[0]}, the paper's ends"
            axes.plot((0, layers), FIGURE2_LAYERS[task], ":", color=colour, label=named)
    axes.set(xlabel="layers transferred", ylabel="score × 100")
    axes.set_xticks(range(layers + 1))
    axes.legend()
    return figure


def relative(scores: pd.DataFrame) -> pd.DataFrame:
    """Return zero-shot scores with their `relative` performance (Figure 2, right): 0 is random, 1
    the state of the art before the paper. `band` is its standard error.
    """
    zero_shot = scores[scores["update"].notna() & scores["score"].notna()].astype({"update": int})
    zero_shot = zero_shot.join(ZERO_SHOT, on="task")
    span = zero_shot["state_of_the_art"] - zero_shot["random"]
    return zero_shot.assign(
        relative=(zero_shot["score"] - zero_shot["random"]) / span, band=zero_shot["error"] / span
    )


def plot_zero_shot(scores: pd.DataFrame) -> "Figure":
    """Plot Figure 2, right: relative performance over pre-training."""
    figure, [axes] = panels(1, 1, (5.2, 3.2))
    for (network, name), curve in relative(scores).groupby(["system", "task"]):
        means, ours = curve.groupby("update")[["relative", "band"]].mean(), network == "transformer"
        style = NETWORK_STYLES[network] | {"color": SET_COLOURS[name]}
        axes.plot(means["relative"], label=curve["title"].iloc[0] if ours else None, **style)
        if ours:
            ends = (means["relative"] + sign * means["band"] for sign in (-1, 1))
            axes.fill_between(means.index, *ends, color=style["color"], alpha=0.15, linewidth=0)
    axes.legend()
    axes.set(xscale="log", xlabel="updates (dashed: LSTM)", ylabel="relative performance")
    return figure


def thinned(curves: pd.DataFrame) -> pd.DataFrame:
    """Average each network's training loss over neighbouring updates, evenly on a log scale."""
    training = curves.dropna(subset="loss")
    bins = (POINTS_PER_E * np.log(training["update"].astype(float))).astype(int)
    grouped = training.groupby([training["network"], bins], sort=False)
    return grouped[["update", "loss", "learning_rate"]].mean().reset_index(0).reset_index(drop=True)


def plot_curves(curves: pd.DataFrame) -> "Figure":
    """Plot training and held-out loss, and the learning rate, by update."""
    figure, (losses, rates) = panels(1, 2, (7.2, 2.9))
    for network, curve in curves.groupby("network", sort=False):
        style = NETWORK_STYLES[network]
        training, heldout = thinned(curve), curve.dropna(subset="heldout_loss")
        losses.plot(training["update"], training["loss"], label=NETWORK_TITLES[network], **style)
        losses.plot(
            heldout["update"], heldout["heldout_loss"], "o", color=style["color"], markersize=3
        )
        losses.legend()
        rates.plot(training["update"], training["learning_rate"], **style)
    losses.set(xscale="log", xlabel="updates (points: held out)", ylabel="loss, nats per token")
    rates.set(xlabel="updates", ylabel="learning rate")
    return figure


def save_svg(path: Path, plot: "Callable[[], Figure]") -> None:
    """Write the figure that `plot` makes as SVG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with mpl.rc_context(STYLE):
        text = io.StringIO()
        FigureCanvasSVG(plot()).print_svg(
            text, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )  # type: ignore[no-untyped-call]
    path.write_text(text.getvalue(), encoding="utf-8")


def panels(rows: int, columns: int, inches: tuple[float, float]) -> "tuple[Figure, list[Axes]]":
    """Return a figure and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)
