"""The paper's own numbers, x 100, NaN where it prints a dash. The last row of Tables 2 to 4 is its
model.
"""

from collections.abc import Sequence
from io import StringIO
from typing import Any

import pandas as pd

GLUE = "GLUE"  # the column that is no task's: the mean over nine tasks
AVERAGE = "Avg"
MODEL = "Finetuned Transformer LM"


def _table(text: str, index: Any = 0) -> pd.DataFrame:
    cells = StringIO(text)
    table = pd.read_csv(
        cells, sep=r"\s*\|\s*", index_col=index, na_values="–", engine="python"
    ).drop(columns="source", errors="ignore")
    return table.rename_axis([None] * table.index.nlevels)


# Test accuracy; MNLI, QNLI and RTE by the GLUE test server. Wang et al. 2018 is GLUE itself.
TABLE2 = _table(
    """
                               | MNLI-m | MNLI-mm | SNLI | SciTail | QNLI |  RTE | source
ESIM+ELMo (5x)                 |      – |       – | 89.3 |       – |    – |    – | Peters 2018
CAFE (5x)                      |   80.2 |    79.0 | 89.3 |       – |    – |    – | Tay et al. 2018
Stochastic Answer Network (3x) |   80.6 |    80.1 |    – |       – |    – |    – | Liu et al. 2018
CAFE                           |   78.7 |    77.9 | 88.5 |    83.3 |    – |    – | Tay et al. 2018
GenSen                         |   71.4 |    71.3 |    – |       – | 82.3 | 59.2 | Wang et al. 2018
Multi-task BiLSTM+Attn         |   72.2 |    72.1 |    – |       – | 82.1 | 61.7 | Wang et al. 2018
Finetuned Transformer LM       |   82.1 |    81.4 | 89.9 |    88.3 | 88.1 | 56.0 | –
"""
)

# Test accuracy.
TABLE3 = _table(
    """
                         | Story Cloze | RACE-m | RACE-h | RACE | source
val-LS-skip              |        76.5 |      – |      – |    – | Srinivasan et al. 2018
Hidden Coherence Model   |        77.6 |      – |      – |    – | Chaturvedi et al. 2017
Dynamic Fusion Net (9x)  |           – |   55.6 |   49.4 | 51.2 | Xu et al. 2017
BiAttention MRU (9x)     |           – |   60.2 |   50.3 | 53.3 | Tay et al. 2018
Finetuned Transformer LM |        86.5 |   62.9 |   57.4 | 59.0 | –
"""
)

# By the GLUE test server.
TABLE4 = _table(
    """
                             | CoLA | SST-2 | MRPC | STS-B |  QQP | GLUE | source
Sparse byte mLSTM            |    – |  93.2 |    – |     – |    – |    – | Gray et al. 2017
TF-KLD                       |    – |     – | 86.0 |     – |    – |    – | Ji and Eisenstein 2013
ECNU (mixed ensemble)        |    – |     – |    – |  81.0 |    – |    – | Tian et al. 2017
Single-task BiLSTM+ELMo+Attn | 35.0 |  90.2 | 80.2 |  55.5 | 66.1 | 64.8 | Wang et al. 2018
Multi-task BiLSTM+ELMo+Attn  | 18.9 |  91.6 | 83.5 |  72.8 | 63.3 | 68.9 | Wang et al. 2018
Finetuned Transformer LM     | 45.4 |  91.3 | 82.3 |  82.0 | 70.3 | 72.8 | –
"""
)

# By the GLUE test server; MNLI is the mean of matched (82.1) and mismatched (81.4). The LSTM's mean
# is 69.16: rounded down in print.
TABLE5_METRICS = {
    "CoLA": "matthews",
    "SST-2": "accuracy",
    "MRPC": "f1",
    "STS-B": "pearson",
    "QQP": "f1",
    "MNLI": "accuracy",
    "QNLI": "accuracy",
    "RTE": "accuracy",
}
TABLE5_ROWS = {  # by the names that params.yaml gives the ablations
    "full": "Transformer w/ aux LM (full)",
    "no_pretraining": "Transformer w/o pre-training",
    "no_aux_lm": "Transformer w/o aux LM",
    "lstm": "LSTM w/ aux LM",
}
TABLE5 = _table(
    """
                             |  Avg | CoLA | SST-2 | MRPC | STS-B |  QQP | MNLI | QNLI |  RTE
Transformer w/ aux LM (full) | 74.7 | 45.4 |  91.3 | 82.3 |  82.0 | 70.3 | 81.8 | 88.1 | 56.0
Transformer w/o pre-training | 59.9 | 18.9 |  84.0 | 79.4 |  30.9 | 65.5 | 75.7 | 71.2 | 53.8
Transformer w/o aux LM       | 75.0 | 47.9 |  92.0 | 84.9 |  83.2 | 69.8 | 81.1 | 86.9 | 54.4
LSTM w/ aux LM               | 69.1 | 30.3 |  90.5 | 83.2 |  71.8 | 68.1 | 73.7 | 81.1 | 54.6
"""
)


def paper_means(titles: Sequence[str]) -> pd.Series:
    """Return each row's mean over columns of Table 5, the printed one over all or none."""
    every = len(titles) in (0, len(TABLE5_METRICS))
    return TABLE5[AVERAGE] if every else TABLE5[list(titles)].mean(axis=1)


TABLES = {"table2": TABLE2, "table3": TABLE3, "table4": TABLE4, "table5": TABLE5}
HEADINGS = {
    "table2": "Table 2. Natural language inference",
    "table3": "Table 3. Question answering and commonsense reasoning",
    "table4": "Table 4. Semantic similarity and classification",
    "table5": "Table 5. Ablations",
}

# The same submission's whole row on the GLUE test server, as Liu et al. 2019 (MT-DNN) print it: by
# column and metric.
GLUE_ROW = _table(
    """
column  | metric   | score
CoLA    | matthews | 45.4
SST-2   | accuracy | 91.3
MRPC    | f1       | 82.3
MRPC    | accuracy | 75.7
STS-B   | pearson  | 82.0
STS-B   | spearman | 80.0
QQP     | f1       | 70.3
QQP     | accuracy | 88.5
MNLI-m  | accuracy | 82.1
MNLI-mm | accuracy | 81.4
QNLI    | accuracy | 88.1
RTE     | accuracy | 56.0
WNLI    | accuracy | 53.4
""",
    ["column", "metric"],
)["score"].to_dict()

# GLUE's nine tasks, and the metrics whose mean is a task's one score (Wang et al. 2018).
GLUE_TASKS = {
    task: [key for key in GLUE_ROW if key[0].startswith(task)]
    for task in ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI")
}

# F1 depends on how many rows are positive: 37 % of QQP's dev rows, and by the accuracy and F1 above
# 14 to 25 % of the server's. So F1 on dev stands beside no number of the paper, accuracy does.
NOT_ON_DEV = ("QQP", "f1")


# Figure 2, right: on its scale 0 is `random`, 1 the best single model before the paper, both x 100.
ZERO_SHOT = _table(
    """
     | title | random | state_of_the_art | source
cola | CoLA  |    0.0 |             35.0 | Single-task BiLSTM+ELMo+Attn, Wang et al. 2018
sst2 | SST-2 |   50.0 |             93.2 | Sparse byte mLSTM, Gray et al. 2017
race | RACE  |   25.0 |             50.4 | BiAttention MRU, single model, Tay et al. 2018
dprd | DPRD  |   50.0 |             76.4 | Peng et al. 2015
"""
)

# Figure 2, left, read off by eye, within 2 points: accuracy x 100 with no layer transferred, and
# with all; it rises between them.
FIGURE2_LAYERS = {"mnli": (72.0, 82.0), "race": (40.0, 60.0)}
