"""The texts of the tasks' evaluation splits: read as `encode` reads them, and cleaned as for
training.
"""

from collections.abc import Iterator
from itertools import chain

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, stage_folder
from gpt1.corpus.encoding import batches
from gpt1.corpus.parallel import kept_tasks, mapped
from gpt1.corpus.words import LONGEST_CHUNK, Cleaner, UnbrokenTextError
from gpt1.params.schema import Params
from gpt1.tasks.readers import read_split, splits_to_read
from gpt1.tasks.table import TASKS, Task, scored_split

SHOWN_CHARACTERS = 40


def read_examples(params: Params) -> Iterator[tuple[Task, str, bool, list[tuple[str, ...]]]]:
    """For each split of each task but those to train on: the task, its name, whether it is scored,
    the texts of its examples.
    """
    for name, row in params.tasks.items():
        task, folder = TASKS[name], stage_folder("acquire", "tasks", name)
        splits = [split for split in splits_to_read(task, folder, row) if split.name != "train"]
        found = {
            split.name: read_split(task, split, folder, row, params.encode.max_unreadable_fraction)
            for split in splits
        }
        labelled = {split: {"labelled": rows.labelled} for split, rows in found.items()}
        scored = {scored_split(column, labelled) for column in task.columns}
        for split, rows in found.items():
            yield (
                task,
                split,
                split in scored,
                [(*example.context, *example.choices) for example in rows.examples],
            )


def clean_batch(cleaner: Cleaner, texts: list[str]) -> list[str]:
    """Texts as their words joined by blanks. Raises UserError for one that is no English text, as
    `encode` does.
    """
    found = []
    for text in texts:
        try:
            found.append(" ".join(cleaner.words(text)))
        except UnbrokenTextError:
            raise UserError(
                f"expected English text in the tasks' files, found {text[:SHOWN_CHARACTERS]!a} …"
                f" with more than {LONGEST_CHUNK:,} characters without a blank or line break; mend"
                " it or leave it out"
            ) from None
    return found


def clean_texts(texts: list[str]) -> list[str]:
    """All texts cleaned, in order."""
    tasks = list(batches(texts))
    sizes = [sum(map(len, batch)) for batch in tasks]
    with kept_tasks("contamination-texts", [], fingerprint(texts)) as kept:
        cleaned = mapped("cleaning the tasks' texts", Cleaner, clean_batch, tasks, sizes, kept)
        return list(chain.from_iterable(cleaned))
