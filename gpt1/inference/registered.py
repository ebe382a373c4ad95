"""The best seed of each task in MLflow's registry: a python_function with signature and example,
weights as safetensors, alias `best`.
"""

import io
import logging
import os
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, read_json, sha256_file, stage_folder
from gpt1.inference.fields import choices_of, texts_of
from gpt1.inference.finished import Finished, finetuned_folders, finished
from gpt1.params.recipes import pretraining_seed
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

BEST = "best"
PORT = 5001
NEEDED = (
    "mlflow",
    "torch",
    "numpy",
    "safetensors",
    "scikit-learn",
    "spacy",
    "ftfy",
    "tokenizers",
    "pydantic",
    "ruamel.yaml",
    "python-dotenv",
)  # what the model's own copy of our code imports
ROOMS = (
    "base",
    "corpus",
    "inference",
    "model",
    "params",
    "sources",
    "tasks",
)  # of our code, what it needs
OF_A_PAIR = (
    "Anna lost her keys in the garden.",
    "The keys were found.",
    "It rained.",
    "The garden was sold.",
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
    done = [finished(params, name) for name in names] if names else list(all_finished(params))
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


def all_finished(params: Params) -> list[Finished]:
    """Every task of params.yaml that is fine-tuned."""
    there = finetuned_folders()
    return [
        finished(params, name)
        for name, row in params.tasks.items()
        if stage_folder("finetune", row.group, name) in there
    ]


def serve_command(name: str) -> str:
    """The command that serves a registered model on this machine's own address."""
    uri = shlex.quote(without_password(tracking_uri()))
    return (
        f"MLFLOW_TRACKING_URI={uri} mlflow models serve -m"
        f" models:/{name}@{BEST} --env-manager local --host 127.0.0.1 --port {PORT}"
    )


def example_of(task: Task) -> dict[str, Any]:
    """Made-up fields of a task, as a served model takes them."""
    texts, choices = texts_of(task), choices_of(task)
    pair = dict(zip(("first", "second"), OF_A_PAIR[:texts], strict=False))
    return pair | ({"choices": list(OF_A_PAIR[-choices:])} if choices else {})


def _register(params: Params, done: Finished, runs: dict[str, Any]) -> Registered:
    prepare_mlflow()
    import mlflow

    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.ERROR)
    task, seed, vocabulary = done.task, done.best(), stage_folder("bpe")
    weights, model = done.weights(seed), f"gpt1-{params.profile}-{task.name}"
    mlflow.set_tracking_uri(tracking_uri())
    mlflow.set_experiment(experiment_id=runs["experiment"])
    client = mlflow.MlflowClient()
    digest = fingerprint(
        [
            sha256_file(weights),
            *(sha256_file(vocabulary / name) for name in ("vocab.json", "merges.txt")),
        ]
    )
    there = [
        version
        for version in client.search_model_versions(f"name = '{model}'")
        if version.tags.get("gpt1.digest") == digest
    ]
    if not there:
        tags = {
            "gpt1.digest": digest,
            "task": task.name,
            "seed": str(seed),
            "pretraining_seed": str(pretraining_seed(params, seed)),
            "metric": task.metric,
            "dev_score": f"{done.dev_scores[seed]:.6f}",
        }
        version = _new_version(
            model, done, weights, vocabulary, runs["runs"].get(f"finetune {task.name}/seed-{seed}")
        )
        for key, value in tags.items():
            client.set_model_version_tag(model, version, key, value)
        client.update_registered_model(model, about(task, model))
        client.update_model_version(
            model,
            version,
            f"Seed {seed}, the best of {len(done.dev_scores)} on the development split: "
            f"{task.metric} {100 * done.dev_scores[seed]:.1f}.",
        )
        for key, value in {"task": task.name, "profile": params.profile}.items():
            client.set_registered_model_tag(model, key, value)
    else:
        version = there[0].version
    if str(dict(client.get_registered_model(model).aliases).get(BEST)) != str(version):
        client.set_registered_model_alias(model, BEST, version)
    return Registered(model, str(version), task.name, seed, not there)


def _new_version(
    model: str, done: Finished, weights: Path, vocabulary: Path, run_id: str | None
) -> Any:
    """Make the model's files and enter them in the registry; returns the version."""
    import mlflow
    from mlflow.models import Model, ModelSignature
    from mlflow.types.schema import Array, ColSpec, DataType, Map, Schema

    task, record = done.task, example_of(done.task)
    text, number = DataType.string, DataType.double
    answer = ColSpec(number, "score") if task.target == "score" else ColSpec(text, "label")
    signature = ModelSignature(
        Schema([ColSpec(Array(text) if name == "choices" else text, name) for name in record]),
        Schema(
            [
                answer,
                *([ColSpec(text, "choice")] if "choices" in record else []),
                ColSpec(Map(number), "probabilities"),
            ]
        ),
    )
    with tempfile.TemporaryDirectory() as temporary, quiet():
        copied, words = copy_code(Path(temporary)), Path(temporary) / "vocabulary"
        words.mkdir()
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(vocabulary / name, words / name)
        made = Model.log(
            artifact_path=None,
            flavor=mlflow.pyfunc,
            name=done.task.name,
            run_id=run_id,
            registered_model_name=model,
            await_registration_for=None,
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"weights": str(weights.absolute()), "vocabulary": str(words)},
            code_paths=[str(copied)],
            signature=signature,
            input_example=[record],
            pip_requirements=[f"{name}=={metadata.version(name)}" for name in NEEDED],
        )
    return made.registered_model_version


def copy_code(folder: Path) -> Path:
    """Copy what of our code a served model needs; returns the copy."""
    ours, copied = Path(__file__).parents[1], folder / "gpt1"
    copied.mkdir()
    shutil.copy(ours / "__init__.py", copied)
    for room in ROOMS:
        shutil.copytree(ours / room, copied / room, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, MLflow neither warns nor draws bars; what fails still raises."""
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    with redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def about(task: Task, model: str) -> str:
    """A registered model's page: what it takes, what it answers, how to serve and ask it;
    markdown.
    """
    import json

    body = json.dumps({"dataframe_records": [example_of(task)]})
    return "\n".join(
        (
            (
                f"{task.title} ({task.kind.replace('_', ' ')}), fine-tuned from the Transformer of"
                f" this run. Data: {task.licence}."
            ),
            "",
            f"Takes `{'`, `'.join(example_of(task))}`; answers "
            + (
                "a `score` from 0 to 5"
                if task.target == "score"
                else f"a `label` of {', '.join(f'`{label}`' for label in task.labels)}"
            )
            + " with `probabilities`.",
            "",
            "```bash",
            serve_command(model)
            .replace(" mlflow", " \\\n  mlflow")
            .replace(" --env", " \\\n  --env"),
            "",
            f"curl -s http://127.0.0.1:{PORT}/invocations \\",
            "  -H 'Content-Type: application/json' \\",
            f"  -d {shlex.quote(body)}",
            "```",
        )
    )
