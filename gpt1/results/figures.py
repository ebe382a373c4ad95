"""Table 5 and Figure 2 as pictures."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from gpt1.results.columns import FULL, averaged
from gpt1.results.paper import AVERAGE, FIGURE2_LAYERS, TABLE5, TABLE5_ROWS, ZERO_SHOT
from gpt1.results.plotting import BLUE, GREEN, GREY, NETWORK_DASHES, PURPLE, VERMILION, panels
from gpt1.results.tables import TITLES, average

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.figure import Figure

SET_COLOURS = dict(zip(ZERO_SHOT.index, (BLUE, VERMILION, GREEN, PURPLE), strict=True))
SYSTEMS = {FULL: BLUE, "no_aux_lm": GREEN, "lstm": VERMILION, "no_pretraining": GREY}


def plot_table5(scores: pd.DataFrame) -> "Figure":
    """A group of bars a column, this run's with its deviation over seeds above the paper's."""
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
        axes.grid(visible=False, axis="x")
    figure.legend(
        paper.get_legend_handles_labels()[0],
        [TITLES[system] for system in SYSTEMS],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figure


def plot_layers(scores: pd.DataFrame, layers: int) -> "Figure":
    """Figure 2, left: score by the number of layers transferred, of `layers` in all."""
    figure, [axes] = panels(1, 1, (4.2, 2.9))
    layer_scores = scores[scores["update"].isna()]
    tasks = layer_scores.loc[layer_scores["system"] == "layers-0", "task"].unique()
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
    axes.legend(frameon=False)
    return figure


def relative(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of zero-shot sets with their `relative` performance, and its standard error as
    `band`: 0 is random, 1 the state of the art before the paper (Figure 2, right).
    """
    zero_shot = scores[scores["update"].notna() & scores["score"].notna()].astype({"update": int})
    zero_shot = zero_shot.join(ZERO_SHOT, on="task")
    span = zero_shot["state_of_the_art"] - zero_shot["random"]
    return zero_shot.assign(
        relative=(zero_shot["score"] - zero_shot["random"]) / span, band=zero_shot["error"] / span
    )


def plot_zero_shot(scores: pd.DataFrame) -> "Figure":
    """Figure 2, right: relative performance over pre-training, the mean over its seeds."""
    figure, [axes] = panels(1, 1, (5.2, 3.2))
    for (network, name), curve in relative(scores).groupby(["system", "task"]):
        means, ours = curve.groupby("update")[["relative", "band"]].mean(), network == "transformer"
        style = {"color": SET_COLOURS[name], "linestyle": NETWORK_DASHES[network]}
        axes.plot(means["relative"], label=curve["title"].iloc[0] if ours else None, **style)
        if ours:
            ends = (means["relative"] + sign * means["band"] for sign in (-1, 1))
            axes.fill_between(means.index, *ends, color=style["color"], alpha=0.15, linewidth=0)
    axes.legend(frameon=False)
    axes.set(xscale="log", xlabel="updates (dashed: LSTM)", ylabel="relative performance")
    return figure
