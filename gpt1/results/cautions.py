"""Words of caution, each beside the numbers that it concerns."""

from collections.abc import Iterator

import pandas as pd

from gpt1.results.columns import FULL, averaged, columns_of
from gpt1.results.paper import GLUE, GLUE_SCORE, GLUE_TASKS, QNLI_V2_SCORE, TABLE5
from gpt1.results.predictions import MADE_UP
from gpt1.results.tables import BASELINES, TITLES, common_titles

ALL, GLUED = ("table2", "table3", "table4", "table5"), ("table4", "table5")
STANDARD_ERRORS = 2  # a score this near the majority class is no better
ABLATIONS = (*TABLE5.variants, "embeddings_only", "lstm_equal")
RELEASES = (("qnli v2", "qnli", "v1"), ("story cloze 2018", "story_cloze", "2016"))
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
    ("test", ALL, "On test, by the weights that scored best on dev: {}."),
    (
        "chance",
        ALL,
        f"No better than the majority class, within {STANDARD_ERRORS} standard errors of the examples: {{}}.",
    ),
    ("tfidf", ALL, "TF-IDF, which knows no order of words, scores higher than this run: {}."),
    ("one seed", ALL, "One seed, so no deviation: another may lie several points away."),
    ("fewer seeds", ALL, "Fewer seeds than other columns have: {}."),
    ("not run", ALL, "Not run, so no score: {}."),
    ("no labels", ALL, "No labels, so no score: {}."),
    (
        "qnli v2",
        ("table2", *GLUED),
        f"QNLI is version 2, drawn anew after the paper, whose model scores {QNLI_V2_SCORE} on it (Devlin et al. 2019), not 88.1.",
    ),
    (
        "story cloze 2018",
        ("table3",),
        "Story Cloze is the 2018 set, not the paper's of 2016: part of its validation stories is scored.",
    ),
    (
        "qqp",
        ("table4",),
        "QQP: F1 on dev compares with no F1 of the server, where fewer pairs are duplicates (dev 37 %, server 14 to 25 %); accuracy does, and stands in GLUE.",
    ),
    (
        "qqp",
        ("table5",),
        "QQP: ours is accuracy, the paper prints F1 (its full model's accuracy is 88.5), so averages compare with the paper's only roughly; differences of ours are not touched.",
    ),
    (
        "glue",
        ("table4",),
        f"GLUE: the mean over {{}}, in the paper's last row too; two metrics of a task averaged first, QQP by accuracy. Over all {len(GLUE_TASKS)} the paper's is {GLUE_SCORE}.",
    ),
    (
        "average",
        ("table5",),
        "Avg: the mean over {}, in the paper's rows too; the claims are over the same. MNLI: matched and mismatched. mc, pc: Matthews, Pearson; F1; else accuracy.",
    ),
)
FIGURE2 = (
    "Left: 0 layers are the embeddings alone, all layers the ordinary fine-tuning. The paper's ends are read off by eye, within 2 points.",
    "Right: (score - random) / (state of the art before the paper - random), the mean over pre-trainings; bands are one standard error of the examples.",
)
CLAIMS = (
    "Differences are of means over the same columns, seeds and examples. 95 % intervals: Student's t over pre-training seeds, and draws of clusters of examples.",
    "Verdicts: three claims, tested together at 5 % (Holm); against two LSTMs the larger p counts. The other differences have no verdict.",
)
CURVES = (
    "Of the first pre-training. Held out are whole books that training never reads; perplexity is e to the loss. The output layer is the token embeddings (tied).",
)


def cautions(scores: pd.DataFrame, name: str) -> list[str]:
    """What to know before reading a table."""
    mine = scores[scores["table"] == name]
    found = dict(_conditions(mine, name))
    return [
        words.format(found[key]) for key, where, words in CAUTIONS if name in where and key in found
    ]


def _conditions(mine: pd.DataFrame, name: str) -> Iterator[tuple[str, str]]:
    """Each condition that holds, and of which columns."""
    full = mine[(mine["system"] == FULL) & (mine["metric"] != "mean")]
    there = full[full["score"].notna()]
    for key, rows in (
        ("made up", there[there["source"] == MADE_UP]),
        ("dev", there[there["split"].str.startswith("dev")]),
        ("test", there[there["split"].str.startswith("test")]),
        ("no labels", full[full["n"] == 0]),
    ):
        if len(rows):
            yield key, ", ".join(rows["column"].unique())
    real = there[there["source"] != MADE_UP]
    source = dict(zip(real["task"], real["source"], strict=True))
    yield from [(key, "") for key, task, known in RELEASES if source.get(task, known) != known]
    if "qqp" in source:
        yield "qqp", ""
    yield from _beside_baselines(mine, name)
    seeds = there.groupby("column", sort=False)["seed"].nunique()
    if len(seeds) and seeds.max() == 1:
        yield "one seed", ""
    if fewer := [f"{title} {count}" for title, count in seeds.items() if count < seeds.max()]:
        yield "fewer seeds", ", ".join(fewer)
    ours = mine[~mine["system"].isin(BASELINES)]
    titles = dict.fromkeys(one.title for one in columns_of(name))
    absent = [title for title in titles if title not in set(ours["column"])]
    wanted = ABLATIONS if name == TABLE5.name else ()
    absent += [TITLES[one] for one in wanted if one not in set(ours["system"])]
    if absent:
        yield "not run", ", ".join(absent)
    glue = mine.loc[(mine["column"] == GLUE) & (mine["system"] == FULL), "task"]
    if len(glue):
        yield "glue", glue.iloc[0].replace(" ", ", ")
    if name == TABLE5.name:
        common = common_titles(mine[mine["score"].notna()])
        yield "average", f"{len(common)} columns ({', '.join(common)})"


def _beside_baselines(mine: pd.DataFrame, name: str) -> Iterator[tuple[str, str]]:
    """Which systems are no better than the majority class, and where TF-IDF is above this run."""
    columns = averaged() if name == TABLE5.name else columns_of(name)
    headers = {(one.title, one.metric): one.header(name) for one in columns}
    by = mine[mine["score"].notna()].groupby(["column", "metric", "system"])[["score", "error"]]
    score, error = (by.mean()[one].unstack().reindex(list(headers)) for one in ("score", "error"))
    low = []
    for system in score.columns.difference(BASELINES) if "majority" in score else ():
        below = score[system] <= score["majority"] + STANDARD_ERRORS * error[system]
        if below.any():
            words = ", ".join(headers[key] for key in score.index[below])
            low.append(f"{TITLES.get(system, system)} ({words})")
    if low:
        yield "chance", "; ".join(low)
    if {FULL, "tfidf"} <= {*score.columns} and (above := score[FULL] < score["tfidf"]).any():
        yield "tfidf", ", ".join(headers[key] for key in score.index[above])
