"""From logits to an answer: a class, a score (Tai et al. 2015, as in the authors' code) or the
chosen ending, with probabilities.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.tasks.metrics import predictions
from gpt1.tasks.table import Task

Logits = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Answer:
    """An answer: `label` (a class or a choice) or `score`; the chosen text; the probability of each
    label, or of each whole score.
    """

    probabilities: dict[str, float]
    label: str | None = None
    score: float | None = None
    choice: str | None = None

    def record(self) -> dict[str, Any]:
        """The answer as plain values, without what it does not have."""
        values = {
            "label": self.label,
            "score": self.score,
            "choice": self.choice,
            "probabilities": self.probabilities,
        }
        return {name: value for name, value in values.items() if value is not None}


def softmax(logits_o: Logits) -> npt.NDArray[np.float64]:
    """Probabilities [outputs] that sum to 1, in float64."""
    weights = np.exp(logits_o.astype(np.float64) - logits_o.max())
    return np.asarray(weights / weights.sum())


def answer(task: Task, logits_o: Logits, choices: tuple[str, ...] = ()) -> Answer:
    """The answer that logits [outputs] of one example give."""
    probabilities = softmax(logits_o).tolist()
    found = predictions(logits_o[None], task.target)[0]
    if task.target == "score":
        return Answer(
            {str(score): value for score, value in enumerate(probabilities)}, score=float(found)
        )
    named = dict(zip(task.labels, probabilities, strict=True))
    return Answer(
        named, label=task.labels[int(found)], choice=choices[int(found)] if choices else None
    )
