"""Words of caution, each beside the numbers that it concerns."""

import pandas as pd

from gpt1.results.columns import FULL, columns_of
from gpt1.results.paper import GLUE
from gpt1.results.predictions import MADE_UP
from gpt1.results.tables import BASELINES, TITLES, common_titles

ALL, GLUED = ("table2", "table3", "table4", "table5"), ("table4", "table5")
STANDARD_ERRORS = 2  # a score this near the majority class is no better
CAUTIONS = (  # condition, where it is said, words
    (
        "made up",
        ALL,
        "Made-up tasks in the official file formats, so no score compares with the paper's: {}.",
    ),
    (
        "dev",
        ALL,
        "On dev at the last update, chosen on nothing, for test labels are not public (the paper's are by the GLUE server: they compare only roughly): {}.",
    ),
    (
        "chance",
        ALL,
        f"No better than the majority class, within {STANDARD_ERRORS} standard errors of the examples: {{}}.",
    ),
    ("one seed", ALL, "One seed, so no deviation: another may lie several points away."),
    ("fewer seeds", ALL, "Fewer seeds than other columns have: {}."),
    ("not run", ALL, "Not run, so no score: {}."),
    ("no labels", ALL, "No labels, so no score: {}."),
    (
        "qnli v2",
        ("table2", *GLUED),
        "QNLI is version 2, drawn anew after the paper, whose model scores 87.4 on it (Devlin et al. 2019), not 88.1.",
    ),
    (
        "story cloze 2018",
        ("table3",),
        "Story Cloze is the 2018 set, not the paper's of 2016: part of its validation stories is scored.",
    ),
    (
        "release",
        ALL,
        "Of a release that is not recognised by its rows, so it may be another than the paper's: {}.",
    ),
    (
        "qqp",
        ("table4",),
        "QQP: F1 on dev compares with no F1 of the server, where fewer pairs are duplicates (dev 37 %, server 14 to 25 %); accuracy does, and stands in GLUE.",
    ),
    (
        "qqp f1",
        ("table5",),
        "QQP: ours is accuracy, the paper prints F1 (its full model's accuracy is 88.5), so averages compare with the paper's only roughly; differences of ours are not touched.",
    ),
    (
        "glue",
        ("table4",),
        "GLUE: the mean over {}, in the paper's last row too; two metrics of a task averaged first, QQP by accuracy. Over all nine the paper's is 72.8.",
    ),
    (
        "average",
        ("table5",),
        "Avg: the mean over these columns: {}; in the paper's rows too; the claims are over the same. MNLI: matched and mismatched. mc, pc: Matthews, Pearson; F1; else accuracy.",
    ),
)
FIGURE2 = {
    "Figure 2, left: layers transferred": "Left: 0 layers are the embeddings alone, all layers the ordinary fine-tuning. The paper's ends are read off by eye, within 2 points.",
    "Figure 2, right: zero-shot, relative performance": "Right: (score - random) / (state of the art before the paper - random), the mean over pre-trainings; bands are one standard error of the examples.",
}
CLAIMS = (
    "Differences are of means over the same columns, seeds and examples. 95 % intervals: Student's t over pre-training seeds, and draws of clusters of examples.",
    "Verdicts: three claims, tested together at 5 % (Holm); against two LSTMs the larger p counts. The other differences have no verdict.",
)
CURVES = (
    "Of the first pre-training. Held out are whole books that training never reads; perplexity is e to the loss. The output layer is the token embeddings (tied).",
)


def cautions(scores: pd.DataFrame, name: str) -> list[str]:
    """Notes that a reader needs before reading a table."""
    concerned = _concerned(scores[scores["table"] == name], name)
    return [
        words.format(", ".join(concerned[key]))
        for key, where, words in CAUTIONS
        if name in where and concerned[key]
    ]


def _concerned(table_scores: pd.DataFrame, name: str) -> dict[str, list[str]]:
    """Return, for each condition, the columns of a table for which it holds."""
    full = table_scores[(table_scores["system"] == FULL) & (table_scores["metric"] != "mean")]
    scored = full.dropna(subset="score")
    seeds = scored.groupby("column", sort=False)["seed"].nunique()
    ours = table_scores[~table_scores["system"].isin(BASELINES)]
    every = dict.fromkeys(column.title for column in columns_of(name))
    absent = [title for title in every if title not in set(ours["column"])]
    if name == "table5":
        absent += [
            TITLES[system] for system in TITLES if system not in {*ours["system"], *BASELINES, FULL}
        ]
    real = scored[scored["source"] != MADE_UP]

    def columns(rows: pd.DataFrame) -> list[str]:
        return list(rows["column"].unique())

    return {
        "made up": columns(scored[scored["source"] == MADE_UP]),
        "dev": columns(scored[scored["split"].str.startswith("dev")]),
        "chance": _near_majority(table_scores),
        "one seed": columns(scored) if seeds.max() == 1 else [],
        "fewer seeds": [
            f"{title} {count}" for title, count in seeds.items() if count < seeds.max()
        ],
        "not run": absent,
        "no labels": columns(full[full["n"] == 0]),
        "qnli v2": columns(real[(real["task"] == "qnli") & (real["source"] == "v2")]),
        "story cloze 2018": columns(
            real[(real["task"] == "story_cloze") & (real["source"] == "2018")]
        ),
        "release": columns(real[real["source"] == "not recognised"]),
        "qqp": columns(real[real["task"] == "qqp"]),
        "qqp f1": columns(scored[scored["task"] == "qqp"]),
        "glue": " ".join(
            table_scores.loc[
                (table_scores["column"] == GLUE) & (table_scores["system"] == FULL), "task"
            ].head(1)
        ).split(),
        "average": common_titles(table_scores.dropna(subset="score")),
    }


def _near_majority(table_scores: pd.DataFrame) -> list[str]:
    """Return the columns in which this run is no better than the majority class by any metric."""
    grouped = table_scores.groupby(["column", "metric", "system"], sort=False)[
        ["score", "error"]
    ].mean()
    means = grouped.unstack("system").reindex(
        columns=[("score", FULL), ("error", FULL), ("score", "majority")]
    )
    score, error, majority = (column for _, column in means.items())
    low = (score <= majority + STANDARD_ERRORS * error).groupby(level="column", sort=False).all()
    return list(low.index[low])
