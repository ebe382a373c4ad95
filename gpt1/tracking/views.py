"""Saved views of MLflow's runs page: scores as a table, curves of the pre-trainings. MLflow's own
pages keep such views as tags of an experiment; views.json has the state that they write there.
"""

import json
from pathlib import Path

from gpt1.base.files import read_json


def view_tags() -> dict[str, str]:
    """The experiment's tags, by key."""
    tags = {}
    for name, state in read_json(Path(__file__).with_suffix(".json")).items():
        view = {"name": name.title(), "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)}
        tags[f"mlflow.sharedViewState.{name}"] = json.dumps(view)
    return tags
