"""Figure 2 of the paper, ours beside it: layer transfer and zero-shot behaviours as pictures, data
and numbers.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.ablations import Transferred, transferred
from gpt1.results.answers import transfer_answers
from gpt1.results.document import (
    NONE,
    Block,
    Bullets,
    Grid,
    Heading,
    Paragraph,
    Picture,
    counted,
    number,
    signed,
)
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.figure2_pictures import draw_transfer, draw_zero_shot
from gpt1.results.formats import ReportContent, estimate_record, rounded, with_interval
from gpt1.results.notes import METRIC_WORDS, layer_notes, zero_shot_notes
from gpt1.results.paper import FIGURE2_LAYERS, FIGURE2_ZERO_SHOT, ZERO_SHOT
from gpt1.results.records import Record
from gpt1.results.scores import scored_splits, whole_column
from gpt1.results.training import first_of_several
from gpt1.results.zero_shot import NETWORKS, Behaviour, behaviours, normalised, normalised_error

CSV_COLUMNS = (
    "panel task title metric split network x seed score low high sd standard_error normalised"
    " examples source"
)
OURS, PAPER, MEAN = "ours", "paper, read off by eye", "mean over seeds"


def figure2_report(params: Params) -> ReportContent:
    """Both panels. Raises UserError where results are missing or broken."""
    curves, found = transferred(params), behaviours(params)
    records = figure2_records(curves, found)
    points = [
        row | {"title": row["column"]} | ({"seed": "mean"} if row.get("value") == MEAN else {})
        for row in records
    ]
    return ReportContent(
        "figure2",
        figure2_document(params, curves, found),
        figure2_metrics(curves, found),
        {
            "figure2": (CSV_COLUMNS, points),
            "left": _left_plot(curves),
            "right": _right_plot(found),
        },
        {
            "figure2-left": lambda: draw_transfer(curves, params.model.layers),
            "figure2-right": lambda: draw_zero_shot(found),
        },
        records,
        (
            scored
            for curve in curves
            for scored in scored_splits(
                [whole_column(curve.task)],
                (transfer_answers(params, curve.task, layers) for layers in curve.points),
            )
        ),
    )


def figure2_records(curves: Sequence[Transferred], found: Sequence[Behaviour]) -> list[Record]:
    """Every point of both panels as one flat record; x is layers on the left and updates on the
    right, scores are x 100.
    """
    rows: list[Record] = []
    for curve in curves:
        about = {
            "panel": "left",
            "task": curve.task,
            "column": curve.title,
            "metric": curve.metric,
            "network": "transformer",
        }
        ours = about | {
            "split": curve.measured.split,
            "examples": curve.measured.examples,
            "row": "ours",
            "source": OURS,
        }
        for layers, result in curve.points.items():
            scores: list[float] = result.scores.by_seed.tolist()
            rows += [
                ours | {"x": layers, "value": "score", "seed": seed, "score": one, "scores": [one]}
                for seed, one in zip(result.seeds, scores, strict=True)
            ]
            mean = {"x": layers, "value": MEAN, "scores": scores}
            rows.append(ours | mean | estimate_record(result.estimate, curve.metric))
        rows += [
            about | {"x": layers, "row": "paper", "score": score, "source": PAPER}
            for layers, score in FIGURE2_LAYERS.get(curve.task, ())
            if not curve.made_up
        ]
    for one in found:
        about = {
            "panel": "right",
            "task": one.set,
            "column": one.scale.title,
            "metric": one.metric,
            "network": one.network,
        }
        rows += [
            about
            | {
                "x": point.update,
                "score": point.score,
                "standard_error": point.standard_error,
                "examples": one.examples,
                "normalised": normalised(point.score, one.scale),
                "row": "ours",
                "source": OURS,
            }
            for point in one.points
        ]
        if one.network == "transformer" and not one.made_up:
            end = FIGURE2_ZERO_SHOT[one.set]
            rows.append(about | {"normalised": end, "row": "paper", "source": PAPER})
    return [{"table": "figure2"} | row for row in rows]


def figure2_metrics(curves: Sequence[Transferred], found: Sequence[Behaviour]) -> dict[str, Any]:
    """Our numbers for `dvc metrics`: by task and layers, and by network and set at the first and
    last snapshot.
    """
    layers = {
        curve.task: {
            str(count): rounded(estimate_record(result.estimate, curve.metric) | {"seeds": None})
            for count, result in curve.points.items()
        }
        | rounded({"rise": _rise(curve)})
        for curve in curves
    }
    zero_shot: dict[str, dict[str, Any]] = {}
    for one in found:
        first, last = one.points[0], one.points[-1]
        zero_shot.setdefault(one.network, {})[one.set] = rounded(
            {
                "first": first.score,
                "last": last.score,
                "standard_error": last.standard_error,
                "first_normalised": normalised(first.score, one.scale),
                "last_normalised": normalised(last.score, one.scale),
            }
        )
    return {"layers": layers, "zero_shot": zero_shot}


def figure2_document(
    params: Params, curves: Sequence[Transferred], found: Sequence[Behaviour]
) -> list[Block]:
    """Captions, pictures, both tables and notes."""
    model = params.model
    layers = f"{model.layers} layer{'s' if model.layers > 1 else ''}"
    facts = (
        f"Profile {params.profile}; pre-trained on {params.clean.corpus_name}; {layers} of width"
        f" {model.width}."
    )
    return [
        Heading(1, "Figure 2 of the paper: layer transfer and zero-shot behaviours"),
        Paragraph(facts),
        Heading(2, "Left: the effect of transferring more layers"),
        Picture("figure2-left.svg", "layers transferred"),
        _layer_table(curves),
        Bullets(tuple(layer_notes(params, curves))),
        Heading(2, "Right: zero-shot behaviours over pre-training"),
        *([Paragraph(f"Snapshots of {one}.")] if (one := first_of_several(params)) else []),
        Picture("figure2-right.svg", "zero-shot behaviours"),
        *(
            _zero_shot_table([one for one in found if one.network == network])
            for network in NETWORKS
        ),
        Bullets(tuple(zero_shot_notes(params, found))),
    ]


def _rise(curve: Transferred) -> float:
    """Mean with most layers less mean with fewest."""
    means = [float(result.estimate.value) for result in curve.points.values()]
    return means[-1] - means[0]


def _layer_table(curves: Sequence[Transferred]) -> Grid:
    """Mean with its interval by layers, a row a number of layers; then the rise."""
    if not curves:
        return Grid((), ())
    header = (
        "layers transferred",
        *(
            f"{curve.title} {curve.measured.split} ({METRIC_WORDS[curve.metric]}), "
            f"{counted(len(curve.seeds), 'seed')}"
            for curve in curves
        ),
    )
    counts = sorted({count for curve in curves for count in curve.points})
    rows = [
        (
            str(count),
            *(
                (
                    with_interval(result.estimate, curve.metric)
                    if (result := curve.points.get(count))
                    else NONE
                )
                for curve in curves
            ),
        )
        for count in counts
    ]
    return Grid(
        header,
        (
            *rows,
            ("most less fewest", *(signed(_rise(curve)) for curve in curves)),
            ("majority class", *(number(curve.measured.majority) for curve in curves)),
        ),
    )


def _zero_shot_table(found: Sequence[Behaviour]) -> Grid:
    """One network: relative performance and, in brackets, the score x 100, a row a snapshot."""
    if not found:
        return Grid((), ())
    header = (
        f"{NETWORK_TITLES[found[0].network]}, update",
        *(f"{one.scale.title} ({METRIC_WORDS[one.metric]})" for one in found),
    )
    points = [{point.update: point for point in one.points} for one in found]
    updates = sorted({update for by_update in points for update in by_update})
    rows = [
        (
            f"{update:,}",
            *(
                (
                    f"{number(normalised(by_update[update].score, one.scale), '.2f')}"
                    f" ({number(by_update[update].score)})"
                    if update in by_update
                    else NONE
                )
                for one, by_update in zip(found, points, strict=True)
            ),
        )
        for update in updates
    ]
    errors = [
        f"{statistics.fmean(normalised_error(error, one.scale) for error in each):.2f}"
        f" ({statistics.fmean(each):.1f})"
        for one in found
        for each in [[point.standard_error for point in one.points]]
    ]
    return Grid(header, (*rows, ("one SE, mean", *errors)))


def _left_plot(curves: Sequence[Transferred]) -> tuple[str, list[Record]]:
    """Columns and rows for `dvc plots`: layers, then a column a task; the paper's two are there in
    any case, empty if need be.
    """
    tasks = dict.fromkeys([*FIGURE2_LAYERS, *(curve.task for curve in curves)])
    counts = sorted({count for curve in curves for count in curve.points}) or [0]
    return " ".join(["layers", *tasks]), [
        {"layers": count}
        | {
            curve.task: float(curve.points[count].estimate.value)
            for curve in curves
            if count in curve.points
        }
        for count in counts
    ]


def _right_plot(found: Sequence[Behaviour]) -> tuple[str, list[Record]]:
    """Columns and rows for `dvc plots`: update, then the relative performance of each network on
    each set, empty where absent.
    """
    names = [f"{network}_{name}" for network in NETWORKS for name in ZERO_SHOT]
    rows: dict[int, Record] = {}
    for one in found:
        for point in one.points:
            rows.setdefault(point.update, {})[f"{one.network}_{one.set}"] = normalised(
                point.score, one.scale
            )
    return " ".join(["update", "log10_update", *names]), [
        {"update": update, "log10_update": math.log10(update)} | rows[update]
        for update in sorted(rows)
    ] or [{"update": 1, "log10_update": 0.0}]  # DVC's plots know no logarithmic axis
