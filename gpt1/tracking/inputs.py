"""The data that a training read, as MLflow lists them. Imported only by what talks to MLflow."""

import json

from mlflow.entities import Dataset, DatasetInput, InputTag, Run

from gpt1.base.files import fingerprint, read_json, sha256_file, stage_folder
from gpt1.tracking.store import Store


def log_data(store: Store, run: Run, task: str) -> None:
    """Log the splits of a task, or of the books, as earlier stages described them; nothing where
    these files are missing (results brought from elsewhere).
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
        sizes = json.dumps({key: value for key, value in about.items() if isinstance(value, int)})
        digest = fingerprint([files, split, about])
        data = Dataset(f"{source.name} {split}", digest, "local", origin, profile=sizes)
        inputs.append(DatasetInput(data, [InputTag("mlflow.data.context", split)]))
    store.client.log_inputs(run.info.run_id, inputs)
