"""GLUE's leaderboard (https://gluebenchmark.com): its eleven files, their rows (an index, a tab, a
prediction), and what of a file its server would refuse.
"""

import re
from dataclasses import dataclass

from gpt1.tasks.rows import quoted

HEADER = "index\tprediction"
DECIMALS = 3  # of STS-B's scores, as GLUE's authors write them
LOWEST, HIGHEST = 0.0, 5.0  # of STS-B's scores
ROW_BYTES = 64  # of a row, at most, on average: six digits, a tab, the longest word, an end


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

    @property
    def most_bytes(self) -> int:
        """A file with more bytes is not looked into."""
        return ROW_BYTES * (self.rows + 1)

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
BY_NAME = {file.name: file for file in FILES}
ALWAYS_CONSTANT = (
    "WNLI.tsv",
)  # where the run has none: its dev set is made so that learning from train misleads

SCORE = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")


def wrong_in(file: BoardFile, content: bytes) -> str | None:
    """What the server would refuse in a file's bytes: where, what it expects, what is there, what
    to do. None where all is well.
    """
    if len(content) > file.most_bytes:
        return (
            f"expected {file.rows} rows in at most {file.most_bytes:,} bytes, found more; write an"
            " index and a prediction a row, nothing else"
        )
    try:
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        return (
            f"line {content.count(10, 0, error.start) + 1}: expected plain UTF-8, found the byte"
            f" {content[error.start]:#04x}; save the file as UTF-8"
        )
    if lines[0] != HEADER:
        return (
            f"line 1: expected the header {HEADER!r}, found {quoted(lines[0])}; write it so, one"
            " tab between the columns and line ends of LF alone"
        )
    wanted = " or ".join(file.words) or f"a number from {LOWEST:g} to {HIGHEST:g}"
    rows = lines[1:]
    for index, row in enumerate(rows[: file.rows]):
        start, _, answer = row.partition("\t")
        if start != str(index) or not (answer in file.words if file.words else _is_score(answer)):
            return (
                f"line {index + 2}: expected {index}, a tab and {wanted}, found {quoted(row)};"
                " write such a row for every row of the official test file, in its order"
            )
    if len(rows) != file.rows:
        return (
            f"expected {file.rows} rows after the header, found {len(rows)}; predict every row of"
            f" the official test file{' of the second version' if file.task == 'qnli' else ''}, and"
            " no other"
        )
    return None


def _is_score(answer: str) -> bool:
    """Whether it is a number in range."""
    return bool(SCORE.fullmatch(answer)) and LOWEST <= float(answer) <= HIGHEST
