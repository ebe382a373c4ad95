"""Pre-training: loss and learning rate by update, the final losses, the number of parameters."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gpt1.base.files import parse_json, read_json
from gpt1.params.recipes import pretraining_of, pretraining_stage
from gpt1.params.schema import Params
from gpt1.results.plotting import NETWORK_COLOURS, NETWORK_DASHES, NETWORK_TITLES, panels
from gpt1.results.predictions import reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS_PER_E = 15  # of a drawn curve: every point of a million updates would blacken the paper
POINTS = ["update", "loss", "learning_rate", "heldout_loss"]
FACTS = ["updates", "tokens", "heldout_perplexity", "heldout_word_perplexity"]


def curves_of(params: Params) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return three tables about the first pre-training of every network: its curve (losses in nats
    a token), its final numbers, and its parameters by component. They are empty where weights were
    imported. Raises UserError where a file is damaged.
    """
    curves, facts, parameters = [], [], []
    for network in NETWORK_TITLES if params.pretrain.source == "train" else ():
        folder = pretraining_of(params, network)  # type: ignore[arg-type]  # its keys are the names
        if not (folder / "summary.json").is_file():
            continue
        with reading(folder, pretraining_stage(params, network)):  # type: ignore[arg-type]
            summary = read_json(folder / "summary.json")
            lines = (folder / "curve.jsonl").read_text(encoding="utf-8").splitlines()
            points = pd.DataFrame([parse_json(line) for line in lines])
            if not np.isfinite(points["loss"].dropna()).all():
                raise ValueError("a loss that is not finite")
            curves.append(points.reindex(columns=POINTS).assign(network=network))
            facts.append({"network": network} | {name: summary[name] for name in FACTS})
            parameters += [(network, *count) for count in summary["parameters"].items()]
    return (
        pd.concat(curves or [pd.DataFrame(columns=[*POINTS, "network"])]),
        pd.DataFrame(facts, columns=["network", *FACTS]),
        pd.DataFrame(parameters, columns=["network", "component", "parameters"]),
    )


def thinned(curves: pd.DataFrame) -> pd.DataFrame:
    """Average the training loss of each network over neighbouring updates, evenly on a log
    scale.
    """
    training = curves.dropna(subset="loss")
    bins = (POINTS_PER_E * np.log(training["update"].astype(float))).astype(int)
    grouped = training.groupby([training["network"], bins], sort=False)
    return grouped[["update", "loss", "learning_rate"]].mean().reset_index(0).reset_index(drop=True)


def plot_curves(curves: pd.DataFrame) -> "Figure":
    """Plot training and held-out loss, and the learning rate, by update."""
    figure, (losses, rates) = panels(1, 2, (7.2, 2.9))
    for network, curve in curves.groupby("network", sort=False):
        style = {"color": NETWORK_COLOURS[network], "linestyle": NETWORK_DASHES[network]}
        training, heldout = thinned(curve), curve.dropna(subset="heldout_loss")
        losses.plot(training["update"], training["loss"], label=NETWORK_TITLES[network], **style)
        losses.plot(
            heldout["update"], heldout["heldout_loss"], "o", color=style["color"], markersize=3
        )
        losses.legend(frameon=False)
        rates.plot(training["update"], training["learning_rate"], **style)
    losses.set(xscale="log", xlabel="updates (points: held out)", ylabel="loss, nats a token")
    rates.set(xlabel="updates", ylabel="learning rate")
    return figure
