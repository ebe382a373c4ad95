"""Which index of GLUE's has each example of a test split: rows that cannot be read are no examples,
but a submission answers them too.
"""

from dataclasses import replace
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.exchange.submission.board import BoardFile
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import Format, Split, Tsv
from gpt1.tasks.readers import files_of
from gpt1.tasks.rows import BadRowError, Example, as_text, numbered_lines
from gpt1.tasks.table import TASKS

INDEX = "index"
MOST_DIGITS = 7


def places_of(file: BoardFile, official: Path, examples: int) -> list[int]:
    """The index of each example: that of the official file where it has a column for it, else the
    row's place, from 0.

    The original files of MRPC and STS-B have none: GLUE numbers msr_paraphrase_test.txt and
    sts-test.csv in their own order. Without the official file, which needs not be kept, the
    examples are all rows in order. Raises UserError where they are not.
    """
    again = f"run gpt1 run finetune@{file.task}, or bring GLUE's own files and do so"
    split = _split(file, official)
    if split is None:
        if examples != file.rows:
            raise UserError(
                f"{official}: expected the official file of {file.split}, to know which"
                f" {file.rows - examples} of its rows cannot be read, found none; {again}"
            )
        return list(range(examples))
    places, place = [], -1
    for name in [part for parts in files_of(split, official) for part in parts]:
        form, indexed = _with_index(split.format, official / name)
        for item in read_rows(official / name, form, TASKS[file.task]):
            place += 1
            if isinstance(item, Example):
                places.append(_number(item.context[-1]) if indexed else place)
    if (
        len(places) != examples
        or len(set(places)) != examples
        or not all(0 <= place < file.rows for place in places)
    ):
        raise UserError(
            f"{official / split.files[0]}: expected {examples} readable rows, each with an index of"
            f" its own from 0 to {file.rows - 1}, found {len(set(places) & set(range(file.rows)))};"
            f" {again}"
        )
    return places


def _split(file: BoardFile, official: Path) -> Split | None:
    """How the official files of a split lie in a folder; None where they do not."""
    for layout in TASKS[file.task].layouts:
        if all(all(files_of(split, official)) for split in layout if split.required):
            return next(
                (
                    split
                    for split in layout
                    if split.name == file.split and all(files_of(split, official))
                ),
                None,
            )
    return None


def _with_index(form: Format, path: Path) -> tuple[Format, bool]:
    """A file's format with its index as the last text, where it has a column for it; and whether it
    has.
    """
    indexed = isinstance(form, Tsv) and not form.columns and INDEX in _header(path)
    return (
        replace(form, texts=(*form.texts, INDEX)) if indexed and isinstance(form, Tsv) else form
    ), indexed


def _number(text: str) -> int:
    """An index; -1 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else -1


def _header(path: Path) -> list[str]:
    """The columns that a file's first line names; none where it cannot be read."""
    try:
        return as_text(next(numbered_lines(path), (0, b""))[1]).split("\t")
    except BadRowError:
        return []
