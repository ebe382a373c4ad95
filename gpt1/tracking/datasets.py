"""Which data a run was trained and scored on, from what the stages wrote beside them: name,
fingerprint, rows, where they are from. Imported only by what talks to MLflow.
"""

import json
import re
from pathlib import Path

from mlflow.entities import Dataset, DatasetInput, InputTag

from gpt1.base.files import fingerprint, read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.names import variant_and_task

CONTEXTS = {"train": "training", "dev": "validation", "heldout": "validation"}
BOOKS = stage_folder("acquire", "corpus", "books", "manifest.json")


def data_sets(params: Params, stage: str, name: str) -> list[DatasetInput]:
    """The data of a run; empty where what tells of them is not there (results brought from
    elsewhere).
    """
    task = name.split("/")[0]
    try:
        if stage == "pretrain":
            return _books()
        if stage in ("finetune", "ablate", "transfer"):
            task = variant_and_task(task)[1] if stage == "ablate" else task
            return _splits(task, "encode", params.tasks[task].group, task, "task.json")
        if stage == "zero_shot":
            return [
                one for key in params.zero_shot for one in _splits(key, "prompt", key, "set.json")
            ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return []


def _books() -> list[DatasetInput]:
    index = read_json(stage_folder("shard", "index.json"))
    return [
        _data_set(
            f"{index['corpus_name']}, {split}",
            about["sha256"][:16],
            split,
            BOOKS,
            num_tokens=about["tokens"],
            num_words=about["words"],
            num_books=len(about["books"]),
        )
        for split, about in index["splits"].items()
    ]


def _splits(name: str, *written: str) -> list[DatasetInput]:
    """The splits of a task or zero-shot set, from what the stage that wrote them says of them."""
    manifest = stage_folder("acquire", "tasks", name, "manifest.json")
    about = read_json(stage_folder(*written))
    digest = source_fingerprint(manifest)
    return [
        _data_set(
            f"{name} {split}",
            fingerprint([digest, split, numbers]),
            split.split("_")[0],
            manifest,
            num_rows=numbers["examples"],
            num_sequences=numbers["examples"] * (about.get("sequences") or about["continuations"]),
        )
        for split, numbers in about["splits"].items()
    ]


def _data_set(name: str, digest: str, split: str, manifest: Path, **sizes: int) -> DatasetInput:
    """A split as MLflow shows it: with a link to where it is from if the manifest names one."""
    origin = str(read_json(manifest)["origin"]) if manifest.is_file() else str(manifest.parent)
    link = re.search(r"(?<!\S)https?://\S*", origin)
    kind, source = ("http", {"url": link[0].rstrip(",")}) if link else ("local", {"uri": origin})
    return DatasetInput(
        Dataset(name, digest, kind, json.dumps(source), profile=json.dumps(sizes)),
        [InputTag("mlflow.data.context", CONTEXTS.get(split, "test"))],
    )


def source_fingerprint(manifest: Path) -> str:
    """What stands for the files of a source, by the sha256 of each; empty where there is no
    manifest.
    """
    if not manifest.is_file():
        return ""
    files = read_json(manifest)["files"]
    return fingerprint({name: about["sha256"] for name, about in files.items()})


def source_fingerprints() -> dict[str, str]:
    """The fingerprint of each source under data/acquire, by its name."""
    return {
        path.parent.name: source_fingerprint(path)
        for path in sorted(stage_folder("acquire").glob("*/*/manifest.json"))
    }
