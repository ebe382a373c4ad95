"""How much a run reads, the best source first: what its stages have written and is up to date, what
lies in data/raw, else what is known of the official releases and of the made-up town.

Every length below is in tokens with special symbols: official tasks by the authors' byte pairs at a
context of 512, the town by its own.
"""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from gpt1.base.files import RAW, read_arrays, read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS


class TaskSize(NamedTuple):
    """Rows of a task: to train on, to select on, further ones with labels and without; the mean
    length of a sequence in tokens; whether counted in files.
    """

    train: int
    dev: int
    labelled: int
    unlabelled: int
    length: float
    counted: bool = False


class ZeroShotSize(NamedTuple):
    """Rows of a zero-shot set: to choose a threshold on, and to score; tokens of a row, its
    continuations included.
    """

    train: int
    scored: int
    tokens: float


class CorpusSize(NamedTuple):
    """Bytes of the books, tokens to train on, rows of the vocabulary; whether counted in files."""

    bytes_: float
    tokens: float
    rows: int
    counted: bool


# Rows: the releases' own papers and GLUE (Wang et al. 2018). Lengths: counted in the training files
# with the authors' byte pairs (CoLA,
# SST-2, STS-B and QQP with 5,000 merges, and shortened); for SciTail, MRPC and Story Cloze guessed
# from their mean words.
OFFICIAL = {
    "snli": TaskSize(549_367, 9_842, 9_824, 0, 26.0),
    "mnli": TaskSize(392_702, 9_815, 9_832, 19_643, 39.3),
    "qnli": TaskSize(104_743, 5_463, 0, 5_463, 51.0),
    "rte": TaskSize(2_490, 277, 0, 3_000, 71.0),
    "scitail": TaskSize(23_596, 1_304, 2_126, 0, 38.0),
    "race": TaskSize(87_866, 4_887, 4_934, 0, 353.0),
    "story_cloze": TaskSize(1_497, 374, 1_871, 0, 53.0),
    "cola": TaskSize(8_551, 1_043, 0, 1_063, 10.6),
    "sst2": TaskSize(67_349, 872, 0, 1_821, 13.0),
    "mrpc": TaskSize(3_668, 408, 1_725, 0, 55.0),
    "stsb": TaskSize(5_749, 1_500, 1_379, 0, 31.0),
    "qqp": TaskSize(363_846, 40_430, 0, 390_965, 31.0),
}
OFFICIAL_ZERO_SHOT = {
    "cola": ZeroShotSize(8_551, 1_043, 8.6),
    "sst2": ZeroShotSize(0, 872, 28.0),
    "race": ZeroShotSize(0, 4_934, 385.0),
    "dprd": ZeroShotSize(0, 564, 28.0),
}

# The made-up town: gpt1/demo/files.py gives the rows; lengths by the byte pairs of a town of seed
# 102.
TOWN = {
    "snli": TaskSize(1_000, 200, 500, 0, 15.0),
    "mnli": TaskSize(900, 600, 600, 0, 18.7),
    "qnli": TaskSize(400, 500, 0, 200, 14.7),
    "rte": TaskSize(400, 400, 0, 200, 15.6),
    "scitail": TaskSize(400, 200, 500, 0, 20.6),
    "race": TaskSize(400, 200, 600, 0, 33.3),
    "story_cloze": TaskSize(800, 200, 500, 0, 33.0),
    "cola": TaskSize(600, 500, 0, 200, 9.5),
    "sst2": TaskSize(200, 500, 0, 200, 8.9),
    "mrpc": TaskSize(400, 100, 500, 0, 18.2),
    "stsb": TaskSize(1_000, 200, 500, 0, 15.0),
    "qqp": TaskSize(600, 500, 0, 200, 16.3),
}
TOWN_ZERO_SHOT = {
    "cola": ZeroShotSize(600, 500, 7.7),
    "sst2": ZeroShotSize(0, 500, 9.2),
    "race": ZeroShotSize(0, 600, 34.6),
    "dprd": ZeroShotSize(0, 300, 13.4),
}

# Of what has no row above: a task of middling size.
ASSUMED, ASSUMED_ZERO_SHOT, ASSUMED_BYTES = (
    TaskSize(10_000, 1_000, 1_000, 0, 40.0),
    ZeroShotSize(0, 1_000, 40.0),
    10e6,
)

PAGE_BYTES = 1_911.0  # of a town's book
BOOKSCORPUS_BYTES = (
    5.0e9  # Zhu et al. 2015: 985 million words in 11,038 books; the paper: over 7,000 books
)
TASK_BYTES = {
    "snli": 490e6,
    "mnli": 430e6,
    "qnli": 20e6,
    "rte": 2e6,
    "scitail": 11e6,
    "race": 120e6,
    "story_cloze": 2e6,
    "cola": 1e6,
    "sst2": 5e6,
    "mrpc": 3e6,
    "stsb": 2e6,
    "qqp": 60e6,
    "dprd": 1e6,
    "wnli": 1e6,
    "openai_bpe": 2e6,
    "official": 467e6,
}
BYTES_A_TOKEN = {
    "town": 4.4,
    "raw": 4.7,
}  # of raw text: counted in the town, and in 70 MB of English novels (3.78 with 5,000 merges)
AUTHORS_MERGES = 40_000
# tokens become so much more with every halving of the number of merges: counted in four tasks'
# files with 5,000
LONGER_A_HALVING = 0.077


def is_town(folder: str) -> bool:
    """Whether a source is the made-up town's, by its folder in params.yaml."""
    return folder.startswith("world/")


def lengthening(folder: str, merges: int) -> float:
    """How much longer a source's text is in tokens than where its lengths above were counted: by
    the authors' 40,000 merges, or in the town.
    """
    halvings = 0.0 if is_town(folder) else max(0.0, math.log2(AUTHORS_MERGES / merges))
    return math.pow(1.0 + LONGER_A_HALVING, halvings)


def bytes_a_token(folder: str, merges: int) -> float:
    """Bytes of raw text that make a token."""
    return BYTES_A_TOKEN["town" if is_town(folder) else "raw"] / lengthening(folder, merges)


def corpus_size(params: Params, fresh: Collection[str]) -> CorpusSize:
    """The corpus; `fresh` are the names of the stages whose outputs are those of `params`."""
    folder, bpe, books = params.sources["books"].folder, params.bpe, RAW / "books"
    if is_made_up(folder):
        world = params.world[folder.removeprefix("world/")]
        bytes_, counted = PAGE_BYTES * world.books * world.pages, False
    elif counted := books.is_dir():
        bytes_ = float(sum(path.stat().st_size for path in books.rglob("*.txt")))
    else:
        bytes_ = BOOKSCORPUS_BYTES
    if "shard" in fresh:
        index = read_json(stage_folder("shard", "index.json"))
        return CorpusSize(
            bytes_, index["splits"]["train"]["tokens"], index["vocabulary_size"], True
        )
    tokens = bytes_ / bytes_a_token(folder, bpe.merges) * (1 - params.shard.heldout_fraction)
    return CorpusSize(bytes_, tokens, bpe.merges + 2 * bpe.alphabet_size + 2, counted)


def task_size(name: str, params: Params, fresh: Collection[str]) -> TaskSize:
    """A task of params.yaml, its sequences cut to the context."""
    row, folder, context = params.tasks[name], params.sources[name].folder, params.model.context
    if f"encode@{name}" in fresh:
        encoded = stage_folder("encode", row.group, name)
        splits = read_json(encoded / "task.json")["splits"]
        train, dev, *others = (
            splits[split]["examples"]
            for split in ("train", "dev", *(splits.keys() - {"train", "dev"}))
        )
        length = tokens_in(encoded / "train.npz") / train / TASKS[name].sequences
        return TaskSize(train, dev, sum(others), 0, length, True)
    known = (TOWN if is_town(folder) else OFFICIAL).get(name, ASSUMED)
    length = known.length * lengthening(folder, params.bpe.merges)
    # in a form that meets what was counted at 128 tokens (RTE 89 -> 72, RACE 439 -> 126)
    cut = min(length, context) if is_town(folder) else 1 / math.hypot(1 / length, 1 / context)
    return TaskSize(
        capped(known.train, row.train_rows),
        capped(known.dev, row.eval_rows),
        capped(known.labelled, row.eval_rows),
        known.unlabelled if row.eval_rows is None else 0,
        cut,
    )


def zero_shot_tokens(name: str, params: Params, fresh: Collection[str]) -> tuple[float, bool]:
    """Tokens of a zero-shot set that each snapshot reads; whether they were counted."""
    if f"prompt@{name}" in fresh:
        prompts = stage_folder("prompt", name)
        splits = read_json(prompts / "set.json")["splits"]
        return sum(tokens_in(prompts / f"{split}.npz") for split in splits), True
    folder, wanted = params.sources[name].folder, params.zero_shot[name]
    known = (TOWN_ZERO_SHOT if is_town(folder) else OFFICIAL_ZERO_SHOT).get(name, ASSUMED_ZERO_SHOT)
    tokens = known.tokens * lengthening(folder, params.bpe.merges)
    rows = capped(known.train, wanted.train_rows) + capped(known.scored, wanted.rows)
    return min(tokens, 1.2 * params.model.context) * rows, False


def capped(rows: int, wanted: int | None) -> int:
    """Rows of a subset: all, or at most `wanted`."""
    return rows if wanted is None else min(rows, wanted)


def tokens_in(path: Path) -> int:
    """Tokens in one split's npz."""
    return int(read_arrays(path, ("offsets",))["offsets"][-1])


def unknown(folders: Mapping[str, str], zero_shot: Collection[str]) -> list[str]:
    """Which tasks ({name: folder of the source}) and zero-shot sets have no row here, so that one
    is assumed.
    """
    return [
        *(name for name in folders if name not in (TOWN if is_town(folders[name]) else OFFICIAL)),
        *(f"{name} (zero-shot)" for name in zero_shot if name not in OFFICIAL_ZERO_SHOT),
    ]
