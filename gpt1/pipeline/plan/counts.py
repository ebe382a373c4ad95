"""How much a run reads, the best source first: what its stages have written and is up to date, what
lies in data/raw, else facts.py.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from gpt1.base.files import RAW, read_arrays, read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.pipeline.plan import facts
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS

SPECIAL_SYMBOLS = 3


class Corpus(NamedTuple):
    """Bytes of the books, tokens to train on, rows of the vocabulary; whether counted in files."""

    bytes_: float
    tokens: float
    rows: int
    counted: bool


class Task(NamedTuple):
    """Examples of a task to train on, to select on and further ones; sequences of an example, mean
    tokens of one; whether counted.
    """

    train: int
    dev: int
    others: int
    sequences: int
    length: float
    counted: bool


class Asked(NamedTuple):
    """Tokens of a zero-shot set that each snapshot reads; whether counted."""

    tokens: float
    counted: bool


def corpus(params: Params, fresh: Collection[str]) -> Corpus:
    """The corpus; `fresh` are the names of the stages whose outputs are those of `params`."""
    folder, bpe = params.sources["books"].folder, params.bpe
    made_up, books = is_made_up(folder), RAW / "books"
    if made_up:
        world = params.world[folder.removeprefix("world/")]
        bytes_ = facts.PAGE_BYTES * world.books * world.pages
    elif books.is_dir():
        bytes_ = float(sum(path.stat().st_size for path in books.rglob("*.txt")))
    else:
        bytes_ = facts.BOOKSCORPUS_BYTES
    if "shard" in fresh:
        index = read_json(stage_folder("shard", "index.json"))
        return Corpus(bytes_, index["splits"]["train"]["tokens"], index["vocabulary_size"], True)
    tokens = bytes_ / facts.bytes_a_token(folder, bpe.merges) * (1 - params.shard.heldout_fraction)
    rows = bpe.merges + 2 * bpe.alphabet_size + 2
    return Corpus(bytes_, tokens, rows, not made_up and books.is_dir())


def task(name: str, params: Params, fresh: Collection[str]) -> Task:
    """A task of params.yaml."""
    row, sequences = params.tasks[name], TASKS[name].sequences
    if f"encode@{name}" in fresh:
        folder = stage_folder("encode", row.group, name)
        splits = read_json(folder / "task.json")["splits"]
        rows = {split: about["examples"] for split, about in splits.items()}
        train, dev = rows["train"], rows["dev"]
        length = tokens_in(folder / "train.npz") / train / sequences
        return Task(train, dev, sum(rows.values()) - train - dev, sequences, length, True)
    bpe, context = params.bpe.merges, params.model.context
    known = facts.rows_of(name, params.sources[name].folder, bpe, context)
    unlabelled = known.unlabelled if row.eval_rows is None else 0
    train, dev, labelled = (
        facts.capped(rows, wanted)
        for rows, wanted in (
            (known.train, row.train_rows),
            (known.dev, row.eval_rows),
            (known.labelled, row.eval_rows),
        )
    )
    return Task(train, dev, labelled + unlabelled, sequences, known.length, False)


def asked(name: str, params: Params, fresh: Collection[str]) -> Asked:
    """A zero-shot set of params.yaml."""
    if f"prompt@{name}" in fresh:
        return Asked(sum(map(tokens_in, stage_folder("prompt", name).glob("*.npz"))), True)
    folder, wanted = params.sources[name].folder, params.zero_shot[name]
    known = facts.asked_of(name, folder, params.bpe.merges, params.model.context)
    rows = facts.capped(known.train, wanted.train_rows) + facts.capped(known.scored, wanted.rows)
    return Asked(known.tokens * rows, False)


def tokens_in(path: Path) -> int:
    """Tokens in one split's npz."""
    return int(read_arrays(path, ("offsets",))["offsets"][-1])
