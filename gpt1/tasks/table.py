"""The twelve tasks (paper, Table 1): official files, how to read them, input shape, labels, metric. A thirteenth is one more entry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpt1.sources.table import Layout, Source

Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
Kind = Literal["classification", "entailment", "similarity", "multiple_choice"]
COMBINE = {"classification": "single", "entailment": "single", "similarity": "sum", "multiple_choice": "choose"}
SPLITS = ("train", "dev", "test")
SCORE_CLASSES = 6  # scores 0..5 as soft labels over six classes (Tai et al. 2015, the authors' code)


@dataclass(frozen=True)
class Tsv:
    """Tab-separated rows in which quotes are text. A file without a header has the `columns` named here; else the header names them."""

    texts: tuple[str, ...]
    label: str | None = None
    columns: tuple[str, ...] = ()
    surplus: int = 0  # so many columns more may follow


@dataclass(frozen=True)
class Jsonl:
    """One JSON object a line; rows whose label is "-" (annotators did not agree) are dropped, as the field does."""

    texts: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class Passages:
    """RACE: one JSON object a passage with article, questions, options, answers; every question is an example."""

    label: str = "answers"


@dataclass(frozen=True)
class Stories:
    """Story Cloze: real CSV with a header; four sentences, two endings, the right one's number."""

    label: str = "AnswerRightEnding"


@dataclass(frozen=True)
class Blocks:
    """DPRD: blocks of four lines with a blank line between: sentence, pronoun, two candidates with a comma between, the right one."""

    label: str = "answer"


Format = Tsv | Jsonl | Passages | Stories | Blocks


@dataclass(frozen=True)
class Share:
    """A part of a file's rows: `heldout` of every `of` are drawn by scikit-learn's train_test_split with this seed."""

    keep: Literal["train", "heldout"]
    heldout: int
    of: int
    seed: int = 3535999445  # the authors' code, for Story Cloze


@dataclass(frozen=True)
class Split:
    """Where one split's rows lie. Several files are read one after another; for a task with subsets file i is subset i."""

    name: str
    files: tuple[str, ...]
    format: Format
    required: bool = True
    share: Share | None = None


@dataclass(frozen=True)
class Column:
    """A column of the paper's tables: its heading, and which of the task's rows it scores."""

    title: str
    table: Literal["table2", "table3", "table4"]
    suffix: str = ""  # of the split's name: "_mismatched" makes dev dev_mismatched
    subset: str | None = None


@dataclass(frozen=True)
class Task:
    """One task. layouts: the ways in which its files are distributed, the best first; values: labels as the files write them."""

    name: str
    title: str
    kind: Kind
    labels: tuple[str, ...]
    metric: Metric
    columns: tuple[Column, ...]
    layouts: tuple[tuple[Split, ...], ...]
    folders: tuple[str, ...]
    origin: str
    licence: str
    how_to_get: str
    second_metric: Metric | None = None
    target: Literal["class", "score"] = "class"
    values: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    combined: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> Source:
        """What `acquire` needs to know of the task."""
        layouts = tuple(Layout(tuple(dict.fromkeys(file for split in layout if split.required for file in split.files)),
                               tuple(file for split in layout if not split.required for file in split.files)) for layout in self.layouts)
        return Source(self.name, self.folders, self.origin, self.licence, self.how_to_get, layouts, combined=self.combined)

    @property
    def combine(self) -> str:
        """How an example's sequences make its logits: single, sum (both orders added), choose (one logit a sequence)."""
        return COMBINE[self.kind]

    @property
    def sequences(self) -> int:
        """Sequences per example."""
        return {"single": 1, "sum": 2, "choose": len(self.labels)}[self.combine]

    @property
    def outputs(self) -> int:
        """Logits per example."""
        return SCORE_CLASSES if self.target == "score" else len(self.labels)


def scored_split(column: Column, splits: Mapping[str, Any]) -> str:
    """The split that a column scores, given task.json's `splits`: test where its labels are public, else dev."""
    test = f"test{column.suffix}"
    return test if test in splits and splits[test]["labelled"] else f"dev{column.suffix}"


def _trio(pattern: str, reading: Format) -> tuple[Split, ...]:
    """Train, dev and a labelled test split, one file each."""
    return tuple(Split(name, (pattern.format(name),), reading) for name in SPLITS)


def _glue(texts: tuple[str, ...], label: str) -> tuple[Split, ...]:
    """GLUE's train.tsv and dev.tsv, and test.tsv without labels."""
    return (Split("train", ("train.tsv",), Tsv(texts, label)), Split("dev", ("dev.tsv",), Tsv(texts, label)),
            Split("test", ("test.tsv",), Tsv(texts), required=False))


def _glue_zip(task: str, raw: str) -> str:
    return f"https://dl.fbaipublicfiles.com/glue/data/{task}.zip into data/raw/{raw} (the zip, or what it holds)"


PAIR = ("sentence1", "sentence2")
NLI = ("entailment", "neutral", "contradiction")
GLUE = "GLUE (https://gluebenchmark.com)"
NLI_ROWS = Jsonl(PAIR, "gold_label")
MNLI_ROWS = Tsv(PAIR, "gold_label")
COLA_ROWS = Tsv(("sentence",), "label", columns=("source", "label", "mark", "sentence"))
SCITAIL_ROWS = Tsv(("premise", "hypothesis"), "label", columns=("premise", "hypothesis", "label"))
STSB_ROWS = Tsv(PAIR, "score", columns=("genre", "filename", "year", "old_index", "score", *PAIR), surplus=2)
MSR_ROWS = Tsv(("#1 String", "#2 String"), "Quality")
MSR_TRAIN = ("msr_paraphrase_train.txt",)
MSR_TEST = Split("test", ("msr_paraphrase_test.txt",), MSR_ROWS)
STORIES = ("cloze_test_val__spring2016 - cloze_test_ALL_val.csv", "cloze_test_test__spring2016 - cloze_test_ALL_test.csv")


def _stories(validation: str, test: str) -> tuple[Split, ...]:
    """The authors train on the validation stories, less 374 of the 1,871."""
    return (Split("train", (validation,), Stories(), share=Share("train", 374, 1871)),
            Split("dev", (validation,), Stories(), share=Share("heldout", 374, 1871)), Split("test", (test,), Stories()))


ROWS = (
    Task("snli", "SNLI", "entailment", NLI, "accuracy",
         columns=(Column("SNLI", "table2"),),
         layouts=(_trio("snli_1.0_{}.jsonl", NLI_ROWS),),
         folders=("SNLI", "snli", "snli_1.0"),
         origin="https://nlp.stanford.edu/projects/snli",
         licence="CC BY-SA 4.0",
         how_to_get="put https://nlp.stanford.edu/projects/snli/snli_1.0.zip into data/raw/snli (the zip, or what it holds)"),
    Task("mnli", "MNLI", "entailment", NLI, "accuracy",
         columns=(Column("MNLI-m", "table2"), Column("MNLI-mm", "table2", suffix="_mismatched")),
         layouts=((Split("train", ("train.tsv",), MNLI_ROWS), Split("dev", ("dev_matched.tsv",), MNLI_ROWS),
                   Split("dev_mismatched", ("dev_mismatched.tsv",), MNLI_ROWS),
                   Split("test_matched", ("test_matched.tsv",), Tsv(PAIR), required=False),
                   Split("test_mismatched", ("test_mismatched.tsv",), Tsv(PAIR), required=False)),
                  (Split("train", ("multinli_1.0_train.jsonl",), NLI_ROWS), Split("dev", ("multinli_1.0_dev_matched.jsonl",), NLI_ROWS),
                   Split("dev_mismatched", ("multinli_1.0_dev_mismatched.jsonl",), NLI_ROWS))),
         folders=("MNLI", "mnli", "MultiNLI", "multinli_1.0"),
         origin=f"https://cims.nyu.edu/~sbowman/multinli, or {GLUE}",
         licence="OANC and others",
         how_to_get=f"put https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip or {_glue_zip('MNLI', 'mnli')}"),
    Task("qnli", "QNLI", "entailment", ("entailment", "not_entailment"), "accuracy",
         columns=(Column("QNLI", "table2"),),
         layouts=(_glue(("question", "sentence"), "label"),),
         folders=("QNLI", "qnli", "QNLIv2"),
         origin=GLUE,
         licence="CC BY-SA 4.0",
         how_to_get=f"put {_glue_zip('QNLIv2', 'qnli')}"),
    Task("rte", "RTE", "entailment", ("entailment", "not_entailment"), "accuracy",
         columns=(Column("RTE", "table2"),),
         layouts=(_glue(PAIR, "label"),),
         folders=("RTE", "rte"),
         origin=GLUE,
         licence="research",
         how_to_get=f"put {_glue_zip('RTE', 'rte')}"),
    Task("scitail", "SciTail", "entailment", ("entails", "neutral"), "accuracy",
         columns=(Column("SciTail", "table2"),),
         layouts=(_trio("scitail_1.0_{}.tsv", SCITAIL_ROWS),),
         folders=("SciTail", "scitail", "SciTailV1.1"),
         origin="https://allenai.org/data/scitail",
         licence="Apache 2.0",
         how_to_get="put SciTailV1.1.zip of https://allenai.org/data/scitail into data/raw/scitail (the zip, or its folder tsv_format)"),
    Task("race", "RACE", "multiple_choice", ("A", "B", "C", "D"), "accuracy",
         columns=(Column("RACE-m", "table3", subset="middle"), Column("RACE-h", "table3", subset="high"), Column("RACE", "table3")),
         layouts=(tuple(Split(name, (f"{name}_middle.jsonl", f"{name}_high.jsonl"), Passages()) for name in SPLITS),),
         folders=("RACE", "race"),
         origin="https://www.cs.cmu.edu/~glai1/data/race",
         licence="non-commercial research",
         how_to_get="ask for RACE.tar.gz at https://www.cs.cmu.edu/~glai1/data/race and put it (or what it holds) into data/raw/race",
         subsets=("middle", "high"),
         combined={f"{split}_{level}.jsonl": f"{split}/{level}" for split in SPLITS for level in ("middle", "high")}),
    Task("story_cloze", "Story Cloze", "multiple_choice", ("1", "2"), "accuracy",
         columns=(Column("Story Cloze", "table3"),),
         layouts=(_stories(*STORIES), _stories("cloze_test_val__spring2016.csv", "cloze_test_test__spring2016.csv")),
         folders=("StoryCloze", "story_cloze", "ROCStories", "Story Cloze", "storycloze"),
         origin="https://cs.rochester.edu/nlp/rocstories",
         licence="research, given on request",
         how_to_get=f"fill in the form at https://cs.rochester.edu/nlp/rocstories and put '{STORIES[0]}' and '{STORIES[1]}' "
                    "into data/raw/story_cloze"),
    Task("mrpc", "MRPC", "similarity", ("different", "paraphrase"), "f1",
         columns=(Column("MRPC", "table4"),),
         layouts=((Split("train", ("train.tsv",), MSR_ROWS), Split("dev", ("dev.tsv",), MSR_ROWS), MSR_TEST),
                  (Split("train", MSR_TRAIN, MSR_ROWS, share=Share("train", 408, 4076)),
                   Split("dev", MSR_TRAIN, MSR_ROWS, share=Share("heldout", 408, 4076)), MSR_TEST),
                  _glue(("#1 String", "#2 String"), "Quality")),
         folders=("MRPC", "mrpc", "MSRParaphraseCorpus"),
         origin="https://www.microsoft.com/en-us/download/details.aspx?id=52398",
         licence="research",
         how_to_get="put msr_paraphrase_train.txt and msr_paraphrase_test.txt of "
                    "https://www.microsoft.com/en-us/download/details.aspx?id=52398 into data/raw/mrpc "
                    "(and GLUE's train.tsv and dev.tsv beside them, if you have them)",
         second_metric="accuracy", values=("0", "1")),
    Task("qqp", "QQP", "similarity", ("different", "duplicate"), "f1",
         columns=(Column("QQP", "table4"),),
         layouts=(_glue(("question1", "question2"), "is_duplicate"),),
         folders=("QQP", "qqp", "QQP-clean"),
         origin=GLUE,
         licence="non-commercial",
         how_to_get=f"put {_glue_zip('QQP-clean', 'qqp')}",
         second_metric="accuracy", values=("0", "1")),
    Task("stsb", "STS-B", "similarity", (), "pearson",
         columns=(Column("STS-B", "table4"),),
         layouts=(_trio("sts-{}.csv", STSB_ROWS), _glue(PAIR, "score")),
         folders=("stsbenchmark", "STS-B", "STS-Benchmark", "STSbenchmark", "stsb"),
         origin="http://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark",
         licence="CC BY-SA 4.0",
         how_to_get="put http://ixa2.si.ehu.eus/stswiki/images/4/48/Stsbenchmark.tar.gz into data/raw/stsb (or what it holds); "
                    f"or {_glue_zip('STS-B', 'stsb')}",
         second_metric="spearman", target="score"),
    Task("sst2", "SST-2", "classification", ("negative", "positive"), "accuracy",
         columns=(Column("SST-2", "table4"),),
         layouts=(_glue(("sentence",), "label"),),
         folders=("SST-2", "sst2", "sst-2", "SST2"),
         origin=GLUE,
         licence="research",
         how_to_get=f"put {_glue_zip('SST-2', 'sst2')}",
         values=("0", "1")),
    Task("cola", "CoLA", "classification", ("unacceptable", "acceptable"), "matthews",
         columns=(Column("CoLA", "table4"),),
         layouts=((Split("train", ("train.tsv",), COLA_ROWS), Split("dev", ("dev.tsv",), COLA_ROWS),
                   Split("test", ("test.tsv",), Tsv(("sentence",)), required=False)),
                  (Split("train", ("in_domain_train.tsv",), COLA_ROWS),
                   Split("dev", ("in_domain_dev.tsv", "out_of_domain_dev.tsv"), COLA_ROWS))),
         folders=("CoLA", "cola", "cola_public"),
         origin=f"https://nyu-mll.github.io/CoLA, or {GLUE}",
         licence="fair use of published examples",
         how_to_get=f"put https://nyu-mll.github.io/CoLA/cola_public_1.1.zip or {_glue_zip('CoLA', 'cola')}",
         values=("0", "1")),
)

TASKS: dict[str, Task] = {task.name: task for task in ROWS}
ABLATED = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")  # the columns of Table 5
