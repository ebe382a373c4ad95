"""The headline numbers of a run for `dvc metrics` and `dvc plots`: one small file per score, so
that DVC prints a row each, and CSV files for plots.
"""

import math
from pathlib import Path

import pandas as pd

from gpt1.base.files import stage_folder, write_json
from gpt1.results.columns import FULL
from gpt1.results.curves import thinned
from gpt1.results.paper import TABLES
from gpt1.results.plotting import NETWORK_TITLES
from gpt1.results.runs import CLAIMS, SCORES, read_table
from gpt1.results.tables import average

DIGITS = 4


def write_headline(scores_folder: Path, plots_folder: Path) -> dict[str, dict[str, float]]:
    """Fill both folders and return the numbers, keyed like `table2/MNLI-m-accuracy`. Raises
    UserError where a report is missing.
    """
    headline = {
        f"{name}/{key}": numbers for name in TABLES for key, numbers in _means(name).items()
    }
    rows = [
        (key.partition("/")[2], value["mean"])
        for key, value in headline.items()
        if "table5" not in key
    ]
    scores = pd.DataFrame(rows, columns=["column", "score"]).dropna().round(DIGITS)
    scores.to_csv(plots_folder / "scores.csv", index=False)
    claims = read_table(stage_folder("report", "claims", CLAIMS))
    keys = "claims/" + claims["claim"] + "." + claims["other"].str.replace(" ", "_")
    headline |= claims.set_index(keys)[["difference", "low", "high"]].to_dict("index")
    facts = read_table(stage_folder("report", "curves", "training.csv"))
    headline |= (
        facts.set_index("curves/" + facts["network"]).drop(columns="network").to_dict("index")
    )
    headline = {
        name: {key: round(value, DIGITS) for key, value in numbers.items() if math.isfinite(value)}
        for name, numbers in headline.items()
    }
    for name, numbers in headline.items():
        write_json(scores_folder / f"{name}.json", numbers)
    curves = read_table(stage_folder("report", "curves", "updates.csv"))
    for name, loss, points in (
        ("training", "loss", thinned(curves)),
        ("heldout", "heldout_loss", curves),
    ):
        table = points.pivot_table(loss, "update", "network").reindex(columns=list(NETWORK_TITLES))
        table.to_csv(plots_folder / f"{name}.csv", float_format="%.4f")
    return headline


def _means(table: str) -> dict[str, dict[str, float]]:
    """Return mean and deviation over seeds of every column (Table 5: of its mean), keyed by column
    and metric, with the system's name unless it is the full model.
    """
    scores = read_table(stage_folder("report", table, SCORES))
    table_scores = average(scores.dropna(subset="score")) if table == "table5" else scores
    grouped = table_scores.groupby(["column", "metric", "system"], sort=False)["score"].agg(
        ["mean", "std"]
    )
    grouped.index = [
        "-".join(key).removesuffix(f"-{FULL}").replace(" ", "-") for key in grouped.index
    ]
    means: dict[str, dict[str, float]] = grouped.rename(columns={"std": "sd"}).to_dict("index")
    return means
