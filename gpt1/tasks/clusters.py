"""Which rows of a split belong together, so that a resample must draw them together: rows about one
premise, passage or story, and twins.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from gpt1.tasks.rows import Example
from gpt1.tasks.table import Task

CLUSTERS = "clusters.npz"  # beside task.json or set.json: an array a split


def cluster_ids(
    task: Task, examples: Sequence[Example], meaning_of: Callable[[str], str] | None = None
) -> npt.NDArray[np.int64]:
    """Number the clusters of rows [n] from 0, in the order in which they first occur.

    meaning_of: reduces a made-up text to what is left without names, wordings and order. Made-up
    rows whose texts (without choices) are reduced alike, in either order, are one cluster.
    """
    numbers: dict[Hashable, int] = {}
    return np.array(
        [
            numbers.setdefault(_key(task, row, example, meaning_of), len(numbers))
            for row, example in enumerate(examples)
        ],
        dtype=np.int64,
    )


def _key(
    task: Task, row: int, example: Example, meaning_of: Callable[[str], str] | None
) -> Hashable:
    if meaning_of:
        return tuple(sorted(map(meaning_of, example.context)))
    if task.cluster == "first text":
        return example.context[0]
    if task.cluster == "twins":  # alike up to the pronoun, with the same two candidates
        return (example.context[0], *sorted(choice.casefold() for choice in example.choices))
    return row
