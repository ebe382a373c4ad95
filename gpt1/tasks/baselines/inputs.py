"""The rows of an encoded task as words again: exactly what a network is given of them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpt1.base.files import read_arrays
from gpt1.corpus.bpe import UNKNOWN, Vocabulary
from gpt1.tasks.rows import CLUSTERS


class DecodedRows(NamedTuple):
    """The rows of one split. parts: the texts of the one part, or of the first and the second (of
    choices: the contexts, and all choices one after another); clusters: equal for rows that belong
    together.
    """

    parts: tuple[list[str], ...]
    labels: npt.NDArray[Any]
    clusters: npt.NDArray[np.int64]


def read_rows(
    folder: Path, split: str, about: dict[str, Any], vocabulary: Vocabulary
) -> DecodedRows:
    """One split of the task that stage encode wrote into `folder`; about: its task.json."""
    arrays = read_arrays(folder / f"{split}.npz", ("tokens", "offsets", "labels"))
    clusters = read_arrays(folder / CLUSTERS, (split,))[split]
    tokens, offsets, each = arrays["tokens"], arrays["offsets"].tolist(), about["sequences"]
    step = each if about["combine"] == "sum" else 1  # the other order says the same again
    parts: tuple[list[str], ...] = ([], [])
    for number in range(0, len(offsets) - 1, step):
        sequence = tokens[offsets[number] + 1 : offsets[number + 1] - 1]  # start, extract
        [*cut] = np.flatnonzero(sequence == vocabulary.delimiter)[:1]
        first, second = np.split(sequence, cut) if cut else (sequence, None)
        if about["combine"] != "choose" or number % each == 0:
            parts[0].append(words_of(vocabulary, first))
        if second is not None:
            parts[1].append(words_of(vocabulary, second[1:]))
    return DecodedRows(tuple(filter(None, parts)), arrays["labels"], clusters)


def words_of(vocabulary: Vocabulary, ids: npt.NDArray[Any]) -> str:
    """Words joined by blanks, without line breaks; an unknown piece parts words."""
    return " ".join(vocabulary.decode(ids.tolist()).replace(UNKNOWN, " ").split())
