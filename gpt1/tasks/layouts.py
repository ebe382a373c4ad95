"""Where a task's examples lie: the formats of its files, its splits, and the ways in which each
task's files are distributed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

SPLITS = ("train", "dev", "test")
Names = tuple[str, ...]  # by which files name one and the same column


@dataclass(frozen=True)
class Tsv:
    """Tab-separated rows in which quotes are text. A file without a header has the `columns` named
    here; else the header names them.
    """

    texts: tuple[str, ...]
    label: str | None = None
    columns: tuple[str, ...] = ()
    surplus: int = 0  # so many columns more may follow


@dataclass(frozen=True)
class Jsonl:
    """One JSON object a line; rows whose label is "-" (annotators did not agree) are dropped, as
    the field does.
    """

    texts: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class Passages:
    """RACE: one JSON object a passage with article, questions, options, answers; every question is
    an example.
    """

    label: str = "answers"


@dataclass(frozen=True)
class Stories:
    """Story Cloze: real CSV with a header; four sentences, two endings, the right one's number
    (None: a test set without it).
    """

    label: str | None = "AnswerRightEnding"


@dataclass(frozen=True)
class Blocks:
    """DPRD: blocks of four lines with a blank line between: sentence, pronoun, two candidates with
    a comma between, the right one.
    """

    label: str = "answer"


@dataclass(frozen=True)
class Export:
    """A Hugging Face export (parquet, arrow, JSON lines): each of its columns by the names that
    exports give it.

    label: a number (Task.integers says of what), a word, or -1 where there is none; `hidden`: of
    all rows, or the column is not there. choices: a column for each choice, or one that lists them.
    joined: the texts are sentences of one. subset: begins with its name.
    """

    texts: tuple[Names, ...]
    label: Names
    choices: tuple[Names, ...] = ()
    joined: bool = False
    subset: Names = ()
    hidden: bool = False


Format = Tsv | Jsonl | Passages | Stories | Blocks | Export


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

    For an Export a file is a split's name there, and stands for one file or many.
    """

    name: str
    files: tuple[str, ...]
    format: Format
    required: bool = True
    share: Share | None = None
    first_subset: int = 0


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
    found = by_name or by_rows
    return found[0] if len(found) == 1 else None


def _files(reading: Format, required: bool = True, /, **files: str) -> Layout:
    """Splits of one file each, by name, that are read alike."""
    return tuple(Split(name, (file,), reading, required) for name, file in files.items())


def _trio(pattern: str, reading: Format) -> Layout:
    """Train, dev and a labelled test split, one file each."""
    return _files(reading, True, **{name: pattern.format(name) for name in SPLITS})


def _glue(reading: Tsv) -> Layout:
    """GLUE's train.tsv and dev.tsv, and test.tsv without labels."""
    return (
        *_files(reading, train="train.tsv", dev="dev.tsv"),
        *_files(Tsv(reading.texts), False, test="test.tsv"),
    )


def _exported(reading: Export, *, test: bool, folder: str = "") -> Layout:
    """An export's train and validation splits, and its test split: labelled (`test`), or optional
    and perhaps without labels.
    """
    hidden = reading if test else replace(reading, hidden=True)
    return (
        *_files(reading, train=f"{folder}train", dev=f"{folder}validation"),
        *_files(hidden, test, test=f"{folder}test"),
    )


def _shared(file: str, reading: Format, heldout: int, of: int) -> Layout:
    """Train and dev as shares of one file: `heldout` of its `of` rows are dev."""
    return (
        Split("train", (file,), reading, share=Share("train", heldout, of)),
        Split("dev", (file,), reading, share=Share("heldout", heldout, of)),
    )


PAIR = ("sentence1", "sentence2")
FIRST, SECOND = (
    ("premise", "sentence1"),
    ("hypothesis", "sentence2"),
)  # an export has either pair of names
NLI_ROWS = Jsonl(PAIR, "gold_label")
NLI_EXPORT = Export((FIRST, SECOND), ("label", "gold_label"))
GLUE_EXPORT = Export((("sentence1",), ("sentence2",)), ("label",))

SNLI = (_trio("snli_1.0_{}.jsonl", NLI_ROWS), _exported(NLI_EXPORT, test=True))

MNLI_ROWS = Tsv(PAIR, "gold_label")
# GLUE's AX, scored by the server alone
DIAGNOSTIC = _files(Tsv(PAIR), False, diagnostic="diagnostic.tsv")
NO_LABELS = Export((FIRST, SECOND), ("label",), hidden=True)
MNLI = (
    (
        *_files(
            MNLI_ROWS,
            train="train.tsv",
            dev="dev_matched.tsv",
            dev_mismatched="dev_mismatched.tsv",
        ),
        *_files(
            Tsv(PAIR),
            False,
            test_matched="test_matched.tsv",
            test_mismatched="test_mismatched.tsv",
        ),
        *DIAGNOSTIC,
    ),
    (
        *_files(
            NLI_ROWS,
            train="multinli_1.0_train.jsonl",
            dev="multinli_1.0_dev_matched.jsonl",
            dev_mismatched="multinli_1.0_dev_mismatched.jsonl",
        ),
        *DIAGNOSTIC,
    ),
    (
        *_files(
            NLI_EXPORT,
            train="train",
            dev="validation_matched",
            dev_mismatched="validation_mismatched",
        ),
        *_files(
            NO_LABELS,
            False,
            test_matched="test_matched",
            test_mismatched="test_mismatched",
            diagnostic="ax/test",
        ),
    ),
)

QNLI = (
    _glue(Tsv(("question", "sentence"), "label")),
    _exported(Export((("question",), ("sentence",)), ("label",)), test=False),
)
RTE = (_glue(Tsv(PAIR, "label")), _exported(GLUE_EXPORT, test=False))

SCITAIL_COLUMNS = ("premise", "hypothesis", "label")
SCITAIL = (
    _trio("scitail_1.0_{}.tsv", Tsv(("premise", "hypothesis"), "label", columns=SCITAIL_COLUMNS)),
    _trio("scitail_1.0_{}.txt", NLI_ROWS),
    _trio("scitail_1.0_structure_{}.jsonl", NLI_ROWS),
    _trio(
        "scitail_1.0_structure_{}.tsv",
        Tsv(("premise", "hypothesis"), "label", columns=(*SCITAIL_COLUMNS, "structure")),
    ),
    _exported(
        NLI_EXPORT, test=True, folder="snli_format/"
    ),  # of the hub's four the one that lost no rows on the way there
    _exported(NLI_EXPORT, test=True),
)

LEVELS = ("middle", "high")
RACE_EXPORT = Export(
    (("article",), ("question",)), ("answer",), choices=(("options",),), subset=("example_id",)
)
RACE_COMBINED = {
    f"{split}_{level}.jsonl": f"{split}/{level}" for split in SPLITS for level in LEVELS
}
RACE = (
    tuple(
        Split(name, tuple(f"{name}_{level}.jsonl" for level in LEVELS), Passages())
        for name in SPLITS
    ),
    tuple(
        Split(name, tuple(f"{level}/{there}" for level in LEVELS), RACE_EXPORT)
        for name, there in zip(SPLITS, ("train", "validation", "test"), strict=True)
    ),
    _exported(RACE_EXPORT, test=True),
    *(
        tuple(
            Split(name, (f"{name}_{level}.jsonl",), Passages(), first_subset=number)
            for name in SPLITS
        )
        for number, level in enumerate(LEVELS)
    ),
)

STORIES = (
    "cloze_test_val__spring2016 - cloze_test_ALL_val.csv",
    "cloze_test_test__spring2016 - cloze_test_ALL_test.csv",
)
STORIES_SHORT = ("cloze_test_val__spring2016.csv", "cloze_test_test__spring2016.csv")
STORIES_2018 = (
    "cloze_test_val__winter2018-cloze_test_ALL_val - 1 - 1.csv",
    "cloze_test_test__winter2018-cloze_test_ALL_test - 1.csv",
)
STORY_EXPORT = Export(
    tuple((f"input_sentence_{number}", f"InputSentence{number}") for number in range(1, 5)),
    ("answer_right_ending", "AnswerRightEnding"),
    joined=True,
    choices=tuple(
        (f"sentence_quiz{number}", f"RandomFifthSentenceQuiz{number}") for number in (1, 2)
    ),
)


def _stories(
    validation: str, test: str, reading: Format, testing: Format, required: bool = True
) -> Layout:
    """The authors train on the validation stories, less 374 of the 1,871."""
    return (*_shared(validation, reading, 374, 1871), *_files(testing, required, test=test))


STORY_CLOZE = (
    _stories(*STORIES, Stories(), Stories()),
    _stories(*STORIES_SHORT, Stories(), Stories()),
    _stories(*STORIES_2018, Stories(), Stories(label=None), required=False),
    _stories(
        "validation", "test", STORY_EXPORT, replace(STORY_EXPORT, hidden=True), required=False
    ),
)

MSR_ROWS = Tsv(("#1 String", "#2 String"), "Quality")
MSR_TRAIN, MSR_TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
MRPC = (
    _files(MSR_ROWS, train="train.tsv", dev="dev.tsv", test=MSR_TEST),
    (*_shared(MSR_TRAIN, MSR_ROWS, 408, 4076), *_files(MSR_ROWS, test=MSR_TEST)),
    _glue(MSR_ROWS),
    _exported(GLUE_EXPORT, test=False),
)

QQP = (
    _glue(Tsv(("question1", "question2"), "is_duplicate")),
    _exported(Export((("question1",), ("question2",)), ("label", "is_duplicate")), test=False),
)

STSB_ROWS = Tsv(
    PAIR, "score", columns=("genre", "filename", "year", "old_index", "score", *PAIR), surplus=2
)
STSB = (
    _trio("sts-{}.csv", STSB_ROWS),
    _glue(Tsv(PAIR, "score")),
    _exported(Export((("sentence1",), ("sentence2",)), ("label", "score")), test=False),
)

SST2 = (
    _glue(Tsv(("sentence",), "label")),
    _exported(Export((("sentence",),), ("label",)), test=False),
)

COLA_ROWS = Tsv(("sentence",), "label", columns=("source", "label", "mark", "sentence"))
COLA = (
    _glue(COLA_ROWS),
    (
        Split("train", ("in_domain_train.tsv",), COLA_ROWS),
        Split("dev", ("in_domain_dev.tsv", "out_of_domain_dev.tsv"), COLA_ROWS),
    ),
    _exported(Export((("sentence",),), ("label",)), test=False),
)
