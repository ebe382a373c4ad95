"""Tiny made data in the formats of the stages before pretrain and finetune, written in the current
directory.
"""

import json
from pathlib import Path

import numpy as np
import torch

from gpt1.base.files import sha256_file
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml
from gpt1.tasks.definitions import TASKS

ROOT = Path(__file__).parents[1]


def paper():
    """The paper's parameters."""
    return validate(read_yaml(ROOT / "conf/paper.yaml"))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def outputs(folder):
    """The content of every file below a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def tiny_sizes(context=24, width=16, layers=2, heads=4, feed_forward=64, deviation=0.02):
    """Sizes of a network; both deviations of its start are the same."""
    return Model(
        context=context,
        width=width,
        layers=layers,
        heads=heads,
        feed_forward=feed_forward,
        embedding_deviation=deviation,
        weight_deviation=deviation,
        layer_norm_epsilon=1e-5,
    )


VOCABULARY, CONTEXT, WORDS = 40, 16, 0.75
START, DELIMITER, EXTRACT = VOCABULARY, VOCABULARY + 1, VOCABULARY + 2
ABOUT = ("combine", "sequences", "outputs", "target", "metric")
GROUPS = {"cola": "glue", "mrpc": "glue", "story_cloze": "qa", "stsb": "glue"}


def with_rows(values, ablated=()):
    """The values with the ablations on those tasks alone that are named, as ABLATION-TASK."""
    ablations = {
        name: row
        | {
            "tasks": {
                task: about["group"]
                for task, about in values["tasks"].items()
                if f"{name}-{task}" in ablated
            }
        }
        for name, row in values["ablations"].items()
    }
    return values | {"ablations": ablations}


def write_params(folder, **changes):
    """The paper's parameters with tiny sizes and what `changes` says, by dotted names with __ for
    the dot; ablation__ABLATION-TASK names a row.
    """
    values = read_yaml(ROOT / "conf/paper.yaml")
    tiny = {
        "model__context": CONTEXT,
        "model__width": 16,
        "model__layers": 2,
        "model__heads": 2,
        "model__feed_forward": 32,
        "pretrain__epochs": None,
        "pretrain__updates": 4,
        "pretrain__batch_size": 4,
        "pretrain__warmup_updates": 1,
        "pretrain__log_updates": 1,
        "pretrain__heldout_updates": 2,
        "pretrain__heldout_windows": 6,
        "finetune__seeds": [0, 1],
        "finetune__epochs": 2,
        "finetune__batch_size": 4,
        "finetune__log_updates": 1,
        "finetune__learning_rate": 0.01,
    }
    ablated = [name.removeprefix("ablation__") for name in changes if name.startswith("ablation__")]
    for name, value in (tiny | changes).items():
        section, key = name.split("__")
        if section != "ablation":
            values[section][key] = value
    (folder / "params.yaml").write_text(json.dumps(with_rows(values, ablated)))


def write_paper_params(folder, **sections):
    """The paper's parameters, with keys of sections laid over."""
    values = read_yaml(ROOT / "conf/paper.yaml")
    for name, changed in sections.items():
        values[name] |= changed
    (folder / "params.yaml").write_text(json.dumps(values))


def put_files(folder, files):
    """Files by name and content, below a folder of the current one."""
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_shards(folder, book_tokens=300):
    """Two books to learn from, one held out."""
    folder.mkdir(parents=True)
    generator, splits = np.random.default_rng(0), {}
    for split, books in (("train", 2), ("heldout", 1)):
        tokens = (
            np.cumsum(generator.integers(0, 3, size=books * book_tokens)) % VOCABULARY
        ).astype(np.uint16)
        tokens.tofile(folder / f"{split}.bin")
        splits[split] = {
            "tokens": len(tokens),
            "words": int(WORDS * len(tokens)),
            "sha256": sha256_file(folder / f"{split}.bin"),
            "books": [
                {
                    "name": f"{split}{n}",
                    "offset": n * book_tokens,
                    "tokens": book_tokens,
                    "words": int(WORDS * book_tokens),
                }
                for n in range(books)
            ],
        }
    (folder / "index.json").write_text(
        json.dumps(
            {
                "dtype": "uint16",
                "vocabulary_size": VOCABULARY,
                "vocabulary_fingerprint": "f" * 16,
                "corpus_name": "made",
                "splits": splits,
            }
        )
    )


def write_task(task, fingerprint="f" * 16, train=18):
    about, folder = TASKS[task], Path("data/encode", GROUPS[task], task)
    folder.mkdir(parents=True)
    generator, splits = np.random.default_rng(1), {}
    for split, count in (("train", train), ("dev", 7), ("test", 5)):
        parts, labels = (
            [],
            generator.uniform(0, 5, count).astype(np.float32)
            if about.target == "score"
            else generator.integers(0, 2, count),
        )
        for label in labels:
            for k in range(about.sequences):
                word = (
                    3 if (k == label if about.combine == "choose" else label > 0.5) else 7
                )  # what gives the label away
                parts.append(
                    [
                        START,
                        *generator.integers(8, VOCABULARY, generator.integers(1, 8)),
                        DELIMITER,
                        word,
                        EXTRACT,
                    ]
                )
        if split == "test":
            labels = np.full_like(labels, -1)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        np.savez(
            folder / f"{split}.npz",
            tokens=np.concatenate(parts).astype(np.uint16),
            offsets=offsets,
            labels=labels,
        )
        splits[split] = {
            "examples": count,
            "rows_read": count,
            "unreadable": {},
            "truncated": 0,
            "labelled": split != "test",
        }
    (folder / "task.json").write_text(
        json.dumps(
            {
                "task": task,
                "kind": "classification",
                **{key: getattr(about, key) for key in ABOUT},
                "labels": ["0", "1"],
                "vocabulary_size": VOCABULARY,
                "vocabulary_fingerprint": fingerprint,
                "selection_split": "dev",
                "splits": splits,
            }
        )
    )
