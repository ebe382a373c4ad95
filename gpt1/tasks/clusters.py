"""Which rows of a split belong together, so that an interval must draw them together: those that
ask about one premise, passage or story, and sentences that are twins.
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
    """A number [n] for each row, equal for those that belong together, from 0 in the order in which
    they first come.

    meaning_of: what tells a made-up text from others but names, wordings and order. Made-up rows
    whose texts (but choices) say the same belong together, in either order.
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
