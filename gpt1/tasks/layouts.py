"""Where a task's examples lie: the formats of its files, its splits, its releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Names = tuple[str, ...]  # by which files name one and the same column
Form = Literal["tsv", "csv", "jsonl", "export"]


@dataclass(frozen=True)
class Columns:
    """A file of columns, each by the names that files give it. form: tab-separated rows in which
    quotes are text (tsv), CSV, JSON objects (jsonl), or a Hugging Face export in any of its forms.

    label: a word or a number (Task.integers says of what), a score, or -1, "-" or nothing where
    there is none; `hidden`: of all rows, or the column is not there. choices: a column for each
    choice, or one that lists them. joined: the texts are sentences of one. subset: begins with its
    name. header: the columns of a tsv without a header; surplus: so many more may follow.
    """

    form: Form
    texts: tuple[Names, ...]
    label: Names = ()
    choices: tuple[Names, ...] = ()
    joined: bool = False
    subset: Names = ()
    hidden: bool = False
    header: tuple[str, ...] = ()
    surplus: int = 0


@dataclass(frozen=True)
class Passages:
    """RACE: one JSON object a passage with article, questions, options, answers; every question is
    an example.
    """

    label: Names = ("answers",)


@dataclass(frozen=True)
class Blocks:
    """DPRD: blocks of four lines with a blank line between: sentence, pronoun, two candidates with
    a comma between, the right one.
    """

    label: Names = ("answer",)


Format = Columns | Passages | Blocks


@dataclass(frozen=True)
class Share:
    """A part of a file's rows: `heldout` of every `of` are drawn by scikit-learn's train_test_split
    with this seed.
    """

    keep: Literal["train", "heldout"]
    heldout: int
    of: int
    seed: int = 3535999445  # the authors' code, for Story Cloze


@dataclass(frozen=True)
class Split:
    """Where one split's rows lie. Several files are read one after another; for a task with subsets
    file i is subset first_subset + i.

    Of an export a file is a split's name there, and stands for one file or many.
    """

    name: str
    files: tuple[str, ...]
    format: Format
    required: bool = True
    share: Share | None = None
    first_subset: int = 0

    @property
    def exported(self) -> bool:
        """Whether its files are a Hugging Face export."""
        return isinstance(self.format, Columns) and self.format.form == "export"


Layout = tuple[Split, ...]


@dataclass(frozen=True)
class Release:
    """One of several releases of a task: rows of its whole files by split, or the names of files
    that are its alone.
    """

    name: str
    rows: Mapping[str, int]
    files: tuple[str, ...] = ()


def release_of(
    releases: tuple[Release, ...], splits: Mapping[str, int], files: tuple[str, ...]
) -> Release | None:
    """The release of files with these names and so many rows by split; None where it is not
    recognised.
    """
    by_name = [release for release in releases if set(release.files) & set(files)]
    by_rows = [
        release
        for release in releases
        if any(splits.get(split) == rows for split, rows in release.rows.items())
    ]
    matching = by_name or by_rows
    return matching[0] if len(matching) == 1 else None
