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
    source, bpe = params.sources["books"], params.bpe
    if not is_made_up(source.folder):
        bytes_, seen = facts.BOOKSCORPUS_BYTES, False
        books = RAW / "books"
        if books.is_dir():
            bytes_, seen = float(sum(path.stat().st_size for path in books.rglob("*.txt"))), True
    else:
        world = params.world[source.folder.removeprefix("world/")]
        bytes_, seen = facts.PAGE_BYTES * world.books * world.pages, False
    if "shard" in fresh:
        index = read_json(stage_folder("shard", "index.json"))
        return Corpus(bytes_, index["splits"]["train"]["tokens"], index["vocabulary_size"], True)
    tokens = (
        bytes_
        / facts.bytes_a_token(source.folder, bpe.merges)
        * (1.0 - params.shard.heldout_fraction)
    )
    return Corpus(bytes_, tokens, bpe.merges + 2 * bpe.alphabet_size + 2, seen)


def task(name: str, params: Params, fresh: Collection[str]) -> Task:
    """A task of params.yaml."""
    row, sequences = params.tasks[name], TASKS[name].sequences
    folder = stage_folder("encode", row.group, name)
    if f"encode@{name}" in fresh:
        splits = {
            split: about["examples"]
            for split, about in read_json(folder / "task.json")["splits"].items()
        }
        others = sum(splits.values()) - splits["train"] - splits["dev"]
        return Task(
            splits["train"],
            splits["dev"],
            others,
            sequences,
            tokens_in(folder / "train.npz") / splits["train"] / sequences,
            True,
        )
    known = facts.rows_of(
        name, params.sources[name].folder, params.bpe.merges, params.model.context
    )
    evaluated = facts.capped(known.labelled, row.eval_rows) + (
        known.unlabelled if row.eval_rows is None else 0
    )
    train, dev = facts.capped(known.train, row.train_rows), facts.capped(known.dev, row.eval_rows)
    return Task(train, dev, evaluated, sequences, known.length, False)


def asked(name: str, params: Params, fresh: Collection[str]) -> Asked:
    """A zero-shot set of params.yaml."""
    if f"prompt@{name}" in fresh:
        folder = stage_folder("prompt", name)
        return Asked(sum(tokens_in(path) for path in folder.glob("*.npz")), True)
    known = facts.asked_of(
        name, params.sources[name].folder, params.bpe.merges, params.model.context
    )
    wanted = params.zero_shot[name]
    return Asked(
        known.tokens
        * (facts.capped(known.train, wanted.train_rows) + facts.capped(known.scored, wanted.rows)),
        False,
    )


def tokens_in(path: Path) -> int:
    """Tokens in one split's npz."""
    return int(read_arrays(path, ("offsets",))["offsets"][-1])
