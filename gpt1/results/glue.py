"""The GLUE score: the mean over the tasks that a run has."""

from collections.abc import Sequence

import pandas as pd

from gpt1.results.columns import FULL
from gpt1.results.paper import GLUE, GLUE_ROW, GLUE_TASKS, NOT_ON_DEV

SEEDS = ["pretraining_seed", "seed"]


def glue_tasks(scores: pd.DataFrame, without: tuple[str, str] | None = NOT_ON_DEV) -> pd.DataFrame:
    """Return one column per task of GLUE: the mean of its metrics (Wang et al. 2018), without the
    metric `without`. NaN where a metric is missing. `scores` has columns (column, metric).
    """
    kept_metrics = {
        task: [key for key in keys if key != without] for task, keys in GLUE_TASKS.items()
    }
    return pd.DataFrame(
        {
            task: scores.reindex(columns=keys).mean(axis=1, skipna=False)
            for task, keys in kept_metrics.items()
        }
    )


def glue_of_paper(tasks: Sequence[str]) -> float:
    """Return the score of the paper's model on these tasks, QQP by accuracy alone."""
    return float(glue_tasks(pd.DataFrame([GLUE_ROW]))[list(tasks)].mean(axis=1).iloc[0])


def glue_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute the GLUE score by system and seed over the tasks of the full model, QQP by accuracy
    alone. Its rows are like those of `scores`; `task` lists the tasks. A seed that lacks one of
    these tasks is left out.
    """
    if (scored := scores.dropna(subset="score")).empty:
        return scored
    wide = scored.set_index(["system", *SEEDS, "column", "metric"])[["score", "n"]]
    wide = wide.unstack(["column", "metric"])
    by_task = glue_tasks(wide["score"])
    full = by_task[by_task.index.get_level_values("system") == FULL]
    tasks = full.dropna(axis=1, how="all").columns
    mean = by_task[tasks].mean(axis=1, skipna=False).dropna().rename("score").to_frame()
    rows = mean.assign(task=" ".join(tasks), n=wide["n"].sum(axis=1)).reset_index()
    return rows.assign(table="table4", column=GLUE, metric="mean")
