"""The page of MLflow worth opening."""

from gpt1.base.files import read_json
from gpt1.tracking.log import RUNS


def runs_page(base: str) -> str:
    """The address of the runs of the experiment that `gpt1 sync` told results last; before, of all
    experiments.
    """
    experiment = f"/{read_json(RUNS)['experiment']}/runs" if RUNS.is_file() else ""
    # without the last words MLflow opens its pages for prompts and agents
    return f"{base}/#/experiments{experiment}?workflowType=machine_learning"
