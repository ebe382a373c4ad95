"""What embeddings carry and what the layers add: a picture of each run that ships,
and a table of the made-up town's. `python docs/scores_by_task.py` draws the pictures anew.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import gpt1.results
from gpt1.results.document import grid, number
from gpt1.results.drawing import POINTS, svg
from gpt1.results.score_pictures import DrawnScore, draw_scores
from gpt1.tasks import metrics

PICTURES = {
    run: Path(__file__).with_name(name)
    for run, name in (("town", "made_up_town.svg"), ("small", "real_text.svg"))
}
WORDS = {"sst2": "SST-2", "mnli": "MNLI", "qqp": "QQP", "stsb": "STS-B"}
ORDER = {"qnli": "QNLI", "rte": "RTE", "mrpc": "MRPC", "cola": "CoLA"}
SYSTEMS = {
    "embeddings_only": "the Transformer's embeddings alone",
    "no_pretraining": "no pre-training",
    "full": "all layers",
}
BESIDE = {"lstm": "the LSTM", "lstm_equal": "the LSTM of equal size"}
CHANCE = {"majority": "an answer that looks at no input"}


def measured(run: str) -> pd.DataFrame:
    """Accuracy x 100 by seed, STS-B's correlation: a row a system (index), task (index) and seed."""
    _, predictions = gpt1.results.load(f"reference/{run}")
    scores = [
        (system, task, 100 * _score(task, rows))
        for (system, task, _), rows in predictions.groupby(["system", "task", "seed"])
        if system in SYSTEMS | BESIDE | CHANCE
    ]
    return pd.DataFrame(scores, columns=["system", "task", "score"]).set_index(["system", "task"])


def _score(task: str, rows: pd.DataFrame) -> float:
    logits, labels = np.stack(rows["logits"].to_numpy()), rows["label"].to_numpy()
    if task == "stsb":
        return metrics.score("pearson", labels, metrics.predictions(logits, "score"))
    return float(np.mean(metrics.predictions(logits, "class") == labels))


def finding() -> str:
    """The made-up town: the mean of each system on the tasks that turn on words, and on those that
    turn on order.
    """
    scores = measured("town")["score"].groupby(level=["system", "task"]).mean()
    return grid(
        ("", *(", ".join(tasks.values()) for tasks in (WORDS, ORDER))),
        [
            (title, *(number(scores[system][list(tasks)].mean()) for tasks in (WORDS, ORDER)))
            for system, title in (CHANCE | SYSTEMS | BESIDE).items()
        ],
    )


def picture(run: str) -> str:
    """A group of points a task of Table 5, seeds and their mean; of the town, tasks on words first."""
    scores = measured(run)["score"]
    if run == "town":
        title, columns = "Made-up town", {task: f"{name}\nwords" for task, name in WORDS.items()}
        columns |= {task: f"{name}\norder" for task, name in ORDER.items()}
    else:
        there, title = set(scores.index.get_level_values("task")), "Real text and tasks"
        columns = {task: name for task, name in (WORDS | ORDER).items() if task in there}

    def drawn(system: str, task: str) -> DrawnScore:
        seeds = list(scores.loc[[(system, task)]])
        return DrawnScore(
            float(np.mean(seeds)), (), seeds, scores.loc[[("majority", task)]].iloc[0]
        )

    return svg(
        lambda: draw_scores(
            f"{title}: accuracy (STS-B: correlation) × 100, each seed and their mean",
            list(columns.values()),
            {title: [drawn(name, task) for task in columns] for name, title in SYSTEMS.items()},
        ),
        POINTS,
    )


if __name__ == "__main__":
    for run, path in PICTURES.items():
        path.write_text(picture(run), encoding="utf-8")
