"""Held-out loss against tokens and against seconds, of the pilots of docs/pilots.csv (written by
benchmarks/pilots.py): a picture and tables for docs/what_it_takes.md. `python
docs/what_it_takes.py` draws the picture anew.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gpt1.results.document import grid
from gpt1.results.drawing import (
    GREY,
    NETWORK_COLOURS,
    NETWORK_DASHES,
    NETWORK_TITLES,
    POINTS,
    bare_axes,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
PICTURE = Path(__file__).with_suffix(".svg")
RECIPE = {  # of conf/small.yaml, but for the updates: what a curve is drawn through
    "transformer": "model.width=128 model.heads=2 model.feed_forward=512 pretrain.batch_size=16"
    " pretrain.warmup_updates=200 pretrain.learning_rate=3e-3",
    "lstm": "model.width=128 model.heads=2 model.feed_forward=512 pretrain.batch_size=16"
    " pretrain.warmup_updates=200 lstm.units=172 lstm.learning_rate=1e-2",
    "lstm_equal": "model.width=128 model.heads=2 model.feed_forward=512 pretrain.batch_size=16"
    " pretrain.warmup_updates=200 lstm_equal.units=370 lstm_equal.learning_rate=1e-2",
}
FIVE_GRAM = float(np.log(76.89))  # nats a token, benchmarks/ngrams.py on the same text


def pilots() -> pd.DataFrame:
    """The pilots in the order in which they were run, the run itself last (means of its seeds);
    `recipe` where only updates and seeds differ from it.
    """
    found = pd.read_csv(HERE / "pilots.csv")
    without = [
        " ".join(
            word
            for word in changes.split()
            if not word.startswith(("pretrain.updates=", "pretrain.seeds="))
        )
        for changes in found["changes"]
    ]
    found["recipe"] = [
        set(words.split()) == set(RECIPE[network].split())
        for words, network in zip(without, found["network"], strict=True)
    ]
    return found


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
        )
        for row in pilots().itertuples()
    ]
    titles = ("", "changed", "M parameters", "M tokens", "nats a token", "perplexity", "s")
    return grid(titles, rows)


def finetuning_diary() -> str:
    """Every pilot fine-tuning."""
    found = pd.read_csv(HERE / "pilot_finetunings.csv", dtype={"system": str})
    return grid(
        ("system", "changed", "dev × 100", "updates", "s"),
        [
            (row.system, row.changes, f"{100 * row.dev:.1f}", str(row.updates), str(row.seconds))
            for row in found.itertuples()
        ],
    )


def picture() -> str:
    """Two panels: loss by tokens, and by seconds of one thread."""
    return svg(_drawn, POINTS)


def _drawn() -> "Figure":
    from matplotlib.figure import Figure

    found = pilots()
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, column, unit in ((left, "tokens", 1e6), (right, "seconds", 60)):
        for network, rows in found.groupby("network"):
            colour = NETWORK_COLOURS[network]
            axes.scatter(
                rows[column] / unit, rows["nats_a_token"], s=9, facecolors="none", edgecolors=colour
            )
            curve = rows[rows["recipe"]].sort_values(column).drop_duplicates("tokens", keep="last")
            axes.plot(
                curve[column] / unit,
                curve["nats_a_token"],
                color=colour,
                linestyle=NETWORK_DASHES[network],
                marker="o",
                markersize=3,
                label=NETWORK_TITLES[network],
            )
        axes.axhline(FIVE_GRAM, color=GREY, linewidth=0.8)
        axes.text(0.01, FIVE_GRAM, "5-gram", color=GREY, transform=axes.get_yaxis_transform())
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        bare_axes(axes)
    left.set_xlim(3.8, 8.3)  # with the marks at 4 and 8
    left.set(xlabel="million tokens", ylabel="held-out nats a token")
    right.set(xlabel="minutes of one thread")
    left.legend(frameon=False)
    return figure


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
