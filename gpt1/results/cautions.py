"""Words of caution, each beside the numbers that it concerns."""

import pandas as pd

from gpt1.results.paper import GLUE
from gpt1.results.predictions import MADE_UP
from gpt1.results.tables import BASELINES, FULL, TITLES, columns_of, common_titles

STANDARD_ERRORS = 2  # a score this near the constant label is no better
FIGURE2 = {
    "Figure 2, left: layers transferred": "Left: 0 layers are the embeddings alone, all layers the ordinary fine-tuning. The paper's ends are read off by eye, within 2 points.",
    "Figure 2, right: zero-shot, relative performance": "Right: (score - random) / (state of the art before the paper - random), the mean over pre-trainings; bands are one standard error of the examples.",
}
CLAIMS = (
    "Differences are of means over the same columns, seeds and examples. 95 % intervals: Student's t over pre-training seeds, and resampled clusters of examples.",
    "Verdicts: three claims, tested together at 5 %, with p adjusted by Holm's method; against two LSTMs the larger p counts. The other differences have no verdict.",
)
CURVES = (
    "Of the first pre-training. Held out are whole books that training never reads; perplexity is e to the loss. The output layer is the token embeddings (tied).",
)


def cautions(scores: pd.DataFrame, name: str) -> list[str]:
    """Return the notes to read before a table."""
    table_scores = scores[scores["table"] == name]
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
    glue = table_scores[(table_scores["column"] == GLUE) & (table_scores["system"] == FULL)]
    real = scored[scored["source"] != MADE_UP]

    def columns(rows: pd.DataFrame) -> list[str]:
        return list(rows["column"].unique())

    concerned = (  # the columns that a note is of, and the note
        (
            columns(scored[scored["source"] == MADE_UP]),
            "Made-up tasks in the official file formats, so no score compares with the paper's: {}.",
        ),
        (
            columns(scored[scored["split"].str.startswith("dev")]),
            "Dev scores after the last update, for test labels are not public (the paper's are the GLUE server's, so they compare only roughly): {}.",
        ),
        (
            _near_majority(table_scores),
            f"No better than the constant label, within {STANDARD_ERRORS} standard errors of the examples: {{}}.",
        ),
        (
            columns(scored) if seeds.max() == 1 else [],
            "One seed, so no deviation: another may lie several points away.",
        ),
        (
            [f"{title} {count}" for title, count in seeds.items() if count < seeds.max()],
            "Fewer seeds than other columns have: {}.",
        ),
        (absent, "Not run, so no score: {}."),
        (columns(full[full["n"] == 0]), "No labels, so no score: {}."),
        (
            columns(real[(real["task"] == "qnli") & (real["source"] == "v2")]),
            "QNLI is version 2, made anew after the paper, whose model scores 87.4 on it (Devlin et al. 2019), not 88.1.",
        ),
        (
            columns(real[(real["task"] == "story_cloze") & (real["source"] == "2018")]),
            "Story Cloze is the 2018 set, not the paper's of 2016: part of its validation stories is scored.",
        ),
        (
            columns(real[real["source"] == "not recognised"]),
            "Of a release that is not recognised by its rows, so it may be another than the paper's: {}.",
        ),
        (
            columns(real[real["task"] == "qqp"]) if name == "table4" else [],
            "QQP: F1 on dev compares with no F1 of the server, where fewer pairs are duplicates (dev 37 %, server 14 to 25 %); accuracy does, and stands in GLUE.",
        ),
        (
            columns(scored[scored["task"] == "qqp"]) if name == "table5" else [],
            "QQP: ours is accuracy, the paper prints F1 (its full model's accuracy is 88.5), so averages compare with the paper's only roughly. Differences between our systems do not depend on it.",
        ),
        (
            " ".join(glue["task"].head(1)).split(),
            "GLUE: the mean over {}, in the paper's last row too; two metrics of a task averaged first, QQP by accuracy. Over all nine the paper's is 72.8.",
        ),
        (
            common_titles(table_scores.dropna(subset="score")) if name == "table5" else [],
            "Avg: the mean over these columns: {}; in the paper's rows too; the claims are over the same. MNLI: matched and mismatched. mc: Matthews; pc: Pearson; F1; else accuracy.",
        ),
    )
    return [note.format(", ".join(titles)) for titles, note in concerned if titles]


def _near_majority(table_scores: pd.DataFrame) -> list[str]:
    """Return the columns in which some metric is not above the constant label."""
    grouped = table_scores.groupby(["column", "metric", "system"], sort=False)[
        ["score", "error"]
    ].mean()
    means = grouped.unstack("system").reindex(
        columns=[("score", FULL), ("error", FULL), ("score", "majority")]
    )
    score, error, majority = (column for _, column in means.items())
    low = (score <= majority + STANDARD_ERRORS * error).groupby(level="column", sort=False).any()
    return list(low.index[low])
