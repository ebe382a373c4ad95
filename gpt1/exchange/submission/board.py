"""GLUE's leaderboard (https://gluebenchmark.com): its eleven files, and their rows (an index, a
tab, a prediction).
"""

from dataclasses import dataclass

HEADER = "index\tprediction"
DECIMALS = 3  # of STS-B's scores, as GLUE's authors write them
LOWEST, HIGHEST = 0.0, 5.0  # of STS-B's scores


@dataclass(frozen=True)
class BoardFile:
    """One file. words: what stands for class 0, 1, … (none: a score); constant: the commonest label
    of GLUE's dev split.

    task, split: what of a run answers its rows.
    """

    name: str
    rows: int
    task: str
    split: str
    words: tuple[str, ...]
    constant: str

    def written(self, answers: list[str]) -> bytes:
        """The file's bytes, the answers in the order of their index."""
        return "\n".join(
            [HEADER, *(f"{index}\t{answer}" for index, answer in enumerate(answers)), ""]
        ).encode("ascii")


NUMBERS = ("0", "1")
NLI = ("entailment", "neutral", "contradiction")
TWO_WAY = ("entailment", "not_entailment")
FILES = (
    BoardFile("CoLA.tsv", 1063, "cola", "test", NUMBERS, "1"),
    BoardFile("SST-2.tsv", 1821, "sst2", "test", NUMBERS, "1"),
    BoardFile("MRPC.tsv", 1725, "mrpc", "test", NUMBERS, "1"),
    BoardFile(
        "STS-B.tsv", 1379, "stsb", "test", (), "2.500"
    ),  # no label is commonest: the middle of the scale
    BoardFile("QQP.tsv", 390_965, "qqp", "test", NUMBERS, "0"),
    BoardFile("MNLI-m.tsv", 9796, "mnli", "test_matched", NLI, "entailment"),
    BoardFile("MNLI-mm.tsv", 9847, "mnli", "test_mismatched", NLI, "entailment"),
    BoardFile(
        "QNLI.tsv", 5463, "qnli", "test", TWO_WAY, "not_entailment"
    ),  # the second version; the first is closed
    BoardFile("RTE.tsv", 3000, "rte", "test", TWO_WAY, "entailment"),
    BoardFile("WNLI.tsv", 146, "wnli", "test", NUMBERS, "0"),
    BoardFile("AX.tsv", 1104, "mnli", "diagnostic", NLI, "entailment"),
)
ALWAYS_CONSTANT = (
    "WNLI.tsv",
)  # where the run has none: its dev set is made so that learning from train misleads
