"""The pages of an experiment worth opening: its runs as a table, curves by network. MLflow's pages
take columns and charts from tags that their own menu writes: views.json, the one place with such.
"""

import json
from pathlib import Path

from gpt1.base.files import read_json
from gpt1.params.schema import Params
from gpt1.tracking.log import RUNS

KIND = "workflowType=machine_learning"  # else MLflow opens its pages for prompts and agents
PAGES = {
    "runs": f"runs?{KIND}&viewStateShareKey=runs",
    "curves": f"runs?{KIND}&compareRunsMode=CHART&viewStateShareKey=curves",
    "models": f"models?{KIND}",
}


def view_tags() -> dict[str, str]:
    """Tags of the experiment: runs sorted by task in columns; the losses of the pre-trainings."""
    tags = {"mlflow.experimentKind": "custom_model_development"}
    for name, state in read_json(Path(__file__).with_suffix(".json")).items():
        saved = {"name": name, "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)}
        tags[f"mlflow.sharedViewState.{name}"] = json.dumps(saved)
    return tags


def addresses(params: Params, base: str) -> str:
    """A line for each page worth opening once `gpt1 sync` has told results; nothing before."""
    if not RUNS.is_file():
        return ""
    place = f"{base}/#/experiments/{read_json(RUNS)['experiment']}"
    return "\n".join(f"MLflow, {name:8}{place}/{page}" for name, page in PAGES.items())
