"""The difference between two systems over columns of a table, with its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpt1.results.columns import ScoredColumn
from gpt1.results.intervals import LEVEL, deviation_of, margin, p_value
from gpt1.results.scores import resampled_scores_of


class Resampled:
    """Scores of systems by seed and resample, each computed once."""

    def __init__(self, predictions: pd.DataFrame) -> None:
        self.rows = dict(list(predictions.groupby(["system", "task"], sort=False)))
        self.computed: dict[tuple[str, ScoredColumn], pd.DataFrame] = {}

    def of(self, system: str, column: ScoredColumn) -> pd.DataFrame:
        """Return one row per seed (SEEDS); columns: the score of all examples, then of each
        resample. Empty where the system has no predictions.
        """
        key = (system, column)
        if key not in self.computed:
            rows = self.rows.get((system, column.task))
            self.computed[key] = (
                pd.DataFrame() if rows is None else resampled_scores_of(rows, column)[0]
            )
        return self.computed[key]


def difference(
    resampled: Resampled, system: str, other: str, columns: Sequence[ScoredColumn]
) -> dict[str, Any]:
    """Compute the mean over common columns and seeds of `system` minus `other`, with its 95 %
    interval. Both systems are scored on the same resamples; fine-tuning seeds of one pre-training
    are averaged first. Returns `columns` alone where nothing is common.
    """
    both = {
        column: (resampled.of(system, column), resampled.of(other, column)) for column in columns
    }
    pairs = {column: pair for column, pair in both.items() if not (pair[0].empty or pair[1].empty)}
    result: dict[str, Any] = {"columns": ", ".join(column.title for column in pairs)}
    sides = [[_by_seed(pair[index]) for pair in pairs.values()] for index in (0, 1)]
    every = [set(scores.index) for side in sides for scores in side]
    seeds = sorted(set.intersection(*every)) if every else []
    if not seeds:
        return result
    start = sides[0][0].loc[seeds, "start"]  # another system's may be of another network, or none
    # [t columns, s pre-trainings, d draws], the first of which is all examples
    ours_tsd, theirs_tsd = (
        np.stack(
            [
                scores.loc[seeds].drop(columns="start").groupby(start, dropna=False).mean()
                for scores in side
            ]
        )
        for side in sides
    )
    ours, theirs, each_tsd = ours_tsd.mean(axis=0), theirs_tsd.mean(axis=0), ours_tsd - theirs_tsd
    each, count = ours - theirs, ours.shape[0]
    value, deviation = each[:, 0].mean(), deviation_of(each_tsd[..., 0]) if count > 1 else np.nan
    error = each[:, 1:].mean(axis=0).std(ddof=1)
    half = margin(LEVEL, deviation, count, error)
    return result | {
        "seeds": count,
        "ours": ours[:, 0].mean(),
        "theirs": theirs[:, 0].mean(),
        "difference": value,
        "low": value - half,
        "high": value + half,
        "p": p_value(value, deviation, count, error),
    }


def _by_seed(resampled: pd.DataFrame) -> pd.DataFrame:
    """Index by fine-tuning seed, with the pre-training seed as `start`; snapshots by pre-training
    seed.
    """
    seeded = resampled.reset_index()
    seeded["seed"] = seeded["seed"].fillna(seeded["pretraining_seed"])
    return seeded.rename(columns={"pretraining_seed": "start"}).set_index("seed")
