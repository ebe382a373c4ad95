"""What is known of corpora and tasks before their files have been read: rows of the official
releases, and lengths of their sequences.

Every length is in tokens with special symbols: official tasks by the authors' byte pairs at a
context of 512, the town by its own.
"""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple


class Rows(NamedTuple):
    """Rows of a task: to train on, to select on, further ones with labels and without; the mean
    length of a sequence.
    """

    train: int
    dev: int
    labelled: int
    unlabelled: int
    length: float


class Asked(NamedTuple):
    """Rows of a zero-shot set: to choose a threshold on, and to score; tokens of a row, its
    continuations included.
    """

    train: int
    scored: int
    tokens: float


# Rows: the releases' own papers and GLUE (Wang et al. 2018). Lengths: counted in the training files
# with the authors' byte pairs (CoLA,
# SST-2, STS-B and QQP with 5,000 merges, and shortened); for SciTail, MRPC and Story Cloze guessed
# from their mean words.
OFFICIAL = {
    "snli": Rows(549_367, 9_842, 9_824, 0, 26.0),
    "mnli": Rows(392_702, 9_815, 9_832, 19_643, 39.3),
    "qnli": Rows(104_743, 5_463, 0, 5_463, 51.0),
    "rte": Rows(2_490, 277, 0, 3_000, 71.0),
    "scitail": Rows(23_596, 1_304, 2_126, 0, 38.0),
    "race": Rows(87_866, 4_887, 4_934, 0, 353.0),
    "story_cloze": Rows(1_497, 374, 1_871, 0, 53.0),
    "cola": Rows(8_551, 1_043, 0, 1_063, 10.6),
    "sst2": Rows(67_349, 872, 0, 1_821, 13.0),
    "mrpc": Rows(3_668, 408, 1_725, 0, 55.0),
    "stsb": Rows(5_749, 1_500, 1_379, 0, 31.0),
    "qqp": Rows(363_846, 40_430, 0, 390_965, 31.0),
}
OFFICIAL_ZERO_SHOT = {
    "cola": Asked(8_551, 1_043, 8.6),
    "sst2": Asked(0, 872, 28.0),
    "race": Asked(0, 4_934, 385.0),
    "dprd": Asked(0, 564, 28.0),
}

# The made-up town: gpt1/demo/files.py gives the rows; lengths counted in a town of seed 0 with
# 2,500 merges.
TOWN = {
    "snli": Rows(1_000, 200, 500, 0, 15.4),
    "mnli": Rows(1_000, 500, 500, 0, 20.0),
    "qnli": Rows(800, 500, 0, 200, 19.7),
    "rte": Rows(200, 300, 0, 200, 19.3),
    "scitail": Rows(800, 200, 500, 0, 15.5),
    "race": Rows(400, 200, 600, 0, 36.1),
    "story_cloze": Rows(400, 100, 500, 0, 36.0),
    "cola": Rows(600, 500, 0, 200, 9.1),
    "sst2": Rows(200, 500, 0, 200, 8.4),
    "mrpc": Rows(720, 80, 500, 0, 15.0),
    "stsb": Rows(1_000, 200, 500, 0, 15.0),
    "qqp": Rows(600, 500, 0, 200, 16.8),
}
TOWN_ZERO_SHOT = {
    "cola": Asked(600, 500, 7.2),
    "sst2": Asked(0, 500, 9.3),
    "race": Asked(0, 600, 37.5),
    "dprd": Asked(0, 300, 13.5),
}

# Of what has no row above: a task of middling size.
ASSUMED, ASSUMED_ZERO_SHOT, ASSUMED_BYTES = (
    Rows(10_000, 1_000, 1_000, 0, 40.0),
    Asked(0, 1_000, 40.0),
    10e6,
)

PAGE_BYTES = 644.0  # of a town's book: 3.09 MB in 60 books of 80 pages
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


def lengthening(merges: int) -> float:
    """How much longer a text is in tokens than by the authors' 40,000 merges."""
    return math.pow(1.0 + LONGER_A_HALVING, max(0.0, math.log2(AUTHORS_MERGES / merges)))


def bytes_a_token(folder: str, merges: int) -> float:
    """Bytes of raw text that make a token; `folder` is the source's in params.yaml."""
    return (
        BYTES_A_TOKEN["town"]
        if folder.startswith("world/")
        else BYTES_A_TOKEN["raw"] / lengthening(merges)
    )


def cut(length: float, context: int) -> float:
    """Mean length of sequences cut to the context, in a form that meets what was counted at 128
    tokens (RTE 89 -> 72, RACE 439 -> 126).
    """
    return 1.0 / math.hypot(1.0 / length, 1.0 / context)


def capped(rows: int, wanted: int | None) -> int:
    """Rows of a subset: all, or at most `wanted`."""
    return rows if wanted is None else min(rows, wanted)


def rows_of(task: str, folder: str, merges: int, context: int) -> Rows:
    """What is known of a task from the town or from its official files, its sequences cut to the
    context.
    """
    known = (TOWN if folder.startswith("world/") else OFFICIAL).get(task, ASSUMED)
    if folder.startswith("world/"):
        return known._replace(length=min(known.length, context))
    return known._replace(length=cut(known.length * lengthening(merges), context))


def asked_of(name: str, folder: str, merges: int, context: int) -> Asked:
    """The same of a zero-shot set."""
    known: Mapping[str, Asked] = (
        TOWN_ZERO_SHOT if folder.startswith("world/") else OFFICIAL_ZERO_SHOT
    )
    longer, one = (
        lengthening(merges) if not folder.startswith("world/") else 1.0,
        known.get(name, ASSUMED_ZERO_SHOT),
    )
    return one._replace(tokens=min(one.tokens * longer, 1.2 * context))


def unknown(folders: Mapping[str, str], zero_shot: Collection[str]) -> list[str]:
    """Which tasks ({name: folder of the source}) and zero-shot sets have no row here, so that one
    is assumed.
    """
    missing = [
        name
        for name, folder in folders.items()
        if name not in (TOWN if folder.startswith("world/") else OFFICIAL)
    ]
    return [
        *missing,
        *(f"{name} (zero-shot)" for name in zero_shot if name not in OFFICIAL_ZERO_SHOT),
    ]
