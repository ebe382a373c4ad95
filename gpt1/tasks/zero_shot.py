"""The four zero-shot sets (paper, section 5), and how scores answer them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpt1.tasks.definitions import DPRD, TASKS, Task

Rule = Literal["threshold", "next_word", "choice", "substitution"]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ZeroShotSet:
    """One set: its files, the rule of its prompts, the score of guessing."""

    task: Task
    rule: Rule
    continuations: int
    random: float


SETS = {
    "cola": ZeroShotSet(TASKS["cola"], "threshold", 1, 0.0),
    "sst2": ZeroShotSet(TASKS["sst2"], "next_word", 2, 0.5),
    "race": ZeroShotSet(TASKS["race"], "choice", 4, 0.25),
    "dprd": ZeroShotSet(DPRD, "substitution", 2, 0.5),
}


def best_threshold(scores_n: Floats, labels_n: Integers) -> float:
    """Return the threshold with the best Matthews correlation, where a score above it means class
    1; of equals the lowest.
    """
    from sklearn.metrics import confusion_matrix_at_thresholds

    counts = confusion_matrix_at_thresholds(labels_n, scores_n, pos_label=1)
    # of each distinct score, ascending: how many answers are right or wrong if it means class 1
    true_0, false_1, false_0, true_1, distinct = map(np.flip, counts)
    scale = np.sqrt(
        (true_1 + false_0) * (true_0 + false_1) * (true_0 + false_0) * (true_1 + false_1)
    )
    covariance = true_1 * true_0 - false_1 * false_0
    correlations = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
    best = int(np.argmax(correlations))
    if correlations[best] <= 0:
        return -np.inf
    low, high = distinct[best - 1], distinct[best]
    return float(
        min(low + (high - low) / 2, np.nextafter(high, low))
    )  # never `high` itself, however near it is


def continuation_scores(rule: Rule, sums_nk: Floats, counted_nk: Integers) -> Floats:
    """Return scores [n, k] from log-probabilities: the sum over one word, else the mean over
    counted tokens.
    """
    return sums_nk if rule == "next_word" else sums_nk / counted_nk


def answers(rule: Rule, scores_nk: Floats, threshold: float) -> npt.NDArray[np.int8]:
    """Return answers [n]: the best continuation, or whether the score is above the threshold."""
    chosen = scores_nk[:, 0] > threshold if rule == "threshold" else np.argmax(scores_nk, axis=1)
    return chosen.astype(np.int8)
