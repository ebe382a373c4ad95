"""Where a task's examples lie: file formats, splits, releases, layouts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Names = tuple[str, ...]  # by which files name one and the same column
Form = Literal["tsv", "csv", "jsonl", "export"]


@dataclass(frozen=True)
class TableFormat:
    """A file of columns, found by name."""

    form: Form  # tsv: quotes are text; export: of Hugging Face
    texts: tuple[Names, ...]
    # a word, a number (see Task.export_labels) or a score; -1, "-" or nothing where there is none
    label: Names = ()
    choices: tuple[Names, ...] = ()  # a column each, or one that lists them
    joined: bool = False  # the texts are sentences of one
    header: tuple[str, ...] = ()  # of a tsv without one
    surplus: int = 0  # how many more columns may follow


@dataclass(frozen=True)
class PassageFormat:
    """RACE: a JSON object per passage: article, questions, options, answers."""


@dataclass(frozen=True)
class BlockFormat:
    """DPRD: blocks of four lines: sentence, pronoun, two candidates, the right one."""


Format = TableFormat | PassageFormat | BlockFormat


class Share(NamedTuple):
    """Train and dev are shares of one file: dev has `heldout` of every `of` rows."""

    heldout: int
    of: int


@dataclass(frozen=True)
class Split:
    """Where a split's rows lie. File i is subset i. In an export a file is a split's name."""

    name: str
    files: tuple[str, ...]
    format: Format
    required: bool = True  # it must be there, and have labels
    share: Share | None = None

    @property
    def exported(self) -> bool:
        """Whether its files are a Hugging Face export."""
        return isinstance(self.format, TableFormat) and self.format.form == "export"


Layout = tuple[Split, ...]


@dataclass(frozen=True)
class Release:
    """A release of a task, known by its rows or by names of files."""

    name: str
    rows: Mapping[str, int]
    files: tuple[str, ...] = ()


def release_of(
    releases: tuple[Release, ...], splits: Mapping[str, int], files: tuple[str, ...]
) -> Release | None:
    """Return the release with these files or rows, if it is a known one."""
    matching = [
        release
        for release in releases
        if {*release.files} & {*files} or release.rows.items() & splits.items()
    ]
    return matching[0] if len(matching) == 1 else None


SPLITS = ("train", "dev", "test")


def files(reading: Format, required: bool = True, /, **named: str) -> Layout:
    """Return splits of one file each in one format."""
    return tuple(Split(name, (file,), reading, required) for name, file in named.items())


def _trio(pattern: str, reading: Format) -> Layout:
    return files(reading, **{name: pattern.format(name) for name in SPLITS})


def _tsv(*texts: str, label: str = "", header: str = "", surplus: int = 0) -> TableFormat:
    names = tuple((text,) for text in texts)
    header_ = tuple(header.split())
    return TableFormat("tsv", names, (label,) if label else (), header=header_, surplus=surplus)


def _glue(*texts: str, label: str, header: str = "") -> Layout:
    return (
        *files(_tsv(*texts, label=label, header=header), train="train.tsv", dev="dev.tsv"),
        *files(_tsv(*texts), False, test="test.tsv"),
    )


def _export(texts: tuple[Names, ...], label: Names = ("label",)) -> TableFormat:
    return TableFormat("export", texts, label)


def _exported(reading: TableFormat, *, test: bool, folder: str = "") -> Layout:
    """Return an export's splits; only a `test` is sure to be there and to have labels."""
    return (
        *files(reading, train=f"{folder}train", dev=f"{folder}validation"),
        *files(reading, test, test=f"{folder}test"),
    )


def _shared(file: str, reading: Format, share: Share) -> Layout:
    return tuple(Split(name, (file,), reading, share=share) for name in ("train", "dev"))


PAIR = ("sentence1", "sentence2")
FIRST, SECOND = ("premise", "sentence1"), ("hypothesis", "sentence2")  # either pair of names
NLI_ROWS = TableFormat("jsonl", (("sentence1",), ("sentence2",)), ("gold_label",))
NLI_EXPORT = _export((FIRST, SECOND), ("label", "gold_label"))
GLUE_EXPORT = _export((("sentence1",), ("sentence2",)))
SENTENCE_EXPORT = _export((("sentence",),))

SNLI = (_trio("snli_1.0_{}.jsonl", NLI_ROWS), _exported(NLI_EXPORT, test=True))

MNLI_ROWS = _tsv(*PAIR, label="gold_label")
# GLUE's AX, scored by the server alone
DIAGNOSTIC = files(_tsv(*PAIR), False, diagnostic="diagnostic.tsv")
MNLI = (
    (
        *files(
            MNLI_ROWS, train="train.tsv", dev="dev_matched.tsv", dev_mismatched="dev_mismatched.tsv"
        ),
        *files(
            _tsv(*PAIR),
            False,
            test_matched="test_matched.tsv",
            test_mismatched="test_mismatched.tsv",
        ),
        *DIAGNOSTIC,
    ),
    (
        *files(
            NLI_ROWS,
            train="multinli_1.0_train.jsonl",
            dev="multinli_1.0_dev_matched.jsonl",
            dev_mismatched="multinli_1.0_dev_mismatched.jsonl",
        ),
        *DIAGNOSTIC,
    ),
    (
        *files(
            NLI_EXPORT,
            train="train",
            dev="validation_matched",
            dev_mismatched="validation_mismatched",
        ),
        *files(
            NLI_EXPORT,
            False,
            test_matched="test_matched",
            test_mismatched="test_mismatched",
            diagnostic="ax/test",
        ),
    ),
)

QNLI = (
    _glue("question", "sentence", label="label"),
    _exported(_export((("question",), ("sentence",))), test=False),
)
RTE = (_glue(*PAIR, label="label"), _exported(GLUE_EXPORT, test=False))

SCITAIL_ROWS = _tsv("premise", "hypothesis", label="label", header="premise hypothesis label")
SCITAIL = (
    _trio("scitail_1.0_{}.tsv", SCITAIL_ROWS),
    _trio("scitail_1.0_{}.txt", NLI_ROWS),
    _exported(
        NLI_EXPORT, test=True, folder="snli_format/"
    ),  # of the hub's four the one that lost no rows on the way there
    _exported(NLI_EXPORT, test=True),
)

LEVELS = ("middle", "high")
RACE_EXPORT = TableFormat(
    "export",
    (("article",), ("question",)),
    ("answer",),
    choices=(("options",),),
)
RACE_COMBINED = {
    f"{split}_{level}.jsonl": f"{split}/{level}" for split in SPLITS for level in LEVELS
}
RACE = (
    tuple(
        Split(name, tuple(f"{name}_{level}.jsonl" for level in LEVELS), PassageFormat())
        for name in SPLITS
    ),
    tuple(
        Split(name, tuple(f"{level}/{there}" for level in LEVELS), RACE_EXPORT)
        for name, there in zip(SPLITS, ("train", "validation", "test"), strict=True)
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
STORIES_2018_SHORT = ("cloze_test_val__winter2018.csv", "cloze_test_test__winter2018.csv")
STORY_EXPORT = TableFormat(
    "export",
    tuple((f"input_sentence_{number}", f"InputSentence{number}") for number in range(1, 5)),
    ("answer_right_ending", "AnswerRightEnding"),
    joined=True,
    choices=tuple(
        (f"sentence_quiz{number}", f"RandomFifthSentenceQuiz{number}") for number in (1, 2)
    ),
)


STORY_ROWS = replace(STORY_EXPORT, form="csv")


def _stories(validation: str, test: str, reading: TableFormat, labelled: bool = True) -> Layout:
    return (
        *_shared(validation, reading, Share(374, 1871)),
        *files(reading, labelled, test=test),
    )


STORY_CLOZE = (
    *(_stories(*names, STORY_ROWS) for names in (STORIES, STORIES_SHORT)),
    *(_stories(*names, STORY_ROWS, False) for names in (STORIES_2018, STORIES_2018_SHORT)),
    _stories("validation", "test", STORY_EXPORT, labelled=False),
)

MSR = ("#1 String", "#2 String")
MSR_ROWS = _tsv(*MSR, label="Quality")
MSR_TRAIN, MSR_TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
MRPC = (
    files(MSR_ROWS, train="train.tsv", dev="dev.tsv", test=MSR_TEST),
    (*_shared(MSR_TRAIN, MSR_ROWS, Share(408, 4076)), *files(MSR_ROWS, test=MSR_TEST)),
    _glue(*MSR, label="Quality"),
    _exported(GLUE_EXPORT, test=False),
)

QQP = (
    _glue("question1", "question2", label="is_duplicate"),
    _exported(_export((("question1",), ("question2",)), ("label", "is_duplicate")), test=False),
)

STSB_ROWS = _tsv(
    *PAIR,
    label="score",
    header="genre filename year old_index score sentence1 sentence2",
    surplus=2,
)
STSB = (
    _trio("sts-{}.csv", STSB_ROWS),
    _glue(*PAIR, label="score"),
    _exported(replace(GLUE_EXPORT, label=("label", "score")), test=False),
)

SST2 = (_glue("sentence", label="label"), _exported(SENTENCE_EXPORT, test=False))

COLA_HEADER = "source label mark sentence"
COLA_ROWS = _tsv("sentence", label="label", header=COLA_HEADER)
COLA = (
    _glue("sentence", label="label", header=COLA_HEADER),
    (
        Split("train", ("in_domain_train.tsv",), COLA_ROWS),
        Split("dev", ("in_domain_dev.tsv", "out_of_domain_dev.tsv"), COLA_ROWS),
    ),
    _exported(SENTENCE_EXPORT, test=False),
)

DPRD = (
    (
        Split("train", ("train.c.txt",), BlockFormat(), required=False),
        Split("test", ("test.c.txt",), BlockFormat()),
    ),
)
