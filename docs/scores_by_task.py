"""What embeddings carry and what the layers add: a picture of each run that ships. `python
docs/scores_by_task.py` draws them anew.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import gpt1.results
from gpt1.results.plotting import BLUE, GREY, ORANGE, panels, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent
PICTURES = {"town": FOLDER / "made_up_town.svg", "small": FOLDER / "real_text.svg"}
WORDS, ORDER = ("SST-2", "MNLI", "QQP", "STS-B"), ("QNLI", "RTE", "MRPC", "CoLA")
SYSTEMS = {
    "embeddings_only": ("the Transformer's embeddings alone", ORANGE),
    "no_pretraining": ("no pre-training", GREY),
    "full": ("all layers", BLUE),
}


def measured(run: str) -> pd.Series:
    """Accuracy x 100 by seed, STS-B's and CoLA's correlation: by system and column of Table 5."""
    scores, _ = gpt1.results.load(f"reference/{run}")
    mine = scores[(scores["table"] == "table5") & scores["score"].notna()]
    scored = mine["metric"].isin(["accuracy", "pearson", "matthews"])
    return mine[scored].set_index(["system", "column"])["score"].sort_index()


def picture(run: str) -> str:
    """A group of points a task of Table 5, seeds and their mean; tasks on words first."""
    return svg(lambda: _drawn(run))


def _drawn(run: str) -> "Figure":
    scores = measured(run)
    available = scores.index.get_level_values("column")
    columns = [column for column in (*WORDS, *ORDER) if column in available]
    figure, [axes] = panels(1, 1, (7.2, 2.8))
    for place, (system, (title, colour)) in enumerate(SYSTEMS.items()):
        for at, column in enumerate(columns):
            seeds = scores.loc[[(system, column)]].to_numpy(float)
            x = at + 0.22 * (place - 1)
            axes.plot([x] * len(seeds), seeds, "o", color=colour, markersize=2.5)
            axes.plot(
                x, seeds.mean(), "_", color=colour, markersize=13, label=None if at else title
            )
    axes.set_xticks(range(len(columns)), columns)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="score × 100", ylim=(min(0, scores.min()), 103))
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    for run, path in PICTURES.items():
        path.write_text(picture(run), encoding="utf-8")
