"""The GLUE score: the mean over its nine tasks, or over those of them that are there."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gpt1.results.paper import GLUE, GLUE_ROW, GLUE_SCORE, GLUE_TASKS, GLUE_TASKS_ON_DEV

SEEDS = ["pretraining_seed", "seed"]


def glue_mean(
    scores: Mapping[tuple[str, str], float],
    metrics_of: Mapping[str, Sequence[tuple[str, str]]] = GLUE_TASKS,
) -> tuple[tuple[str, ...], float]:
    """GLUE's tasks that are wholly there and their mean: two metrics of a task are averaged first
    (Wang et al. 2018). `scores` are by column and metric. Raises ValueError where no task is there.
    """
    there = {
        task: np.mean([scores[one] for one in metrics])
        for task, metrics in metrics_of.items()
        if all(one in scores for one in metrics)
    }
    if not there:
        raise ValueError("expected at least one of GLUE's tasks, found none")
    return tuple(there), float(np.mean(list(there.values())))


def glue_of_paper(tasks: Sequence[str]) -> float:
    """The paper's model on these tasks, QQP by accuracy alone; over all nine as it is printed."""
    if len(tasks) == len(GLUE_TASKS):
        return GLUE_SCORE
    return glue_mean(GLUE_ROW, {task: GLUE_TASKS_ON_DEV[task] for task in tasks})[1]


def glue_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Each system's mean by seed over the tasks that it has with any seed, QQP by accuracy alone:
    rows as of scores, whose `task` names them. Seeds that lack one of them have none.
    """
    rows = []
    for system, mine in scores.dropna(subset="score").groupby("system", sort=False):
        there = set(zip(mine["column"], mine["metric"], strict=True))
        tasks = {task: of for task, of in GLUE_TASKS_ON_DEV.items() if there.issuperset(of)}
        for seeds, one in mine.groupby(SEEDS, dropna=False):
            of = one.set_index(["column", "metric"])["score"].to_dict()
            if tasks and (found := glue_mean(of, tasks))[0] == tuple(tasks):
                row = {"system": system, **dict(zip(SEEDS, seeds, strict=True)), "score": found[1]}
                rows.append(row | {"task": " ".join(tasks), "n": one["n"].sum()})
    return pd.DataFrame(rows).assign(table="table4", column=GLUE, metric="mean")
