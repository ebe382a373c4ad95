"""Examples as arrays of token ids, and task.json."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpt1.base.files import write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.shards import token_type
from gpt1.tasks.definitions import Task
from gpt1.tasks.readers import SplitRows
from gpt1.tasks.rows import CLUSTERS, Example, cluster_ids
from gpt1.tasks.shapes import Symbols, shape

DESCRIBED = (
    "combine",
    "kind",
    "labels",
    "metric",
    "outputs",
    "second_metric",
    "sequences",
    "subsets",
    "target",
)


def texts_of(examples: Iterable[Example]) -> list[str]:
    """Return every text of these examples once."""
    return list(
        dict.fromkeys(text for example in examples for text in (*example.context, *example.choices))
    )


def packed(sequences: Iterable[Iterable[int]], largest: int) -> dict[str, Any]:
    """Join sequences of ids up to `largest`: tokens [t], offsets [n + 1]."""
    type_ = token_type(largest + 1)
    parts = [np.fromiter(sequence, type_) for sequence in sequences]
    return {
        "tokens": np.concatenate(parts),
        "offsets": np.cumsum([0, *map(len, parts)], dtype=np.int64),
    }


class EncodedSplit(NamedTuple):
    """A split's arrays, the clusters of its rows [n], and its entry in task.json or set.json."""

    arrays: dict[str, Any]
    clusters: npt.NDArray[np.int64]
    about: dict[str, Any]


def encode_split(
    task: Task,
    rows: SplitRows,
    ids: dict[str, list[int]],
    vocabulary: Vocabulary,
    context: int,
    meaning_of: Callable[[str], str] | None,
) -> EncodedSplit:
    """Encode a split by the ids of its texts; `meaning_of`: see cluster_ids."""
    symbols = Symbols(vocabulary.start, vocabulary.delimiter, vocabulary.extract)
    truncated = 0

    def sequences() -> Iterable[list[int]]:
        nonlocal truncated
        for example in rows.examples:
            parts, choices = (
                [ids[text] for text in texts] for texts in (example.context, example.choices)
            )
            shaped = shape(task.kind, parts, choices, symbols, context)
            truncated += shaped.truncated
            yield from shaped.sequences

    arrays = packed(sequences(), symbols.extract)
    type_ = np.float32 if task.target == "score" else np.int64
    arrays["labels"] = np.array([example.label for example in rows.examples], dtype=type_)
    about = {"examples": len(rows.examples), "truncated": truncated} | rows.counts()
    if task.subsets:
        subset = np.array([example.subset for example in rows.examples], dtype=np.int8)
        arrays["subset"] = subset
        about["subsets"] = {
            name: int((subset == number).sum()) for number, name in enumerate(task.subsets)
        }
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    about["sha256"] = hashlib.sha256(content).hexdigest()
    return EncodedSplit(arrays, cluster_ids(task, rows.examples, meaning_of), about)


def described(task: Task, release: str) -> dict[str, Any]:
    """Return what task.json says of a task."""
    return {
        "task": task.name,
        **{name: getattr(task, name) for name in DESCRIBED},
        "selection_split": "dev",
        "release": release,
    }


def write_splits(
    folder: Path,
    file: str,
    about: dict[str, Any],
    splits: Mapping[str, EncodedSplit],
    vocabulary: Vocabulary,
) -> None:
    """Write one npz a split, their clusters, and into `file` what is there."""
    with writing_folder(folder) as new:
        for name, split in splits.items():
            np.savez(new / f"{name}.npz", **split.arrays)
        clusters = {name: split.clusters for name, split in splits.items()}
        np.savez(new / CLUSTERS, allow_pickle=False, **clusters)
        facts = {
            "splits": {name: split.about for name, split in splits.items()},
            "vocabulary_size": vocabulary.size,
            "vocabulary_fingerprint": vocabulary.fingerprint,
        }
        write_json(new / file, about | facts)
    counts = ", ".join(f"{name} {split.about['examples']}" for name, split in splits.items())
    print(f"{folder.name}: {counts}", file=sys.stderr)
