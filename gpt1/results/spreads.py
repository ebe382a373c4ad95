"""How far two systems differ by chance, measured on the runs that ship with the program: what a
plan of another run on such text takes for granted.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpt1.results.answers import FULL
from gpt1.results.records import load
from gpt1.results.rules import read_rules

if TYPE_CHECKING:  # half a second, which not every command is worth
    import pandas as pd

TOWN, REAL = "reference/demo", "reference/small"  # made-up text, and real
KEY = ["task", "split", "example", "seed"]


class Spread(NamedTuple):
    """How two systems differ: the share of rows that one of them alone gets right; the standard
    deviation over seeds of a task's difference, points, and which share of its square all tasks
    have in common; how many scored rows of a task belong together, for each task.
    """

    disagreement: float
    deviation: float
    shared: float
    rows_of_a_cluster: dict[str, float]


@cache
def spread_in(run: str) -> Spread:
    """Of a run's full model and each of the systems that the primary claims set against it, over
    the columns of Table 5; of STS-B's scores none is right or wrong. Raises UserError.
    """
    (scores, predictions), rules = load(run), read_rules()
    others = list(dict.fromkeys(name for key in rules.primary for name in rules.table5[key].less))
    rows = scores[(scores.table == "table5") & (scores.value == "score") & scores.scores.notna()]
    deviation, shared = _deviation({name: _by_seed(rows, name) for name in (FULL, *others)})
    full = predictions[predictions.system == FULL].groupby(["task", "split"])
    parts = full[["example", "cluster"]].nunique().groupby("task").sum()
    together = {str(task): float(part.example / part.cluster) for task, part in parts.iterrows()}
    return Spread(_disagreement(predictions, others), deviation, shared, together)


def _by_seed(rows: "pd.DataFrame", system: str) -> "pd.DataFrame":
    """A system's scores [columns, seeds]."""
    import pandas as pd

    own = rows[rows.variant == system]
    return pd.DataFrame([list(scores) for scores in own.scores], index=own.column)


def _deviation(scores_cs: "dict[str, pd.DataFrame]") -> tuple[float, float]:
    """The deviation of a column's difference, mean square of all columns and systems, and the
    share in common: the mean of n columns varies by (shared + (1 - shared) / n) times a column's.
    """
    full_cs = scores_cs.pop(FULL)
    gaps = [(full_cs - other_cs).dropna() for other_cs in scores_cs.values()]
    square = np.mean([gap_cs.var(axis=1).mean() for gap_cs in gaps])
    of_mean = np.mean([gap_cs.mean().var() for gap_cs in gaps])
    one = np.mean([1 / len(gap_cs) for gap_cs in gaps])
    return float(np.sqrt(square)), float(np.clip((of_mean / square - one) / (1 - one), 0, 1))


def _disagreement(predictions: "pd.DataFrame", others: Sequence[str]) -> float:
    """The share of rows that the full model or another alone gets right: the mean of all tasks and
    systems.
    """
    rows = predictions[predictions.system.isin([FULL, *others]) & (predictions.task != "stsb")]
    right = rows.assign(right=rows.logits.map(np.argmax) == rows.label)
    systems = right.set_index([*KEY, "system"]).right.unstack("system").dropna()
    apart = systems[others].ne(systems[FULL], axis=0)
    return float(apart.groupby("task").mean().to_numpy().mean())
