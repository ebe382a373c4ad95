"""For the benchmarks: what pre-training and fine-tuning read, made up in the formats of the stages
before them, in a folder of its own.
"""

import json
from pathlib import Path

import numpy as np

from gpt1.base.files import write_json
from gpt1.corpus.shards import SplitWriter, write_index
from gpt1.params.profile import compose
from gpt1.params.schema import Params, validate

VOCABULARY, FINGERPRINT, CONTEXT = 1_500, "f" * 16, 64
TASK, GROUP, ROWS = "cola", "glue", {"train": 960, "dev": 64, "test": 64}
MODEL = {
    "model.width": 128,
    "model.layers": 4,
    "model.heads": 4,
    "model.feed_forward": 512,
    "model.context": CONTEXT,
}  # 1.0 M parameters


def made_params(**changes: object) -> Params:
    """The demo's parameters with a network of a million, and what `changes` says by dotted names
    with __ for the dot.
    """
    values = MODEL | {name.replace("__", "."): value for name, value in changes.items()}
    return validate(
        compose("demo", [f"{name}={json.dumps(value)}" for name, value in values.items()])
    )


def write_inputs(folder: Path, params: Params) -> None:
    """params.yaml, data/shard and one encoded task."""
    (folder / "params.yaml").write_text(
        json.dumps(params.model_dump(mode="json")), encoding="utf-8"
    )
    draw, shard = np.random.default_rng(0), folder / "data/shard"
    shard.mkdir(parents=True)
    splits = {}
    for name, tokens in (("train", 200_000), ("heldout", 10_000)):
        split = SplitWriter(shard / f"{name}.bin")
        split.begin(name)
        split.append(
            (np.cumsum(draw.integers(0, 3, tokens)) % VOCABULARY).astype(np.uint16), tokens
        )
        splits[name] = split.close()
    write_index(shard, splits, VOCABULARY, FINGERPRINT, "made up")
    encoded = folder / "data/encode" / GROUP / TASK
    encoded.mkdir(parents=True)
    for name, rows in ROWS.items():
        labels, lengths = draw.integers(0, 2, rows), draw.integers(8, CONTEXT // 2, rows)
        parts = [
            [VOCABULARY, *draw.integers(0, VOCABULARY, length), 3 + label, VOCABULARY + 2]
            for label, length in zip(labels, lengths, strict=True)
        ]
        np.savez(
            encoded / f"{name}.npz",
            tokens=np.concatenate(parts).astype(np.uint16),
            offsets=np.concatenate([[0], np.cumsum(lengths + 3)]).astype(np.int64),
            labels=labels,
        )
    counts = {
        name: {
            "examples": rows,
            "rows_read": rows,
            "unreadable": {},
            "truncated": 0,
            "labelled": True,
        }
        for name, rows in ROWS.items()
    }
    write_json(
        encoded / "task.json",
        {
            "task": TASK,
            "kind": "classification",
            "combine": "single",
            "sequences": 1,
            "outputs": 2,
            "target": "class",
            "labels": ["0", "1"],
            "metric": "matthews",
            "vocabulary_size": VOCABULARY,
            "vocabulary_fingerprint": FINGERPRINT,
            "selection_split": "dev",
            "splits": counts,
        },
    )
