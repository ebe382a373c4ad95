"""What each report stage writes."""

from pathlib import Path

import numpy as np
import pandas as pd

from gpt1.base.files import parse_json, read_json, stage_folder, write_json
from gpt1.params.recipes import pretraining_of, pretraining_stage
from gpt1.params.schema import Params
from gpt1.results.claims import claims_of
from gpt1.results.display import FORMATS, displayed, layers_table, zero_shot_table
from gpt1.results.figures import (
    plot_curves,
    plot_layers,
    plot_table5,
    plot_zero_shot,
    save_svg,
)
from gpt1.results.paper import TABLE5_ROWS
from gpt1.results.predictions import predictions_of, sources_of
from gpt1.results.runs import CLAIMS, PREDICTIONS, SCORES, read_table, write_table
from gpt1.results.scores import scores_of
from gpt1.results.tables import FULL, SEEDS, average
from gpt1.tracking.log import reading

POINTS = ["update", "loss", "learning_rate", "heldout_loss"]
FACTS = ["updates", "tokens", "heldout_perplexity", "heldout_word_perplexity"]


def write_report(params: Params, name: str, folder: Path) -> str:
    """Fill a report's folder and return its text. Raises UserError."""
    if name == "claims":
        both = (stage_folder("report", report) for report in ("table5", "figure2"))
        predictions = [read_table(report / PREDICTIONS) for report in both]
        claims = claims_of(*predictions)
        claims.attrs = predictions[0].attrs
        write_table(claims, folder / CLAIMS)
        write_metrics(name, claims.groupby("claim")["difference"].first())
    elif name == "curves":
        curves, facts, parameters = curves_of(params)
        for title, table in (("updates", curves), ("training", facts), ("parameters", parameters)):
            table.to_csv(folder / f"{title}.csv", index=False)
        write_metrics(name, facts.set_index("network")["heldout_perplexity"])
        save_svg(folder / "pretraining.svg", lambda: plot_curves(curves))
    else:
        predictions = predictions_of(params, name)
        scores = scores_of(predictions, name, sources_of(params, {*predictions["task"]}))
        scores.attrs = predictions.attrs = about(params)
        write_table(predictions, folder / PREDICTIONS)
        write_table(scores, folder / SCORES)
        if name == "table5":
            save_svg(folder / "table5.svg", lambda: plot_table5(scores))
        if name != "figure2":
            write_metrics(name, means(scores, name))
        else:
            if len(layers_table(scores)):
                save_svg(
                    folder / "figure2-left.svg", lambda: plot_layers(scores, params.model.layers)
                )
            if len(zero_shot_table(scores)):
                save_svg(folder / "figure2-right.svg", lambda: plot_zero_shot(scores))
    tables, notes = displayed(name, folder)
    for ending, form in FORMATS.items():
        (folder / f"{name}.{ending}").write_text(form(tables, notes), encoding="utf-8")
    return FORMATS["txt"](tables, notes)


def means(scores: pd.DataFrame, name: str) -> pd.Series:
    """Return the full model's mean of each column; of Table 5 the mean of each of the paper's
    systems.
    """
    if name == "table5":
        of_paper = scores[scores["system"].isin(TABLE5_ROWS)]
        return average(of_paper).groupby("system")["score"].mean()
    ours = scores[scores["system"] == FULL].drop_duplicates(["column", *SEEDS])
    return ours.groupby("column")["score"].mean()


def write_metrics(name: str, numbers: pd.Series) -> None:
    """Write what DVC shows as metrics and MLflow at the run `report`."""
    rounded = numbers.dropna().astype(float).round(2)
    write_json(stage_folder("report", f"{name}.json"), rounded.to_dict())


def about(params: Params) -> dict[str, str]:
    """Describe the run in one line."""
    model, recipe = params.model, params.pretrain
    length = f"{recipe.updates:,} updates" if recipe.updates else f"{recipe.epochs:g} epochs"
    trained = f"pre-trained for {length} on {params.clean.corpus_name}"
    if recipe.source == "official":
        trained = "with imported weights"
    layers = f"{model.layers} layer{'s' * (model.layers > 1)} of width {model.width}"
    tasks = f"fine-tuned on {len(params.tasks)} task{'s' * (len(params.tasks) != 1)}"
    return {"run": f"Profile {params.profile}: {layers}, {trained}, {tasks}"}


def curves_of(params: Params) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return each network's first pre-training: its curve (losses in nats per token), final
    numbers, parameters by component; empty for imported weights. Raises UserError.
    """
    curves, facts, parameters = [], [], []
    for network in params.networks.pretrain if params.pretrain.source == "train" else ():
        folder = pretraining_of(params, network)
        if not (folder / "summary.json").is_file():
            continue
        stage = pretraining_stage(params, network)
        with reading(folder, f"run dvc repro -f {stage}"):
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
