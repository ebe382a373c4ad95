"""What MLflow shows above a run's numbers: a short page in markdown, made of the results alone."""

import itertools
from collections.abc import Mapping, Sequence
from html import escape

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
NETWORKS = {"transformer": "Transformer", "lstm": "LSTM", "lstm_equal": "LSTM of equal size"}
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
PAGE_CHARACTERS = 4900  # MLflow keeps 5,000 of a tag


def run_page(stage: str, name: str, final: Mapping[str, object], folder: str) -> str:
    """The page of one run: what it is, its last numbers, where its files lie, how to make it
    again.
    """
    what, *parts = name.split("/")
    lines = [WHAT[stage].format(what=NETWORKS.get(what, what))]
    if parts:
        lines.append(f"Here: {', '.join(part.replace('-', ' ') for part in parts)}.")
    if rows := [
        f"| {words} | {_number(final[f'final/{key}'])} |"
        for key, words in SHOWN.items()
        if f"final/{key}" in final
    ]:
        lines += ["", "| | |", "|---|---:|", *rows]
    return "\n".join((*lines, "", f"Files: `{folder}`. Again: `{rerun(stage, name)}`."))


def group_page(stage: str, name: str, points: Sequence[Point], folder: str) -> str:
    """The page of a task: what its seeds give together, a row for each number of layers where there
    are several.
    """
    columns = ({"update": "layers transferred"} if len(points) > 1 else {}) | GROUP_SHOWN
    rows = [[_number(point.get(key, "-")) for key in columns] for point in points]
    grid = [columns.values(), ["---:"] * len(columns), *rows]
    return "\n".join(
        (
            WHAT[stage].format(what=name),
            "",
            *(f"| {' | '.join(row)} |" for row in grid),
            "",
            "Scores on the development split, from 0 to 1. Files:"
            f" `{folder}`. Again: `{rerun(stage, name)}`.",
        )
    )


def parent_page(params: Params, flow_url: str | None) -> str:
    """The page of a set of parameters: sizes, how to make it again, the tables that are there, ours
    beside the paper's.
    """
    model, recipe = params.model, params.pretrain
    length = f"{recipe.updates} updates" if recipe.updates else f"{recipe.epochs} epochs"
    page = f"Made by the [flow run]({flow_url}).\n\n" if flow_url else ""
    page += (
        f"Profile `{params.profile}`: {model.layers} layers of width {model.width}, context"
        f" {model.context}; {length} of pre-training; {len(params.tasks)} tasks, seeds"
        f" {', '.join(map(str, params.finetune.seeds))}. Corpus:"
        f" {escape(params.clean.corpus_name)}.\n\nAgain: `gpt1 run`, with params.yaml as on the tab"
        " of parameters. Tables and figures lie among the artifacts."
    )
    for path in sorted(stage_folder("report").glob("table*/table?.md")):
        section = f"\n\n{first_table(path.read_text(encoding='utf-8'))}"
        if len(page) + len(section) <= PAGE_CHARACTERS:
            page += section
    return page


def first_table(text: str) -> str:
    """The heading of a report in Markdown, and its first table."""
    heading, _, rest = text.partition("\n")
    rows = itertools.dropwhile(lambda line: not line.startswith("|"), rest.splitlines())
    return "\n".join([heading, "", *itertools.takewhile(lambda line: line.startswith("|"), rows)])


def _number(value: object) -> str:
    """A number as a person reads it."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{int(value):,}" if isinstance(value, int | float) else str(value)
