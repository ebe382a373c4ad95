"""The run's headline numbers for `dvc metrics` and `dvc plots`: a small file a score, so that DVC
prints a row each, and CSV files.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpt1.base.files import write_json
from gpt1.params.schema import Params
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.formats import as_csv
from gpt1.results.page.sheets import FULL
from gpt1.results.paper import TABLE5, TABLES
from gpt1.results.records import Record, read_records
from gpt1.results.training import Trained, networks, read_training, smoothed, thinned
from gpt1.results.verdict import CONFIRMED, REFUTED

Scores = dict[str, dict[str, float]]
DRAWN = 200  # updates of a curve; `dvc plots` puts every one into its page


def headline() -> Scores:
    """Numbers by `table2/MNLI-m`: score x 100 with its interval, and where it compares the
    difference from the paper's.
    """
    scores = Scores()
    for name in TABLES:
        for one in read_records(name):
            if one["row"] == "ours" and one["score"] is not None:
                scores[f"{name}/{place(one)}"] = of_score(one)
    for one in read_records(TABLE5.name):
        if (
            one["row"] == "ours"
            and one["column"] == "Avg"
            and one["score"] is not None
            and (one["value"] != "score" or one["variant"] == FULL)
        ):
            variant = one["variant"] if one["variant"] == FULL else f"full_less_{one['variant']}"
            scores[f"{TABLE5.name}/{variant}"] = numbers(one)
    for one in read_records("claims"):
        if one["score"] is not None:
            verdict = {CONFIRMED: 1.0, REFUTED: -1.0}.get(one["verdict"], 0.0)
            scores[f"claims/{one['claim']}"] = numbers(one) | {"confirmed": verdict}
    return scores


def place(one: Record) -> str:
    """A score's name as a file's: its column, and the metric where it is the column's second."""
    if one["metric"] == "mean":
        return "GLUE" if one["column"] == "GLUE" else "GLUE-tasks-there"
    return f"{one['column'].replace(' ', '-')}-{one['metric']}"


def of_score(one: Record) -> dict[str, float]:
    """A record of Table 2, 3 or 4 as rounded numbers."""
    return {
        name: round(number, 2)
        for name in ("score", "low", "high", "difference")
        if (number := one.get(name)) is not None
    }


def numbers(one: Record) -> dict[str, float]:
    """A record's number with its interval, rounded."""
    given = {"score": one.get("score"), "low": one.get("low"), "high": one.get("high")}
    return {key: round(number, 2) for key, number in given.items() if number is not None}


def curves(trained: Iterable[Trained], heldout: bool) -> list[dict[str, Any]]:
    """A row an update, a column a network: loss in nats a token, held out or (smoothed, at DRAWN
    updates) in training.
    """
    rows: dict[int, dict[str, Any]] = {}
    for one in trained:
        at = one.heldout_at if heldout else one.at[thinned(one.at, DRAWN)]
        for update, loss in zip(
            at, one.heldout_loss if heldout else smoothed(one.at, one.loss, at), strict=True
        ):
            rows.setdefault(int(update), {"update": int(update)})[one.network] = float(loss)
    return [rows[update] for update in sorted(rows)]


def write_headline(params: Params, scores_folder: Path, plots_folder: Path) -> Scores:
    """Fill both folders; returns the numbers. Raises UserError where a pre-training is missing."""
    trained = (
        [read_training(params, network) for network in networks(params)]
        if params.pretrain.source == "train"
        else []
    )
    found = headline()
    for one in trained:
        found[f"pretrain/{one.network}"] = {"perplexity": round(one.heldout_perplexity, 3)}
    for name, numbers_of in found.items():
        write_json(scores_folder / f"{name}.json", numbers_of)
    for kind in ("training", "heldout"):
        losses = as_csv(curves(trained, kind == "heldout"), ("update", *NETWORK_TITLES))
        (plots_folder / f"{kind}.csv").write_text(losses, encoding="utf-8")
    rows = [
        {"column": name.partition("/")[2], "score": one["score"]}
        for name, one in found.items()
        if name.partition("/")[0] in TABLES
    ]
    (plots_folder / "scores.csv").write_text(as_csv(rows, ("column", "score")), encoding="utf-8")
    return found
