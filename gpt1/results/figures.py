"""Table 5 and Figure 2 as pictures."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpt1.results.columns import FULL, averaged
from gpt1.results.drawing import (
    BLUE,
    GREEN,
    GREY,
    NETWORK_DASHES,
    PURPLE,
    VERMILION,
    panels,
)
from gpt1.results.paper import FIGURE2_LAYERS, FIGURE2_ZERO_SHOT, TABLE5, ZERO_SHOT
from gpt1.results.tables import AVERAGE, average

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.figure import Figure

SET_COLOURS = dict(zip(ZERO_SHOT, (BLUE, VERMILION, GREEN, PURPLE), strict=True))
SYSTEMS = {
    FULL: ("full", BLUE),
    "no_aux_lm": ("no auxiliary objective", GREEN),
    "lstm": ("LSTM", VERMILION),
    "no_pretraining": ("no pre-training", GREY),
}
BAR = 0.2


def draw_table5(scores: pd.DataFrame) -> "Figure":
    """A group of bars a column, this run's with each seed above the paper's."""
    mine = scores[scores["score"].notna()]
    keys = [(AVERAGE, "mean"), *((one.title, one.metric) for one in averaged())]
    index = ["system", "column", "metric"]
    every = pd.concat([mine, average(mine)]).set_index(index)["score"].sort_index()
    means = every.groupby(level=index).mean()
    figure, (ours, paper) = panels(2, 1, (7.2, 3.9))
    rows = {FULL: TABLE5.full, **TABLE5.variants}
    for place, (system, (title, colour)) in enumerate(SYSTEMS.items()):
        at = np.arange(len(keys)) + (place - 1.5) * BAR
        bars: Any = {"width": BAR, "color": colour, "alpha": 0.55}
        ours.bar(at, [means.get((system, *key), np.nan) for key in keys], label=title, **bars)
        for x, key in zip(at, keys, strict=True):
            seeds = np.atleast_1d(every.get((system, *key), []))
            ours.plot([x] * len(seeds), seeds, "o", color=colour, markersize=2.2)
        row = rows[system]
        printed = np.array([TABLE5.printed_means[row.system], *row.scores], float)
        paper.bar(at, printed, **bars)
    for axes, title in ((ours, "this run: mean, and each seed"), (paper, "the paper (QQP: F1)")):
        axes.set(ylabel="score × 100", ylim=(0, 103))
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xticks(range(len(keys)), [title for title, _ in keys])
        axes.grid(visible=False, axis="x")
    ours.set_ylim(min(0, every.min() - 2), 103)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_layers(scores: pd.DataFrame, layers: int) -> "Figure":
    """Figure 2, left: score by the number of layers transferred, of `layers` in all."""
    figure, [axes] = panels(1, 1, (4.2, 2.9))
    mine = scores[scores["update"].isna()]
    tasks = mine.loc[mine["system"] == "layers-0", "task"].unique()
    for task, colour in zip(tasks, (BLUE, VERMILION, GREEN, PURPLE) * 3, strict=False):
        of = mine[mine["task"] == task]
        count = of["system"].str.removeprefix("layers-").replace(FULL, str(layers)).astype(int)
        means = of.groupby(count)["score"].mean()
        axes.plot(means.index, means, color=colour, label=f"{of['column'].iloc[0]}, this run")
        axes.plot(count, of["score"], "o", color=colour, markersize=2.5)
        if task in FIGURE2_LAYERS and (of["source"] != "made up").all():
            ends = FIGURE2_LAYERS[task]
            share = layers / max(one for one, _ in ends)
            x, y = [one * share for one, _ in ends], [score for _, score in ends]
            axes.plot(x, y, ":", color=colour, label=f"{of['column'].iloc[0]}, the paper's ends")
    axes.set(xlabel="layers transferred", ylabel="score × 100")
    axes.set_xticks(range(layers + 1))
    if len(tasks):
        axes.legend(frameon=False)
    return figure


def relative(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of zero-shot sets with their `relative` performance, and its standard error as
    `band`: 0 is random, 1 the state of the art before the paper (Figure 2, right).
    """
    mine = scores[scores["update"].notna() & scores["score"].notna()].astype({"update": int})
    scales = mine["task"].map(ZERO_SHOT)
    random = scales.map(lambda scale: scale.random).astype(float)
    span = scales.map(lambda scale: scale.state_of_the_art).astype(float) - random
    return mine.assign(relative=(mine["score"] - random) / span, band=mine["error"] / span)


def draw_zero_shot(scores: pd.DataFrame) -> "Figure":
    """Figure 2, right: relative performance over pre-training, the mean over its seeds."""
    figure, [axes] = panels(1, 1, (5.2, 3.2))
    for (network, name), mine in relative(scores).groupby(["system", "task"]):
        means, ours = mine.groupby("update")[["relative", "band"]].mean(), network == "transformer"
        style = {"color": SET_COLOURS[name], "linestyle": NETWORK_DASHES[network]}
        axes.plot(means["relative"], label=ZERO_SHOT[name].title if ours else None, **style)
        if ours:
            ends = (means["relative"] + sign * means["band"] for sign in (-1, 1))
            axes.fill_between(means.index, *ends, color=style["color"], alpha=0.15, linewidth=0)
        if ours and (mine["source"] != "made up").all():
            axes.axhline(FIGURE2_ZERO_SHOT[name], 0.97, color=style["color"])
    if axes.has_data():
        axes.set_xscale("log")
        axes.legend(frameon=False)
    axes.set(xlabel="updates (dashed: LSTM)", ylabel="relative performance")
    return figure
