"""The pages of an experiment worth opening, as saved views: MLflow lists them in its menu *Views*,
and each has an address. A view is a tag of the experiment: runs by a filter, their columns, charts.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.request import urlopen

from gpt1.base.files import read_json
from gpt1.params.schema import Params, read_params
from gpt1.tracking.log import RUNS

VIEW = "mlflow.sharedViewState."  # and the view's key
OTHERS = ("Model metrics", "by_tokens", "final", "system", "System metrics")  # closed below ours
TRAINING = "workflowType=machine_learning"  # else MLflow opens its pages for prompts and agents
POLL_SECONDS = 0.5
ALL_RUNS = 100  # in a chart of bars, which without this shows ten
SCORES = ("dev_score.mean", "dev_score.best", "dev_score.sd")
PRETRAINING = ("loss", "heldout_perplexity", "by_tokens/heldout_loss", "learning_rate")
SEEDS = ("dev_score", "task_loss", "lm_loss", "gradient_norm")

LINE = {  # what a chart of curves must say
    "xAxisKey": "step",
    "yAxisKey": "metric",
    "useGlobalXaxisKey": True,
    "useGlobalLineSmoothing": True,
    "scaleType": "linear",
    "xAxisScaleType": "linear",
    "range": {},
    "yAxisExpressions": [],
}


@dataclass(frozen=True)
class View:
    """A page: its key in addresses, its name in the menu, which runs, what is drawn of them."""

    key: str
    name: str
    runs: str
    metrics: Sequence[str]
    bars: bool = False


def views(tasks: Iterable[str]) -> list[View]:
    """The views of an experiment, those of the seeds of each task among them."""
    return [
        View(
            "scores",
            "Scores by task",
            "tags.stage = 'finetune' and metrics.`dev_score.mean` > -1",
            SCORES,
            bars=True,
        ),
        View("pretraining", "Pre-training curves", "tags.stage = 'pretrain'", PRETRAINING),
        *(
            View(
                f"seeds-{task}",
                f"Seeds of {task}",
                f"tags.stage = 'finetune' and tags.task = '{task}' and tags.seed != ''",
                SEEDS,
            )
            for task in tasks
        ),
    ]


def view_tag(view: View) -> tuple[str, str]:
    """A view as the tag in which MLflow's pages look for it (as their menu *Views* writes it)."""
    kind = {"type": "BAR", "runsCountToCompare": ALL_RUNS} if view.bars else {"type": "LINE"}
    charts = [
        kind
        | {"uuid": f"{view.key}-{number}", "metricKey": metric, "metricSectionId": view.name}
        | ({"selectedMetricKeys": [metric]} | LINE if not view.bars else {})
        for number, metric in enumerate(view.metrics)
    ]
    state = {
        "searchFilter": view.runs,
        "orderByKey": f"metrics.`{view.metrics[0]}`" if view.bars else "tags.`mlflow.runName`",
        "orderByAsc": not view.bars,
        "selectedColumns": [f"metrics.`{metric}`" for metric in view.metrics],
        "runsHiddenMode": "SHOW_ALL",
        "compareRunCharts": charts,
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name == view.name, "columns": 2}
            for name in (view.name, *OTHERS)
        ],
        "isAccordionReordered": True,  # else MLflow sorts the sections, its own before ours
    }
    saved = {"name": view.name, "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)}
    return VIEW + view.key, json.dumps(saved)


def addresses(params: Params, base: str) -> str:
    """A line for each page worth opening once `gpt1 sync` has told results; nothing before."""
    if not RUNS.is_file():
        return ""
    told = read_json(RUNS)
    shown = views(params.tasks)[:3]  # of the tasks the first; the others are in the menu *Views*
    charts = "&compareRunsMode=CHART&viewStateShareKey="
    pages = {
        "all runs": ("runs", ""),
        "tables, ours beside the paper's": (f"runs/{told['all']}", ""),
        **{view.name: ("runs", charts + view.key) for view in shown},
        "models, to be ranked by score": ("models", ""),
    }
    place = f"{base}/#/experiments/{told['experiment']}"
    return "\n".join(
        f"{name:33}{place}/{page}?{TRAINING}{more}" for name, (page, more) in pages.items()
    )


def main(base: str) -> None:
    """Print the addresses once the server answers there, below what it says while it starts;
    nothing where it ends before.
    """
    starter = os.getppid()  # the shell that becomes the server
    while os.getppid() == starter:
        with suppress(OSError), urlopen(f"{base}/health", timeout=POLL_SECONDS):
            print(addresses(read_params(), base), flush=True)
            return
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(sys.argv[1])
