"""For benchmarks and tests: how long the sequences of the paper's twelve tasks are."""

import numpy as np
import numpy.typing as npt

from gpt1.pipeline.plan.facts import OFFICIAL
from gpt1.tasks.table import TASKS

SHARES = (0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1)
# Tokens of a sequence, special symbols included, at these shares of the rows: words and marks
# counted in the official training files, times what makes their mean that of facts.py. SNLI, MNLI,
# QNLI and QQP: of 19,000 to 42,000 rows of them.
QUANTILES = {
    "snli": (8, 14, 18, 20, 24, 30, 36, 50, 65, 94),
    "mnli": (5, 11, 20, 26, 36, 49, 62, 99, 157, 453),
    "qnli": (14, 22, 32, 39, 49, 60, 73, 106, 166, 512),
    "rte": (14, 22, 34, 43, 56, 85, 137, 198, 250, 307),
    "qqp": (12, 15, 19, 22, 28, 35, 47, 77, 113, 335),
    "sst2": (3, 3, 4, 5, 10, 17, 27, 43, 54, 64),
    "cola": (4, 5, 7, 8, 10, 13, 15, 23, 29, 44),
    "stsb": (11, 15, 19, 21, 25, 34, 57, 82, 98, 149),
    "race": (14, 113, 207, 288, 365, 424, 485, 512, 512, 512),
}
# of which no file was at hand: spread as another task's
LIKE = {"scitail": "snli", "mrpc": "stsb", "story_cloze": "snli"}


def lengths_of(task: str, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Lengths in tokens [rows, sequences] drawn as those of a task; a row's sequences are equally
    long.
    """
    like = LIKE.get(task, task)
    drawn = np.interp(np.random.default_rng(seed).random(rows), SHARES, QUANTILES[like])
    times = OFFICIAL[task].length / OFFICIAL[like].length
    lengths = np.minimum(np.round(drawn * times), 512).astype(np.int64)
    return np.repeat(lengths[:, None], TASKS[task].sequences, axis=1)
