"""Raw texts to ids in parallel, each text once."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.parallel import processes_for, workers

BATCH_CHARACTERS = 200_000  # of text handed to a process at a time: a second of work


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in their order, in batches of about BATCH_CHARACTERS."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def encode_batch(vocabulary: Vocabulary, texts: list[str]) -> list[npt.NDArray[np.uint32]]:
    """Ids of each text; arrays travel between processes faster than lists."""
    return [np.array(vocabulary.encode(text), dtype=np.uint32) for text in texts]


def encode_texts(label: str, texts: Sequence[str], vocabulary_folder: Path) -> dict[str, list[int]]:
    """{text: its ids}. The texts must differ from one another; `label` names the progress shown."""
    tasks = list(batches(texts))
    sizes = [sum(map(len, batch)) for batch in tasks]
    ids: dict[str, list[int]] = {}
    with workers(partial(Vocabulary.load, vocabulary_folder), processes_for(sum(sizes))) as pool:
        for batch, encoded in zip(tasks, pool.map(label, encode_batch, tasks, sizes), strict=True):
            ids.update(zip(batch, (one.tolist() for one in encoded), strict=True))
    return ids
