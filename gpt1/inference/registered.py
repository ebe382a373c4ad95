"""The best seed of each task in MLflow's registry, with alias `best`."""

import os
import shlex
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import gpt1
from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, stage_folder
from gpt1.inference.finetuned import FinetunedTask, finetuned_folders, finetuned_task
from gpt1.inference.saved import example_of, fields_of, load_model
from gpt1.params.schema import Params
from gpt1.tasks.definitions import Task
from gpt1.tracking.address import problem, switched_off, tracking_uri, without_password
from gpt1.tracking.log import RUNS
from gpt1.tracking.sync import sync

BEST, DIGEST = "best", "gpt1.weights_sha256"
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
    """A registered model; new: whether the version is."""

    name: str
    version: str
    seed: int
    new: bool


def register(
    params: Params, names: Sequence[str], outdated: Collection[str] = (), notice: str = ""
) -> list[Registered]:
    """Register the best seed of these tasks (none: all finished ones), after their results. Raises
    UserError for an unfinished task, or where MLflow is off or fails.
    """
    names = names or [
        name
        for name in finetuned_folders()
        if name in params.tasks and f"finetune@{name}" not in outdated
    ]
    done = [finetuned_task(name) for name in names]
    if not done:
        raise UserError("expected a fine-tuned task, found none; run gpt1 run finetune")
    if switched_off():
        raise UserError("expected MLflow, found it switched off; unset GPT1_MLFLOW")
    sync(params, outdated, notice)
    runs = read_json(RUNS)
    try:
        return [_register(params, model, runs) for model in done]
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{problem(error)}; call gpt1 register again when it does") from None


def serve_command(name: str) -> str:
    """Return the command that serves a registered model."""
    uri = shlex.quote(without_password(tracking_uri()))
    return (
        f"MLFLOW_TRACKING_URI={uri} mlflow models serve -m models:/{name}@{BEST}"
        " --env-manager local --host 127.0.0.1 --port 5001"
    )


def example_record(task: Task) -> dict[str, Any]:
    """Return made-up fields of a task."""
    choices = ["It rained.", "She found them.", "He slept.", "The garden was sold."]
    made_up = {
        "first": "Anna lost her keys in the garden.",
        "second": "The keys were found.",
        "choices": choices[: len(task.labels)],
    }
    return {name: made_up[name] for name in fields_of(task)}


def _register(params: Params, done: FinetunedTask, runs: dict[str, Any]) -> Registered:
    import mlflow

    task, seed, name = done.task, done.best(), f"gpt1-{params.profile}-{done.task.name}"
    weights = done.weights(seed)
    mlflow.set_tracking_uri(tracking_uri())
    mlflow.set_experiment(experiment_id=runs["experiment"])
    client, digest = mlflow.MlflowClient(), sha256_file(weights)
    versions = client.search_model_versions(f"name = '{name}'")
    version = next(
        (existing.version for existing in versions if existing.tags.get(DIGEST) == digest), None
    )
    new = version is None
    if version is None:
        version = _log(task, name, weights, runs["runs"].get(f"finetune {task.name}/seed-{seed}"))
        for key, value in {DIGEST: digest, "seed": seed}.items():
            client.set_model_version_tag(name, version, key, str(value))
        page = f"Data: {task.licence}\n\n```bash\n{serve_command(name)}\n```"
        client.update_registered_model(name, f"{task.title}, fine-tuned GPT-1. {page}")
    client.set_registered_model_alias(name, BEST, version)
    return Registered(name, str(version), seed, new)


def _log(task: Task, name: str, weights: Path, run_id: str | None) -> Any:
    import mlflow

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    record, vocabulary = example_record(task), stage_folder("bpe")
    answer = load_model(weights, vocabulary).answer(example_of(task, record, "example"))
    package = Path(str(gpt1.__file__)).parent
    with TemporaryDirectory() as folder, mlflow.start_run(run_id=run_id):
        code = copytree(package, Path(folder, "gpt1"), ignore=ignore_patterns("reference"))
        logged = mlflow.pyfunc.log_model(
            name=task.name,
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"weights": str(weights.absolute()), "vocabulary": str(vocabulary)},
            code_paths=[str(code)],
            signature=mlflow.models.infer_signature([record], [answer]),
            input_example=[record],
            pip_requirements=[f"{library}=={metadata.version(library)}" for library in LIBRARIES],
            registered_model_name=name,
        )
    return logged.registered_model_version
