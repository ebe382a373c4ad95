"""Tiny made data in the formats of the stages before pretrain and finetune, written in the current
directory.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import write_json
from gpt1.corpus.shards import SplitWriter, token_type, write_index
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml
from gpt1.tasks.definitions import TASKS

ROOT = Path(__file__).parents[1]
SETTINGS = {"GPT1_DEVICE": "cpu", "GPT1_THREADS": "1", "OMP_NUM_THREADS": "1", "GPT1_MLFLOW": "off"}


@cache
def paper():
    """The paper's parameters, which nothing can change."""
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
ABOUT = ("kind", "combine", "sequences", "outputs", "target", "metric")
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


def refused(function, *arguments, **named):
    """The one line with which a function refuses what it is given (of UserError: test_safety.py)."""
    with pytest.raises(UserError) as error:
        function(*arguments, **named)
    return str(error.value)


def json_lines(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def as_json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def change_json(path, **values):
    """Give a file of JSON other values of some keys."""
    write_json(Path(path), json.loads(Path(path).read_text()) | values)


def put_files(folder, files):
    """Files by name and content, below a folder of the current one."""
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def put_acquired(task, files):
    """Official files of a task as `acquire` leaves them."""
    put_files(f"data/acquire/tasks/{task}", files)


def write_token_files(folder, books, vocabulary_size=VOCABULARY, fingerprint="f" * 16):
    """Token files and their index of {split: ids of each book}; WORDS of a token are a word."""
    folder.mkdir(parents=True)
    splits = {}
    for split, ids_of_books in books.items():
        writer = SplitWriter(folder / f"{split}.bin")
        for number, ids in enumerate(ids_of_books):
            writer.begin(f"book {number}")
            writer.append(np.array(ids, token_type(vocabulary_size)), int(WORDS * len(ids)))
        splits[split] = writer.close()
    write_index(folder, splits, vocabulary_size, fingerprint)


def write_shards(folder, book_tokens=300):
    """Two books to learn from, one held out."""
    generator = np.random.default_rng(0)
    books = {
        split: np.cumsum(generator.integers(0, 3, (count, book_tokens))).reshape(count, -1)
        % VOCABULARY
        for split, count in (("train", 2), ("heldout", 1))
    }
    write_token_files(folder, books)


def write_task(task, fingerprint="f" * 16, train=18):
    about, folder = TASKS[task], Path("data/encode", GROUPS[task], task)
    folder.mkdir(parents=True)
    generator, splits = np.random.default_rng(1), {}
    for split, count in (("train", train), ("dev", 7), ("test", 5)):
        parts, labels = [], generator.integers(0, 2, count)
        if about.target == "score":
            labels = generator.uniform(0, 5, count).astype(np.float32)
        for label in labels:
            for k in range(about.sequences):
                gives_away = k == label if about.combine == "choose" else label > 0.5
                words = generator.integers(8, VOCABULARY, generator.integers(1, 8))
                parts.append([START, *words, DELIMITER, 3 if gives_away else 7, EXTRACT])
        if split == "test":
            labels = np.full_like(labels, -1)
        np.savez(
            folder / f"{split}.npz",
            tokens=np.concatenate(parts).astype(np.uint16),
            offsets=np.cumsum([0, *map(len, parts)]),
            labels=labels,
        )
        splits[split] = {"examples": count, "labelled": split != "test"}
    facts = {name: getattr(about, name) for name in ABOUT}
    facts |= {"task": task, "labels": ["0", "1"], "vocabulary_size": VOCABULARY}
    facts |= {"vocabulary_fingerprint": fingerprint, "selection_split": "dev", "splits": splits}
    write_json(folder / "task.json", facts)
