"""Pilots by which profile small was chosen: tables for docs/what_it_takes.md, and a picture of their
held-out loss against tokens and against minutes of one core, with the curves through them. `python
docs/what_it_takes.py` draws the picture anew.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from loss_curves import Array, Law, interval
from pilot_curves import NONE, RECIPE, crossings, grid, laws, pilots, points, speeds

from gpt1.results.drawing import (
    GREY,
    LIGHT,
    NETWORK_COLOURS,
    NETWORK_DASHES,
    NETWORK_TITLES,
    panels,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = Path(__file__).with_suffix(".svg")
FIVE_GRAM = float(np.log(76.89))  # nats a token, benchmarks/ngrams.py on the same text
SHOWN = {False: (0.9, 60.0), True: (0.65, 60.0)}  # million tokens, and by time: minutes
DIGITS = 4  # so that another processor's last bits draw the same picture


def diary() -> str:
    """Every pilot pre-training."""
    rows = [
        (
            NETWORK_TITLES[row.network],
            row.changes.replace("pretrain.", "").replace("model.", ""),
            f"{row.parameters / 1e6:.2f}",
            f"{row.tokens / 1e6:.1f}",
            f"{row.nats_a_token:.3f}",
            f"{np.exp(row.nats_a_token):.1f}",
            f"{row.seconds:,.0f}",
            NONE if np.isnan(row.processor_seconds) else f"{row.processor_seconds:,.0f}",
            row.processor.split("(")[0],
        )
        for row in pilots().itertuples()
    ]
    titles = ("", "changed", "M parameters", "M tokens", "nats a token", "perplexity", "s")
    return grid((*titles, "s of a core", "processor"), rows)


def finetuning_diary() -> str:
    """Every pilot fine-tuning."""
    found = pd.read_csv(PICTURE.with_name("pilot_finetunings.csv"), dtype={"system": str})
    return grid(
        ("system", "changed", "dev × 100", "updates", "s"),
        [
            (row.system, row.changes, f"{100 * row.dev:.1f}", str(row.updates), str(row.seconds))
            for row in found.itertuples()
        ],
    )


def picture() -> str:
    """Two panels: loss by tokens, and by minutes of one core."""
    return svg(_drawn)


def _drawn() -> "Figure":
    figure, (left, right) = panels(1, 2, (6.4, 3.2))
    right.sharey(left)
    for axes, by_time in ((left, False), (right, True)):
        speed = speeds() if by_time else dict.fromkeys(RECIPE, 1.0)
        longest = max(points(network)[0].max() / speed[network] for network in RECIPE)
        axes.axvspan(longest * 1.06, 1e3, color=LIGHT, alpha=0.45, linewidth=0)
        for network, law in laws().items():
            _curve(axes, network, law, speed[network], by_time)
        for other, lengths in crossings(0, by_time).items():
            _meeting(axes, lengths, laws()[other], speed[other], NETWORK_COLOURS[other])
        axes.axhline(FIVE_GRAM, color=GREY, linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    left.text(
        0.02, FIVE_GRAM, "5-gram", color=GREY, va="bottom", transform=left.get_yaxis_transform()
    )
    left.set(xlabel="million tokens", ylabel="held-out nats a token", xlim=SHOWN[False])
    right.set(xlabel="minutes of one core", xlim=SHOWN[True], ylim=(3.75, 5.5))
    left.legend(frameon=False, loc="upper right")
    right.text(
        0.98,
        0.98,
        "grey: extrapolated",
        color=GREY,
        ha="right",
        va="top",
        transform=right.transAxes,
    )
    return figure


def _curve(axes: "Axes", network: str, law: Law, speed: float, by_time: bool) -> None:
    """A network's pilots, its curve and where nineteen of twenty curves lie. Other networks than
    the recipe's are no curve's, and of a speed of their own.
    """
    colour, found, shown = NETWORK_COLOURS[network], pilots(), np.geomspace(*SHOWN[by_time], 100)
    nats = law.at(shown * speed)
    low, high = np.quantile(nats[1:], (0.025, 0.975), axis=0)
    x = np.round(shown, DIGITS)
    axes.fill_between(
        x, np.round(low, DIGITS), np.round(high, DIGITS), color=colour, alpha=0.18, linewidth=0
    )
    axes.plot(
        x,
        np.round(nats[0], DIGITS),
        color=colour,
        linestyle=NETWORK_DASHES[network],
        linewidth=1.1,
        label=NETWORK_TITLES[network],
    )
    mine = found[found["network"] == network]
    for rows, fill in (
        (mine[~mine["recipe"]][: 0 if by_time else None], "none"),
        (mine[mine["recipe"]], colour),
    ):
        axes.scatter(
            np.round(rows["tokens"] / 1e6 / speed, DIGITS),
            rows["nats_a_token"],
            s=11,
            facecolors=fill,
            edgecolors=colour,
            linewidths=0.8,
            zorder=3,
        )


def _meeting(axes: "Axes", lengths: Array, law: Law, speed: float, colour: str) -> None:
    """Where the Transformer meets an LSTM, and the interval."""
    estimate, low, high = np.round(interval(lengths), DIGITS)
    nats = round(float(law.at(estimate * speed)[0, 0]), DIGITS)
    axes.plot([low, min(high, 1e3)], [nats, nats], color="black", linewidth=0.8, zorder=4)
    axes.plot(
        estimate, nats, marker="D", markersize=4, color="white", markeredgecolor=colour, zorder=5
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
