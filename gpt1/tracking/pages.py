"""What MLflow shows above a run's numbers: a short page in markdown, made of the results alone."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from gpt1.base.files import stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.log import Point
from gpt1.tracking.names import rerun

WHAT = {
    "pretrain": "Pre-training of the {what} on books (paper, section 3.1).",
    "finetune": (
        "Fine-tuning of the Transformer on `{what}` (paper, sections 3.2 and 4.1; Tables 2-4)."
    ),
    "ablate": "Ablation `{what}`: variant and task (paper, Table 5).",
    "transfer": (
        "Fine-tuning on `{what}` from ever more pre-trained layers (paper, Figure 2, left)."
    ),
    "zero_shot": (
        "The {what} without fine-tuning, over its pre-training (paper, section 5; Figure 2, right)."
    ),
    "report": "{what}: ours beside the paper's.",
}
NETWORKS = {"transformer": "Transformer", "lstm": "LSTM"}
SHOWN = {
    "best_dev_score": "best score on the development split",
    "best_update": "at update",
    "updates": "updates",
    "tokens": "tokens",
    "heldout_perplexity": "held-out perplexity a token",
    "heldout_word_perplexity": "held-out perplexity a word",
    "parameters.total": "parameters",
    "skipped_updates": "updates that took no step",
}
GROUP_SHOWN = {
    "seeds": "seeds",
    "dev_score.mean": "mean of their best",
    "dev_score.sd": "standard deviation",
    "dev_score.best": "best seed",
}
BOLD = re.compile(r"\*\*(.*)\*\*")
STYLE = (
    "body{font:15px system-ui,sans-serif;color:#111;background:#fff} h1{font-size:18px}"
    " table{border-collapse:collapse} th,td{padding:4px 12px;border-bottom:1px solid"
    " #ccc;text-align:right} th:first-child,td:first-child{text-align:left}"
)
GRID_HEAD = 4  # lines of a grid with its heading before the first row: heading, empty, header, rule
PAGE_CHARACTERS = 4900  # MLflow keeps 5,000 of a tag


def run_page(stage: str, name: str, final: Mapping[str, object], folder: str) -> str:
    """The page of one run: what it is, its last numbers, where its files lie, how to make it
    again.
    """
    what, *parts = name.split("/")
    what = NETWORKS.get(what, what)
    rows = [
        f"| {words} | {_number(final[f'final/{key}'])} |"
        for key, words in SHOWN.items()
        if f"final/{key}" in final
    ]
    return "\n".join(
        (
            WHAT[stage].format(what=what),
            *((f"Here: {', '.join(part.replace('-', ' ') for part in parts)}.",) if parts else ()),
            *(("", "| | |", "|---|---:|", *rows) if rows else ()),
            "",
            f"Files: `{folder}`. Again: `{rerun(stage, name)}`.",
        )
    )


def group_page(stage: str, name: str, points: Sequence[Point], folder: str) -> str:
    """The page of a task: what its seeds give together, a row for each number of layers where there
    are several.
    """
    layered = len(points) > 1
    head = ["layers transferred", *GROUP_SHOWN.values()] if layered else list(GROUP_SHOWN.values())
    rows = [
        [
            *([str(point["update"])] if layered else []),
            *(_number(point.get(key, "-")) for key in GROUP_SHOWN),
        ]
        for point in points
    ]
    grid = [f"| {' | '.join(line)} |" for line in (head, ["---:"] * len(head), *rows)]
    return "\n".join(
        (
            WHAT[stage].format(what=name),
            "",
            *grid,
            "",
            (
                f"Scores on the development split, from 0 to 1. Files: `{folder}`. Again:"
                f" `{rerun(stage, name)}`."
            ),
        )
    )


def parent_page(params: Params, flow_url: str | None) -> str:
    """The page of a set of parameters: sizes, how to make it again, the tables that are there, ours
    beside the paper's.
    """
    model = params.model
    pretraining = (
        f"{params.pretrain.updates} updates"
        if params.pretrain.updates
        else f"{params.pretrain.epochs} epochs"
    )
    head = [
        *((f"Made by the [flow run]({flow_url}).", "") if flow_url else ()),
        (
            f"Profile `{params.profile}`: {model.layers} layers of width {model.width}, context"
            f" {model.context}; {pretraining} of pre-training; {len(params.tasks)} tasks, seeds"
            f" {', '.join(map(str, params.finetune.seeds))}. Corpus:"
            f" {escape(params.clean.corpus_name)}."
        ),
        "",
        (
            "Again: `gpt1 run`, with params.yaml as on the tab of parameters. Tables and figures"
            " lie among the artifacts."
        ),
    ]
    page = "\n".join(head)
    for path in sorted(stage_folder("report").glob("table*/table*.md")):
        section = "\n\n" + "\n".join(first_grid(path))
        if len(page) + len(section) <= PAGE_CHARACTERS:
            page += section
    return page


def first_grid(path: Path) -> list[str]:
    """The heading of a report in markdown, and its first grid."""
    lines = path.read_text(encoding="utf-8").splitlines()
    heading = next((line for line in lines if line.startswith("#")), f"# {path.stem}")
    start = next((place for place, line in enumerate(lines) if line.startswith("|")), len(lines))
    end = next(
        (place for place in range(start, len(lines)) if not lines[place].startswith("|")),
        len(lines),
    )
    return [f"###{re.sub('^#+', '', heading)}", "", *lines[start:end]]


def grid_page(grid: list[str]) -> str:
    """A heading and its grid as a page of HTML, which MLflow shows among the artifacts."""

    def row(line: str, cell: str) -> str:
        texts = (
            BOLD.sub("<b>\\1</b>", escape(text.strip())) for text in line.strip("|").split("|")
        )
        return "<tr>" + "".join(f"<{cell}>{text}</{cell}>" for text in texts) + "</tr>"

    heading, _, header, _, *rows = grid
    return "\n".join(
        (
            "<!doctype html>",
            "<meta charset=utf-8>",
            f"<style>{STYLE}</style>",
            f"<h1>{escape(heading.strip('# '))}</h1>",
            "<table>",
            row(header, "th"),
            *(row(line, "td") for line in rows),
            "</table>",
        )
    )


def _number(value: object) -> str:
    """A number as a person reads it."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{int(value):,}" if isinstance(value, int | float) else str(value)
