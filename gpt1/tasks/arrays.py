"""Examples as arrays of token ids, and task.json."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.shards import token_type
from gpt1.tasks.definitions import Task
from gpt1.tasks.readers import SplitRows
from gpt1.tasks.rows import Example
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


def example_arrays(
    task: Task, examples: list[Example], ids: dict[str, list[int]], symbols: Symbols, context: int
) -> tuple[dict[str, Any], int]:
    """Return the arrays of a split's npz, and how many examples were cut."""
    truncated = 0

    def sequences() -> Iterable[list[int]]:
        nonlocal truncated
        for example in examples:
            parts, choices = (
                [ids[text] for text in texts] for texts in (example.context, example.choices)
            )
            shaped = shape(task.kind, parts, choices, symbols, context)
            truncated += shaped.truncated
            yield from shaped.sequences

    arrays = packed(sequences(), symbols.extract)
    arrays["labels"] = np.array(
        [example.label for example in examples],
        dtype=np.float32 if task.target == "score" else np.int64,
    )
    if task.subsets:
        arrays["subset"] = np.array([example.subset for example in examples], dtype=np.int8)
    return arrays, truncated


def about_split(
    task: Task, rows: SplitRows, arrays: dict[str, Any], truncated: int
) -> dict[str, Any]:
    """Return a split's entry in task.json."""
    subsets = {
        name: int((arrays["subset"] == number).sum()) for number, name in enumerate(task.subsets)
    }
    about = {"examples": len(rows.examples), "truncated": truncated} | rows.counts()
    content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
    about["sha256"] = hashlib.sha256(content).hexdigest()
    return about | ({"subsets": subsets} if subsets else {})


def described(
    task: Task, vocabulary: Vocabulary, splits: dict[str, Any], release: str
) -> dict[str, Any]:
    """Return the contents of task.json."""
    return {
        "task": task.name,
        **{name: getattr(task, name) for name in DESCRIBED},
        "selection_split": "dev",
        "splits": splits,
        "release": release,
        "vocabulary_size": vocabulary.size,
        "vocabulary_fingerprint": vocabulary.fingerprint,
    }
