"""`prompt`: one zero-shot set's official files as prompts (paper, section 5): <split>.npz and
set.json under data/prompt/<set>.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.params.schema import Params, read_params
from gpt1.params.schema import Task as TaskRow
from gpt1.tasks.readers import SplitRows, read_split, splits_to_read
from gpt1.tasks.rows import Example
from gpt1.tasks.zero_shot import (
    SETS,
    Prompt,
    ZeroShotSet,
    check_classes,
    prompt,
    texts_of,
    word_notes,
)

UINT16_ENTRIES = 65_536
TWO_CLASSES = (
    "threshold",
    "next_word",
)  # rules whose labels are classes, not places among the continuations


def set_named(name: str, params: Params) -> ZeroShotSet:
    """The set of that name, which params.yaml has. Raises UserError where there is none."""
    if name not in params.zero_shot or name not in SETS:
        names = [known for known in params.zero_shot if known in SETS]
        raise UserError(
            f"expected one zero-shot set of params.yaml ({', '.join(names) or 'it has none'});"
            f" found {name}"
        )
    return SETS[name]


def read_splits(set_: ZeroShotSet, params: Params) -> tuple[str, dict[str, SplitRows]]:
    """The name of the split to score (test where its labels are public, else dev), its rows, and
    train's where a threshold needs them.
    """
    name = set_.task.name
    wanted = params.zero_shot[name]
    official = stage_folder("acquire", "tasks", name)
    row = TaskRow(
        group="glue", train_rows=wanted.train_rows, eval_rows=wanted.rows, finetune={}
    )  # no group matters in reading
    splits = {split.name: split for split in splits_to_read(set_.task, official, row)}
    limit = params.encode.max_unreadable_fraction
    rows = {
        name: read_split(set_.task, splits[name], official, row, limit)
        for name in ("test",)
        if name in splits and splits[name].format.label is not None
    }
    scored = "test" if "test" in rows and rows["test"].labelled else "dev"
    names = ["train", scored] if set_.rule == "threshold" else [scored]
    return scored, {
        name: (
            rows[name]
            if name in rows
            else read_split(set_.task, splits[name], official, row, limit)
        )
        for name in names
    }


def split_arrays(
    prompts: Sequence[Prompt], examples: Sequence[Example], vocabulary_size: int
) -> dict[str, Any]:
    """The arrays of one split's npz: tokens and offsets of prefixes and continuations in turn;
    uncounted [n, k]; labels [n].
    """
    parts = [part for one in prompts for part in (one.prefix, *one.continuations)]
    width = np.uint16 if vocabulary_size <= UINT16_ENTRIES else np.uint32
    return {
        "tokens": np.array([id_ for part in parts for id_ in part], dtype=width),
        "offsets": np.cumsum([0, *map(len, parts)], dtype=np.int64),
        "uncounted": np.array([one.uncounted for one in prompts], dtype=np.int64),
        "labels": np.array([example.label for example in examples], dtype=np.int64),
    }


def notes_of(splits: dict[str, dict[str, Any]], scored: str, context: int) -> list[str]:
    """What a reader of the scores should know: rows chosen and texts cut."""
    counts = splits[scored]
    notes = (
        [f"{counts['examples']:,} of {counts['available']:,} {scored} rows"]
        if counts["examples"] < counts["available"]
        else []
    )
    if counts["truncated"]:
        notes.append(
            f"{counts['truncated']:,} of {counts['examples']:,} prompts cut to {context} tokens"
        )
    return notes


def main(name: str) -> None:
    """Read the official files, encode their texts, make prompts of them, write one npz a split."""
    params = read_params()
    set_, context = set_named(name, params), params.model.context
    scored, splits = read_splits(set_, params)
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    ids = encode_texts(
        name,
        texts_of(set_.rule, [example for rows in splits.values() for example in rows.examples]),
        stage_folder("bpe"),
    )
    about: dict[str, dict[str, Any]] = {}
    with writing_folder(stage_folder("prompt", name)) as folder:
        for split, rows in splits.items():
            made = [
                (prompt(set_.rule, example, ids, context), example) for example in rows.examples
            ]
            kept = [(one, example) for one, example in made if one.scorable]
            if not kept:
                raise UserError(
                    f"zero-shot set {name}: expected {split} examples with tokens to score, found"
                    f" none among {len(made)}; look at the files in"
                    f" {stage_folder('acquire', 'tasks', name)}"
                )
            arrays = split_arrays(
                [one for one, _ in kept], [example for _, example in kept], vocabulary.size
            )
            if set_.rule in TWO_CLASSES:
                check_classes(set_.task, split, arrays["labels"])
            np.savez(folder / f"{split}.npz", **arrays)
            about[split] = rows.counts() | {
                "examples": len(kept),
                "nothing_to_score": len(made) - len(kept),
                "truncated": sum(one.truncated for one, _ in kept),
            }
        notes = [
            *(word_notes(vocabulary, ids) if set_.rule == "next_word" else []),
            *notes_of(about, scored, context),
        ]
        write_json(
            folder / "set.json",
            {
                "set": name,
                "title": set_.task.title,
                "rule": set_.rule,
                "metric": set_.task.metric,
                "random": set_.random,
                "notes": notes,
                "continuations": set_.continuations,
                "scored_split": scored,
                "splits": about,
                "vocabulary_size": vocabulary.size,
                "vocabulary_fingerprint": vocabulary.fingerprint,
            },
        )
    print(
        f"{name}: " + ", ".join(f"{split} {counts['examples']}" for split, counts in about.items()),
        file=sys.stderr,
    )
