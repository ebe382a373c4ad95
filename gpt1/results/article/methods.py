"""How a run was made, as an article tells it: data, hyperparameters, what differs from the paper,
computation spent; from params.yaml and what the stages wrote down.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpt1.base.files import LOGS, read_json
from gpt1.params.recipes import finetune_recipe, transferred_layers
from gpt1.params.schema import Params
from gpt1.params.yaml import read_yaml
from gpt1.pipeline.plan.table import duration
from gpt1.pipeline.template import files
from gpt1.results.answers import Answers, read_answers
from gpt1.results.document import NONE, Block, Bullets, Grid, Heading, Paragraph, counted
from gpt1.results.notes import QQP_NOTE, RELEASES
from gpt1.results.page.provenance import AcquiredSource
from gpt1.results.page.sheets import Sheet
from gpt1.results.training import networks
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS, scored_split

ON_THE_PAGE = "On the run's own page (gpt1 report --run)"
RECIPE = ("model", "lstm", "lstm_equal", "pretrain", "finetune")  # sections of params.yaml
NOT_OF_THE_RECIPE = (  # what decides no weights
    "log_updates",
    "heldout_updates",
    "heldout_windows",
    "snapshots_per_decade",
    "checkpoint_minutes",
)
TRAININGS = ("pretrain", "finetune", "ablate", "transfer")
SHA_SHOWN = 16
SOURCE_HEADER = ("source", "origin", "licence", "files", "sha256 begins with")


def data_blocks(params: Params, corpus: str, sources: Sequence[AcquiredSource]) -> list[Block]:
    """The corpus, in words, each task's rows, and every source with its licence. Raises UserError
    where a task's rows are missing or broken.
    """
    answers = {task: read_answers(params, task) for task in params.tasks}
    tasks = tuple(_task_row(params, one) for one in answers.values())
    named = [
        RELEASES[task, release]
        for task, one in answers.items()
        if (task, release := str(one.description.get("release", ""))) in RELEASES
        and not is_made_up(params.sources[task].folder)
    ]
    files = tuple(
        (
            one.name,
            one.origin,
            one.licence,
            counted(len(one.files), "file"),
            f"`{one.sha256[:SHA_SHOWN]}`",
        )
        for one in sources
    )
    return [
        Heading(3, "Data"),
        Paragraph(f"Corpus of pre-training: {corpus}."),
        Grid(("task", "rows of", "train", "dev", "test", "scored on", "clusters"), tasks),
        Bullets(
            (
                "Rows: as fine-tuning and scoring used them. In brackets: rows without public"
                " labels, which nothing is scored on.",
                "Clusters: groups of scored rows that share a premise, a passage or a pair of words"
                " and are drawn together in every interval.",
                *named,
            )
        ),
        Paragraph(
            "Every source as it was acquired; sha256 is that of all its files together:"
            if files
            else f"{ON_THE_PAGE}: where the files came from, and their licences."
        ),
        *([Grid(SOURCE_HEADER, files)] if files else []),
    ]


def _task_row(params: Params, answers: Answers) -> tuple[str, ...]:
    task, splits = TASKS[answers.task], answers.description["splits"]

    def rows(split: str) -> str:
        parts = [
            f"{one['examples']:,}" if one["labelled"] else f"({one['examples']:,})"
            for name, one in splits.items()
            if name == split or name.startswith(f"{split}_")
        ]
        return " + ".join(parts) or NONE

    scored = dict.fromkeys(scored_split(column, splits) for column in task.columns)
    release = str(answers.description.get("release", "")) or "the official files"
    clusters = (f"{np.unique(answers.clusters(split)).size:,}" for split in scored)
    made_up = is_made_up(params.sources[task.name].folder)
    return (
        task.title,
        "made up" if made_up else release,
        *map(rows, ("train", "dev", "test")),
        ", ".join(scored),
        " + ".join(clusters),
    )


def recipe_blocks(params: Params) -> list[Block]:
    """Every hyperparameter beside the paper's, and what rows of params.yaml change of them."""
    paper = read_yaml(files()["conf/paper.yaml"])
    values = params.model_dump()
    rows = tuple(
        _recipe_row(f"{section}.{key}", value, paper.get(section, {}).get(key))
        for section in RECIPE
        for key, value in values[section].items()
        if key not in NOT_OF_THE_RECIPE
    )
    lines = [
        f"Fine-tuning of {TASKS[name].title}: {_changes(task.finetune)}"
        for name, task in params.tasks.items()
        if task.finetune
    ]
    lines += [
        f"Variant {name}: network {row.network}"
        + (f", {_changes(row.finetune)}" if row.finetune else "")
        + (f", on {counted(row.seeds, 'seed')}" if row.seeds else "")
        for name, row in params.variants.items()
    ]
    lines += [
        f"Layer transfer on {TASKS[name].title}: layers"
        f" {', '.join(map(str, transferred_layers(params, name)))}"
        + (f", on {counted(row.seeds, 'seed')}" if row.seeds else "")
        for name, row in params.transfer.items()
    ]
    return [
        Heading(3, "Hyperparameters"),
        Paragraph(
            "The last column is the profile `paper` of this software: what the paper states, and"
            " where it is silent the authors' released code. In bold: where this run differs."
        ),
        Grid(("hyperparameter", "this run", "profile paper"), rows),
        Bullets(tuple(lines)),
    ]


def _recipe_row(name: str, value: Any, paper: Any) -> tuple[str, str, str]:
    ours, theirs = _text(value), _text(paper)
    return f"`{name}`", ours if ours == theirs else f"**{ours}**", theirs


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return NONE if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _changes(row: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}` {_text(value)}" for key, value in row.items())


def difference_lines(params: Params) -> Iterator[str]:
    """What else differs from the paper, as far as it concerns this run; docs/differences.md has all
    of it.
    """
    recipes = [finetune_recipe(params, task) for task in params.tasks]
    trained = params.pretrain.source == "train"
    yield (
        "Where paper and released code differ, the code is followed, for it produced the numbers:"
        " lower-cased tokens, one dropout mask over the whole embedding matrix, gradients clipped"
        " at norm 1, Adam's epsilon beside the uncorrected second moment, decay on every tensor of"
        " rank above 1, the last incomplete batch dropped."
    )
    yield "Text is cut by today's spaCy tokenizer for English, not by the authors' version of 2018."
    if not trained:
        yield (
            "Nothing was pre-trained: the weights are imported, so no claim about pre-training is"
            " tested from its beginning."
        )
    else:
        yield (
            "The code of pre-training was not released. Where the paper is silent on it (Adam's"
            " betas, clipping, precision, which books are held out) the values above are a choice."
            " Windows of text are drawn with replacement."
        )
    if lstms := networks(params)[1:]:
        own_rate = any(getattr(params, network).learning_rate for network in lstms)
        yield (
            "The paper gives the LSTM's 2,048 units and no more. Here it is one layer between the"
            " same embeddings and softmax, pre-trained by the Transformer's recipe"
            f"{', at a rate of its own' if own_rate else ', which was not tuned for it'}."
        )
    if "lstm_equal" in networks(params):
        yield (
            "The paper's LSTM has 0.29 of its Transformer's parameters, embeddings apart. Beside"
            " one of about that proportion stands one of equal size, and a verdict against the"
            " LSTM counts only where both agree."
        )
    if any(recipe.lambda_lm for recipe in recipes):
        yield (
            "The softmax of the auxiliary objective has rows for all positions of the context; the"
            " authors' has those of the task's longest sequence."
        )
    if params.pretrain.precision == "bf16" or any(one.precision == "bf16" for one in recipes):
        yield "Matrix products are in bf16; sums, softmax and weights in float32."
    if "race" in params.tasks:
        yield (
            "RACE, where question, answers and passage do not fit: question and answers keep a"
            " quarter of the context each and the passage the rest; the paper does not say."
        )
    limited = [
        f"{TASKS[name].title} ({counted(limit, 'row')} {use})"
        for name, task in params.tasks.items()
        for limit, use in ((task.train_rows, "to train on"), (task.eval_rows, "to evaluate"))
        if limit
    ]
    if limited:
        yield f"Not all rows are used: at most, {', '.join(limited)}."
    real = [name for name in params.tasks if not is_made_up(params.sources[name].folder)]
    if {"cola", "sst2", "qqp", "mnli", "qnli", "rte"} & set(real):
        yield (
            "GLUE's test labels are not public: its scores here are of dev sets after the last"
            " update, chosen on nothing, beside the paper's of the test server."
        )
    if "qqp" in real:
        yield QQP_NOTE


def computation_blocks(params: Params, time: Sheet | None, totals: Sequence[str]) -> list[Block]:
    """What the run took: its trainings by kind with seconds, machine and precision, then every
    stage. `time` and `totals` as the page has them; None of a packed run.
    """
    if time is None:
        return [Heading(3, "Computation"), Bullets((*totals, f"{ON_THE_PAGE}: each stage's time."))]
    rows = tuple(filter(None, (_training_row(params, verb) for verb in TRAININGS)))
    by_stage = tuple(tuple(cell.text for cell in row) for row in time.rows)
    header = ("trainings", "number", "seeds", "their own time", "arithmetic", "tokens/s", "machine")
    trainings = "The trainings, as each wrote down of itself; tokens/s is the median over them:"
    return [
        Heading(3, "Computation"),
        Paragraph(trainings if rows else "What each training took was not written down here."),
        *([Grid(header, rows)] if rows else []),
        Paragraph("Every stage, with its start and end, beside its plan where there was one:"),
        Grid(time.header, by_stage),
        Bullets(tuple(totals)),
    ]


def _training_row(params: Params, verb: str) -> tuple[str, ...]:
    """The finished trainings of a kind; () where none wrote itself down."""
    runs = [read_json(path) for path in sorted((LOGS / verb).rglob("*.run.json"))]
    runs = [one for one in runs if one["profile"] == params.profile and one["status"] == "finished"]
    if not runs:
        return ()
    speeds = [
        speed
        for path in sorted((LOGS / verb).rglob("*-speed.json"))
        for found in (read_json(path),)
        for speed in found.get("seeds", {"": found}).values()
    ]
    seeds = {one["name"].rpartition("seed-")[2] for one in runs if "seed-" in one["name"]}
    machines = {
        f"{one['machine']['cpu']}, {one['machine']['cores']} cores; GPU: {one['machine']['gpu']}"
        for one in runs
    }
    return (
        verb,
        f"{len(runs):,}",
        ", ".join(sorted(seeds, key=lambda one: (len(one), one))) or NONE,
        duration(sum(one["seconds"] for one in runs)),
        ", ".join(sorted({str(one["arithmetic"]) for one in speeds})) or NONE,
        f"{statistics.median(one['tokens_per_second'] for one in speeds):,.0f}" if speeds else NONE,
        " and ".join(sorted(machines)),
    )
