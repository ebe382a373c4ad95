"""The best seed of each task in MLflow's registry: a python_function with signature and example,
weights as safetensors, alias `best`.
"""

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import gpt1
from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, stage_folder
from gpt1.inference.finished import Finished, finetuned_folders, finished
from gpt1.inference.saved import FIELDS, choices_of, example_of, load_model, texts_of
from gpt1.params.schema import Params
from gpt1.tasks.table import Task
from gpt1.tracking.address import (
    prepare_mlflow,
    problem,
    switched_off,
    tracking_uri,
    without_password,
)
from gpt1.tracking.log import RUNS
from gpt1.tracking.sync import sync

BEST, DIGEST = "best", "gpt1.weights_sha256"
VOCABULARY = ("vocab.json", "merges.txt")
LIBRARIES = (  # what the model's own copy of our code imports
    "mlflow",
    "torch",
    "numpy",
    "safetensors",
    "scikit-learn",
    "spacy",
    "ftfy",
    "tokenizers",
    "pydantic",
    "pyarrow",
)


class Registered(NamedTuple):
    """A model of the registry: its name, version, the task and seed, and whether this version is
    new.
    """

    name: str
    version: str
    task: str
    seed: int
    new: bool


def register(params: Params, names: Sequence[str]) -> list[Registered]:
    """Register the best seed of these tasks, or of all that are finished where none is named; what
    is there already stays as it is.

    Raises UserError where a named task is not finished, MLflow is switched off or does not work.
    """
    folders = finetuned_folders()
    there = [
        name
        for name, row in params.tasks.items()
        if stage_folder("finetune", row.group, name) in folders
    ]
    done = [finished(params, name) for name in names or there]
    if not done:
        raise UserError("expected a fine-tuned task, found none; run gpt1 run finetune")
    if switched_off():
        raise UserError("expected MLflow, found it switched off; unset GPT1_MLFLOW")
    sync(params)
    runs = read_json(RUNS)
    try:
        return [_register(params, one, runs) for one in done]
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{problem(error)}; call gpt1 register again when it does") from None


def serve_command(name: str) -> str:
    """The command that serves a registered model on this machine's own address."""
    uri = shlex.quote(without_password(tracking_uri()))
    return (
        f"MLFLOW_TRACKING_URI={uri} mlflow models serve -m models:/{name}@{BEST}"
        " --env-manager local --host 127.0.0.1 --port 5001"
    )


def example_record(task: Task) -> dict[str, Any]:
    """Made-up fields of a task, as a served model takes them."""
    texts = ("Anna lost her keys in the garden.", "The keys were found.")
    record: dict[str, Any] = dict(zip(FIELDS, texts[: texts_of(task)], strict=False))
    choices = ["It rained.", "She found them.", "He slept.", "The garden was sold."]
    return record | ({"choices": choices[: choices_of(task)]} if choices_of(task) else {})


def _register(params: Params, done: Finished, runs: dict[str, Any]) -> Registered:
    prepare_mlflow()
    import mlflow

    task, seed, name = done.task, done.best(), f"gpt1-{params.profile}-{done.task.name}"
    weights = done.weights(seed)
    mlflow.set_tracking_uri(tracking_uri())
    mlflow.set_experiment(experiment_id=runs["experiment"])
    client, digest = mlflow.MlflowClient(), sha256_file(weights)
    versions = client.search_model_versions(f"name = '{name}'")
    version = next((one.version for one in versions if one.tags.get(DIGEST) == digest), None)
    new = version is None
    if version is None:
        run = runs["runs"].get(f"finetune {task.name}/seed-{seed}")
        version = _log(task, name, weights, run)
        dev_score = done.dev_scores[seed]
        tags = {DIGEST: digest, "task": task.name, "seed": seed, "dev_score": f"{dev_score:.6f}"}
        for key, value in tags.items():
            client.set_model_version_tag(name, version, key, str(value))
        body = shlex.quote(json.dumps({"dataframe_records": [example_record(task)]}))
        ask = "curl -s http://127.0.0.1:5001/invocations -H 'Content-Type: application/json' -d"
        page = f"Data: {task.licence}\n\n```bash\n{serve_command(name)}\n{ask} {body}\n```"
        client.update_registered_model(name, f"{task.title}, fine-tuned GPT-1. {page}")
    client.set_registered_model_alias(name, BEST, version)
    return Registered(name, str(version), task.name, seed, new)


def _log(task: Task, name: str, weights: Path, run_id: str | None) -> Any:
    """Log the model to its run, or to a new one, as a version of the registry; the version."""
    import mlflow

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    record = example_record(task)
    answer = load_model(weights, stage_folder("bpe")).answer(example_of(task, record, "example"))
    with tempfile.TemporaryDirectory() as temporary, mlflow.start_run(run_id=run_id):
        words, code = Path(temporary, "vocabulary"), Path(temporary, "gpt1")
        words.mkdir()
        for file in VOCABULARY:
            shutil.copy(stage_folder("bpe", file), words)
        shutil.copytree(
            Path(str(gpt1.__file__)).parent,
            code,
            ignore=shutil.ignore_patterns("__pycache__", "reference"),
        )
        logged = mlflow.pyfunc.log_model(
            name=task.name,
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"weights": str(weights.absolute()), "vocabulary": str(words)},
            code_paths=[str(code)],
            signature=mlflow.models.infer_signature([record], [answer.record()]),
            input_example=[record],
            pip_requirements=[f"{library}=={metadata.version(library)}" for library in LIBRARIES],
            registered_model_name=name,
        )
    return logged.registered_model_version
