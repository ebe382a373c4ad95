"""`encode`: one task's official files as token ids, shaped as in Figure 1 of the paper: <split>.npz
and task.json.
"""

import sys
from array import array
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.params.schema import Params, read_params
from gpt1.tasks.readers import SplitRows, read_task
from gpt1.tasks.shapes import Symbols, shape
from gpt1.tasks.table import TASKS, Task

UINT16_ENTRIES = 65_536


def task_named(name: str, params: Params) -> Task:
    """The task of that name, which params.yaml has. Raises UserError where there is none."""
    if name not in params.tasks or name not in TASKS:
        names = [task for task in params.tasks if task in TASKS]
        raise UserError(f"expected one task of params.yaml ({', '.join(names)}); found {name}")
    return TASKS[name]


Arrays = dict[str, Any]  # of numpy arrays


def split_arrays(
    task: Task, rows: SplitRows, ids: dict[str, list[int]], symbols: Symbols, context: int
) -> tuple[Arrays, int]:
    """The arrays of one split's npz, and how many of its examples were cut to the context."""
    tokens = array("H" if symbols.extract < UINT16_ENTRIES else "I")
    offsets = array("q", [0])
    truncated = 0
    for example in rows.examples:
        shaped = shape(
            task.kind,
            [ids[text] for text in example.context],
            [ids[text] for text in example.choices],
            symbols,
            context,
        )
        truncated += shaped.truncated
        for sequence in shaped.sequences:
            tokens.extend(sequence)
            offsets.append(len(tokens))
    labels = [example.label for example in rows.examples]
    arrays: Arrays = {
        "tokens": np.frombuffer(tokens, dtype=np.uint16 if tokens.typecode == "H" else np.uint32),
        "offsets": np.frombuffer(offsets, dtype=np.int64),
        "labels": np.array(labels, dtype=np.float32 if task.target == "score" else np.int64),
    }
    if task.subsets:
        arrays["subset"] = np.array([example.subset for example in rows.examples], dtype=np.int8)
    return arrays, truncated


def described(
    task: Task, vocabulary: Vocabulary, splits: dict[str, Any], release: str
) -> dict[str, Any]:
    """task.json: all that later stages need to know of the task."""
    shared = {
        "kind",
        "combine",
        "sequences",
        "outputs",
        "target",
        "labels",
        "metric",
        "second_metric",
        "subsets",
    }
    return {
        "task": task.name,
        **{name: getattr(task, name) for name in sorted(shared)},
        "selection_split": "dev",
        "splits": splits,
        "release": release,
        "vocabulary_size": vocabulary.size,
        "vocabulary_fingerprint": vocabulary.fingerprint,
    }


def main(name: str) -> None:
    """Read the official files, encode their texts, shape them, write one npz a split."""
    params = read_params()
    task = task_named(name, params)
    row = params.tasks[task.name]
    official = stage_folder("acquire", "tasks", task.name)
    splits, release = read_task(task, official, row, params.encode.max_unreadable_fraction)
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    symbols = Symbols(vocabulary.start, vocabulary.delimiter, vocabulary.extract)
    examples = (example for rows in splits.values() for example in rows.examples)
    texts = dict.fromkeys(
        text for example in examples for text in (*example.context, *example.choices)
    )  # each once, for many examples
    ids = encode_texts(task.name, list(texts), stage_folder("bpe"))
    about: dict[str, Any] = {}
    with writing_folder(stage_folder("encode", row.group, task.name)) as folder:
        for split, rows in splits.items():
            arrays, truncated = split_arrays(task, rows, ids, symbols, params.model.context)
            np.savez(folder / f"{split}.npz", **arrays)
            about[split] = {"examples": len(rows.examples), "truncated": truncated} | rows.counts()
            if task.subsets:
                about[split]["subsets"] = {
                    name: int((arrays["subset"] == number).sum())
                    for number, name in enumerate(task.subsets)
                }
        write_json(folder / "task.json", described(task, vocabulary, about, release))
    print(
        f"{task.name}: "
        + ", ".join(f"{split} {counts['examples']}" for split, counts in about.items()),
        file=sys.stderr,
    )
