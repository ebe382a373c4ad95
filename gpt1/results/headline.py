"""The run's headline numbers for `dvc metrics` and `dvc plots`: a small file a score, so that DVC
prints a row each, and CSV files.
"""

from pathlib import Path

import pandas as pd

from gpt1.base.files import read_json, stage_folder, write_json
from gpt1.results.curves import thinned
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.paper import TABLE5, TABLES
from gpt1.results.runs import read_table


def write_headline(scores_folder: Path, plots_folder: Path) -> dict[str, dict[str, float]]:
    """Fill both folders; returns the numbers, by `table2/MNLI-m-accuracy`. Raises UserError where a
    report is missing.
    """
    found: dict[str, dict[str, float]] = {}
    for name in (*TABLES, TABLE5.name, "claims", "curves"):
        for key, numbers in read_json(stage_folder("report", name, "metrics.json"))[name].items():
            wanted = key.startswith("Avg") or name != TABLE5.name
            found |= {f"{name}/{key}": numbers} if wanted and numbers else {}
    for name, numbers in found.items():
        write_json(scores_folder / f"{name}.json", numbers)
    curves = read_table(stage_folder("report", "curves", "updates.csv"))
    for loss, drawn in (("loss", thinned(curves)), ("heldout_loss", curves)):
        table = drawn.pivot_table(index="update", columns="network", values=loss)
        path = plots_folder / {"loss": "training.csv", "heldout_loss": "heldout.csv"}[loss]
        table.reindex(columns=list(NETWORK_TITLES)).to_csv(path, float_format="%.4f")
    tables = {name: one for name, one in found.items() if name.partition("/")[0] in TABLES}
    rows = [(name.partition("/")[2], one["mean"]) for name, one in tables.items()]
    scores = pd.DataFrame(rows, columns=["column", "score"])
    scores.to_csv(plots_folder / "scores.csv", index=False)
    return found
