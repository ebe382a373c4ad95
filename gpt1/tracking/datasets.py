"""Which data a run was trained and scored on, from what the stages wrote beside them: name,
fingerprint, rows, where they are from.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpt1.base.files import fingerprint, read_json, stage_folder
from gpt1.params.schema import Params

CONTEXTS = {"train": "training", "dev": "validation", "heldout": "validation"}


@dataclass(frozen=True)
class DataSet:
    """One split: what it is for, the digest of its files, and numbers such as its rows or
    tokens.
    """

    name: str
    context: str
    digest: str
    origin: str
    numbers: dict[str, int]


def data_sets(params: Params, stage: str, name: str) -> list[DataSet]:
    """The data of a run; empty where what tells of them is not there (results brought from
    elsewhere).
    """
    try:
        if stage == "pretrain":
            return _books()
        if stage in ("finetune", "ablate", "transfer"):
            task = name.split("/")[0]
            return _task(params, params.ablate[task].task if stage == "ablate" else task)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return []


def _books() -> list[DataSet]:
    index = read_json(stage_folder("shard", "index.json"))
    origin = _origin(stage_folder("acquire", "corpus", "books", "manifest.json"))
    return [
        DataSet(
            f"{index['corpus_name']}, {split}",
            CONTEXTS[split],
            about["sha256"][:16],
            origin,
            {
                "num_tokens": about["tokens"],
                "num_words": about["words"],
                "num_books": len(about["books"]),
            },
        )
        for split, about in index["splits"].items()
    ]


def _task(params: Params, task: str) -> list[DataSet]:
    folder = stage_folder("acquire", "tasks", task)
    digest = source_fingerprint(folder / "manifest.json")
    about = read_json(stage_folder("encode", params.tasks[task].group, task, "task.json"))
    origin = _origin(folder / "manifest.json")
    return [
        DataSet(
            f"{task} {split}",
            CONTEXTS.get(split.split("_")[0], "test"),
            fingerprint([digest, split, numbers]),
            origin,
            {
                "num_rows": numbers["examples"],
                "num_sequences": numbers["examples"] * about["sequences"],
            },
        )
        for split, numbers in about["splits"].items()
    ]


def source_fingerprint(manifest: Path) -> str:
    """What stands for the files of a source, by the sha256 of each; empty where there is no
    manifest.
    """
    if not manifest.is_file():
        return ""
    files: dict[str, Any] = read_json(manifest)["files"]
    return fingerprint({name: about["sha256"] for name, about in files.items()})


def source_fingerprints() -> dict[str, str]:
    """The fingerprint of each source under data/acquire, by its name."""
    found = {
        path.parent.name: source_fingerprint(path)
        for path in sorted(stage_folder("acquire").glob("*/*/manifest.json"))
    }
    return {name: mark for name, mark in found.items() if mark}


def _origin(manifest: Path) -> str:
    return str(read_json(manifest)["origin"]) if manifest.is_file() else str(manifest.parent)
