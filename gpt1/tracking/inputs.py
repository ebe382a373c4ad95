"""The data that a training read and the weights that it left, as MLflow lists them. Imported only
by what talks to MLflow.
"""

import json
from pathlib import Path

from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, Metric, Run

from gpt1.base.files import fingerprint, read_json, sha256_file, stage_folder
from gpt1.tracking.results import Training
from gpt1.tracking.store import Store


def log_data(store: Store, run: Run, task: str) -> None:
    """Log the splits of a task, or of the books, as the stages before wrote them down; none where
    these files are not there (results brought from elsewhere).
    """
    source, written = (
        stage_folder("acquire", "corpus", "books"),
        stage_folder("shard", "index.json"),
    )
    if row := store.params.tasks.get(task):
        source = stage_folder("acquire", "tasks", task)
        written = stage_folder("encode", row.group, task, "task.json")
    manifest = source / "manifest.json"
    if not (manifest.is_file() and written.is_file()):
        return
    origin, files = json.dumps({"uri": read_json(manifest)["origin"]}), sha256_file(manifest)
    inputs = []
    for split, about in read_json(written)["splits"].items():
        sizes = json.dumps({key: one for key, one in about.items() if isinstance(one, int)})
        digest = fingerprint([files, split, about])
        data = Dataset(f"{source.name} {split}", digest, "local", origin, profile=sizes)
        inputs.append(DatasetInput(data, [InputTag("mlflow.data.context", split)]))
    store.client.log_inputs(run.info.run_id, inputs)


def log_model(store: Store, run: Run, weights: Path, training: Training) -> None:
    """Enter weights, which stay where they are, as the run's model with what was measured."""
    client, run_id = store.client, run.info.run_id
    if client.search_logged_models([store.experiment], f"source_run_id = '{run_id}'"):
        return
    end = training.points[-1]
    tags = {"weights": str(weights), "sha256": sha256_file(weights)}
    name = run.info.run_name.replace(" ", "-")
    model = client.create_logged_model(store.experiment, name, run_id, tags)
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, end["update"])])
    client.finalize_logged_model(model.model_id, "READY")
    at = int(end["time"] * 1000), end["update"], model.model_id
    client.log_batch(run_id, [Metric(key, one, *at) for key, one in training.measured.items()])
