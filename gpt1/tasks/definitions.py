"""The twelve tasks (paper, Table 1): official files, input shape, labels, metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpt1.sources.definitions import SOURCES, Source, SourceLayout
from gpt1.tasks import layouts
from gpt1.tasks.layouts import Release, Split

Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
Kind = Literal["classification", "entailment", "similarity", "multiple_choice"]
Cluster = Literal["row", "first text", "twins"]
COMBINE = {
    "classification": "single",
    "entailment": "single",
    "similarity": "sum",
    "multiple_choice": "choose",
}
# scores 0..5 as soft labels over six classes (Tai et al. 2015, the authors' code)
SCORE_CLASSES = 6


@dataclass(frozen=True)
class TableColumn:
    """A column of the paper's tables, and which of a task's rows it scores."""

    title: str
    table: Literal["table2", "table3", "table4"]
    suffix: str = ""  # of the split's name: "_mismatched" makes dev dev_mismatched
    subset: str | None = None


@dataclass(frozen=True)
class Task:
    """One task: its files, input shape, labels and metric."""

    name: str
    title: str
    kind: Kind
    labels: tuple[str, ...]
    metric: Metric
    columns: tuple[TableColumn, ...]
    layouts: tuple[tuple[Split, ...], ...]  # how its files are distributed, the best first
    folders: tuple[str, ...]
    origin: str
    licence: str
    how_to_get: str = ""
    second_metric: Metric | None = None
    target: Literal["class", "score"] = "class"
    file_labels: tuple[str, ...] = ()  # labels as the files write them
    subsets: tuple[str, ...] = ()
    combined_folders: Mapping[str, str] = field(default_factory=dict)
    export_labels: tuple[str, ...] = ()  # in the order of an export's integers
    cluster: Cluster = "row"
    synonyms: Mapping[str, str] = field(default_factory=dict)  # {word in some files: label}
    other_file_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    releases: tuple[Release, ...] = ()

    @property
    def source(self) -> Source:
        """Return the task as stage acquire sees it."""
        layouts = tuple(
            SourceLayout(
                tuple(
                    dict.fromkeys(
                        file for split in layout if split.required for file in split.files
                    )
                ),
                tuple(file for split in layout if not split.required for file in split.files),
                exported=layout[0].exported,
            )
            for layout in self.layouts
        )
        return Source(
            self.name,
            self.folders,
            self.origin,
            self.licence,
            self.how_to_get,
            layouts,
            combined_folders=self.combined_folders,
            other_file_names=self.other_file_names,
        )

    @property
    def combine(self) -> str:
        """How sequences make logits: single, sum (both orders), choose (one logit each)."""
        return COMBINE[self.kind]

    @property
    def sequences(self) -> int:
        """Return the sequences per example."""
        return {"single": 1, "sum": 2, "choose": len(self.labels)}[self.combine]

    @property
    def outputs(self) -> int:
        """Return the logits per example."""
        return SCORE_CLASSES if self.target == "score" else len(self.labels)


def scored_split(column: TableColumn, splits: Mapping[str, Any]) -> str:
    """Return the split that a column scores: a test labelled in task.json's `splits`, else dev."""
    test = f"test{column.suffix}"
    return test if test in splits and splits[test]["labelled"] else f"dev{column.suffix}"


def scored_weights(split: str) -> str:
    """Return which weights are scored: for a test set the `best` on dev, for dev itself the
    `last`.
    """
    return "best" if split.startswith("test") else "last"


NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")
GLUE = "GLUE (https://gluebenchmark.com)"

ROWS = (
    Task(
        "snli",
        "SNLI",
        "entailment",
        NLI,
        "accuracy",
        columns=(TableColumn("SNLI", "table2"),),
        layouts=layouts.SNLI,
        folders=("SNLI", "snli", "snli_1.0"),
        origin="https://nlp.stanford.edu/projects/snli",
        licence="CC BY-SA 4.0",
        cluster="first text",  # premises
        export_labels=NLI,
    ),
    Task(
        "mnli",
        "MNLI",
        "entailment",
        NLI,
        "accuracy",
        columns=(
            TableColumn("MNLI-m", "table2"),
            TableColumn("MNLI-mm", "table2", suffix="_mismatched"),
        ),
        layouts=layouts.MNLI,
        folders=("MNLI", "mnli", "MultiNLI", "multinli_1.0", "multi_nli"),
        origin=f"https://cims.nyu.edu/~sbowman/multinli, or {GLUE}",
        licence="OANC and others",
        cluster="first text",  # premises
        export_labels=NLI,
        other_file_names={
            "diagnostic.tsv": (
                "AX.tsv",
                "AX/AX.tsv",
                "AX/diagnostic.tsv",
                "AX/test.tsv",
                "diagnostic/diagnostic.tsv",
                "diagnostic/AX.tsv",
            )
        },
    ),
    Task(
        "qnli",
        "QNLI",
        "entailment",
        ENTAILMENT,
        "accuracy",
        columns=(TableColumn("QNLI", "table2"),),
        layouts=layouts.QNLI,
        folders=("QNLI", "qnli", "QNLIv2", "QNLIv1"),
        origin=GLUE,
        licence="CC BY-SA 4.0",
        export_labels=ENTAILMENT,
        releases=(
            Release("v1", {"train": 108_436, "dev": 5_732}),
            Release("v2", {"train": 104_743, "dev": 5_463, "test": 5_463}),
        ),
    ),
    Task(
        "rte",
        "RTE",
        "entailment",
        ENTAILMENT,
        "accuracy",
        columns=(TableColumn("RTE", "table2"),),
        layouts=layouts.RTE,
        folders=("RTE", "rte"),
        origin=GLUE,
        licence="research",
        export_labels=ENTAILMENT,
    ),
    Task(
        "scitail",
        "SciTail",
        "entailment",
        ("entails", "neutral"),
        "accuracy",
        columns=(TableColumn("SciTail", "table2"),),
        layouts=layouts.SCITAIL,
        folders=("SciTail", "scitail", "SciTailV1.1"),
        origin="https://allenai.org/data/scitail",
        licence="Apache 2.0",
        synonyms={"entailment": "entails"},
    ),
    Task(
        "race",
        "RACE",
        "multiple_choice",
        ("A", "B", "C", "D"),
        "accuracy",
        columns=(
            TableColumn("RACE-m", "table3", subset="middle"),
            TableColumn("RACE-h", "table3", subset="high"),
            TableColumn("RACE", "table3"),
        ),
        layouts=layouts.RACE,
        folders=("RACE", "race"),
        origin="https://www.cs.cmu.edu/~glai1/data/race",
        licence="non-commercial research",
        how_to_get="gpt1 profile PROFILE --download race --accept race brings it to data/raw/race",
        cluster="first text",  # passages
        subsets=layouts.LEVELS,
        combined_folders=layouts.RACE_COMBINED,
    ),
    Task(
        "story_cloze",
        "Story Cloze",
        "multiple_choice",
        ("1", "2"),
        "accuracy",
        columns=(TableColumn("Story Cloze", "table3"),),
        layouts=layouts.STORY_CLOZE,
        folders=("StoryCloze", "story_cloze", "ROCStories", "Story Cloze", "storycloze"),
        origin="https://cs.rochester.edu/nlp/rocstories",
        licence="research, given on request",
        how_to_get=(
            "fill in the form at https://cs.rochester.edu/nlp/rocstories and put "
            "'{}' and '{}' into data/raw/story_cloze".format(*layouts.STORIES)
        ),
        cluster="first text",  # stories
        releases=(
            Release(
                "2016",
                {"train": 1_871, "test": 1_871},
                (*layouts.STORIES, *layouts.STORIES_SHORT),
            ),
            Release(
                "2018",
                {"train": 1_571},
                (*layouts.STORIES_2018, *layouts.STORIES_2018_SHORT),
            ),
        ),
    ),
    Task(
        "mrpc",
        "MRPC",
        "similarity",
        ("different", "paraphrase"),
        "f1",
        columns=(TableColumn("MRPC", "table4"),),
        layouts=layouts.MRPC,
        folders=("MRPC", "mrpc", "MSRParaphraseCorpus"),
        origin="https://www.microsoft.com/en-us/download/details.aspx?id=52398",
        licence="research",
        second_metric="accuracy",
        file_labels=("0", "1"),
        export_labels=("not_equivalent", "equivalent"),
        other_file_names={
            layouts.MSR_TRAIN: (
                "_2DEC3DBE877E4DB192D17C0256E90F1D",
            ),  # as cabextract takes them out of the .msi
            layouts.MSR_TEST: ("_D7B391F9EAFF4B1B8BCE8F21B20B1B61",),
        },
    ),
    Task(
        "qqp",
        "QQP",
        "similarity",
        ("different", "duplicate"),
        "f1",
        columns=(TableColumn("QQP", "table4"),),
        layouts=layouts.QQP,
        folders=("QQP", "qqp", "QQP-clean"),
        origin=GLUE,
        licence="non-commercial",
        second_metric="accuracy",
        file_labels=("0", "1"),
        export_labels=("not_duplicate", "duplicate"),
    ),
    Task(
        "stsb",
        "STS-B",
        "similarity",
        (),
        "pearson",
        columns=(TableColumn("STS-B", "table4"),),
        layouts=layouts.STSB,
        folders=("stsbenchmark", "STS-B", "STS-Benchmark", "STSbenchmark", "stsb"),
        origin="http://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark",
        licence="CC BY-SA 4.0",
        second_metric="spearman",
        target="score",
    ),
    Task(
        "sst2",
        "SST-2",
        "classification",
        ("negative", "positive"),
        "accuracy",
        columns=(TableColumn("SST-2", "table4"),),
        layouts=layouts.SST2,
        folders=("SST-2", "sst2", "sst-2", "SST2"),
        origin=GLUE,
        licence="research",
        file_labels=("0", "1"),
        export_labels=("negative", "positive"),
    ),
    Task(
        "cola",
        "CoLA",
        "classification",
        ("unacceptable", "acceptable"),
        "matthews",
        columns=(TableColumn("CoLA", "table4"),),
        layouts=layouts.COLA,
        folders=("CoLA", "cola", "cola_public"),
        origin=f"https://nyu-mll.github.io/CoLA, or {GLUE}",
        licence="fair use of published examples",
        file_labels=("0", "1"),
        export_labels=("unacceptable", "acceptable"),
    ),
)

DPRD = Task(
    "dprd",
    "DPRD",
    "multiple_choice",
    ("first", "second"),
    "accuracy",  # zero-shot only: no table has a column for it
    columns=(),
    layouts=layouts.DPRD,
    folders=("dprd", "DPRD"),
    origin="https://www.hlt.utdallas.edu/~vince/data/emnlp12",
    licence="unknown",
    cluster="twins",
)

TASKS: dict[str, Task] = {task.name: task for task in ROWS}
READ = TASKS | {DPRD.name: DPRD}  # by later stages, row by row


def all_sources() -> dict[str, Source]:
    """Return every source by name."""
    return SOURCES | {name: task.source for name, task in READ.items()}
