"""The intervals of Tables 2 to 5 recomputed from labels, clusters and logits with scikit-learn and
scipy alone: each cluster left out in turn, and the crossed variance by its formulas.
"""

from pathlib import Path

import made_results
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from gpt1.params.schema import read_params
from gpt1.results.ablations import ablation
from gpt1.results.formats import ends
from gpt1.results.glue import glue_cells, our_glue_mean
from gpt1.results.scores import table_cells
from gpt1.results.statistics.estimates import estimate
from gpt1.results.statistics.jackknife import JackknifeScores

SEEDS, ROWS, CLUSTER = (0, 1, 2), 60, 3
METRICS = {
    "accuracy": accuracy_score,
    "f1": f1_score,
    "matthews": matthews_corrcoef,
    "pearson": lambda labels, answers: stats.pearsonr(labels, answers).statistic,
    "spearman": lambda labels, answers: stats.spearmanr(labels, answers).statistic,
}
TASKS = ("cola", "mrpc", "stsb", "mnli", "rte")
SKILLS = {"full": 1.8, "no_pretraining": 0.7, "lstm": 1.2}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_lstms()
    variants = tuple(name for name in SKILLS if name != "full")
    made_results.write_params(
        list(TASKS), list(SEEDS), ablate=made_results.ablate_rows(variants, TASKS)
    )
    made_results.write_drawn(TASKS, SKILLS, SEEDS, ROWS, CLUSTER)


def scores_and_shares(system, task, metric, split="dev"):
    """Scores x 100 by seed [s], and each cluster's share in their error [s, c]."""
    encoded = Path("data/encode", made_results.group(task), task)
    labels, clusters = (np.load(encoded / f"{name}.npz") for name in (split, "clusters"))
    labels, clusters = labels["labels"], clusters[split]
    folder = (
        Path("data/finetune", made_results.group(task), task)
        if system == "full"
        else Path(f"data/ablate/{system}-{task}")
    )
    scores, shares = [], []
    for seed in SEEDS:
        logits = np.load(folder / f"seed-{seed}" / "logits.npz")[f"{split}/last"].astype(float)
        answers = softmax(logits, axis=1) @ np.arange(6) if task == "stsb" else logits.argmax(1)
        scores.append(100 * METRICS[metric](labels, answers))
        without = np.array(
            [
                100 * METRICS[metric](labels[clusters != one], answers[clusters != one])
                for one in np.unique(clusters)
            ]
        )
        shares.append(np.sqrt(1 - 1 / len(without)) * (without.mean() - without))
    return np.array(scores), np.array(shares)


def mnli(system):
    halves = [
        scores_and_shares(system, "mnli", "accuracy", split) for split in ("dev", "dev_mismatched")
    ]
    return np.mean([scores for scores, _ in halves], axis=0), np.hstack(
        [one / 2 for _, one in halves]
    )


def by_hand(tasks, others=()):
    """The 95 % interval of the mean over tasks, each (scores [s], shares [s, c])."""
    many = len(tasks)
    means = np.mean([scores for scores, _ in tasks], axis=0)
    own, spread = means.var(ddof=1), [scores.var(ddof=1) for scores, _ in (*tasks, *others)]
    pooled = np.mean(spread) / many
    variance, freedom = own, 2
    if own <= 1.5 * pooled:
        variance = pooled
        freedom = np.clip(sum(spread) ** 2 / sum(one**2 / 4 for one in spread) - 2, 2, 4)
    drawn = np.array([sum((one.mean(axis=0) / many) ** 2) for _, one in tasks])
    apart = sum((one / many).var(axis=0, ddof=1).sum() for _, one in tasks) / 3
    below = [one.shape[1] - 1 for _, one in tasks]
    welch = drawn.sum() ** 2 / sum(drawn**2 / (np.array(below) + 2)) - 2
    examples = max(drawn.sum() - apart, 0)
    margin = np.sqrt(
        stats.t.ppf(0.975, freedom) ** 2 * variance / 3
        + stats.t.ppf(0.975, np.clip(welch, min(below), sum(below))) ** 2 * examples
    )
    return pytest.approx((means.mean() - margin, means.mean() + margin))


def less(one, other):
    return one[0] - other[0], one[1] - other[1]


def column(system, title):
    metrics = {"CoLA": "matthews", "MRPC": "f1", "STS-B": "pearson", "RTE": "accuracy"}
    if title == "MNLI":
        return mnli(system)
    return scores_and_shares(system, title.lower().replace("-", ""), metrics[title])


def test_a_column_s_interval_is_of_its_own_seeds_and_clusters():
    params = read_params()
    cells = [*table_cells(params, "table2"), *table_cells(params, "table4")]
    there = [cell for cell in cells if cell.measured]
    assert len(there) == 8
    for cell in there:
        split = "dev_mismatched" if cell.title == "MNLI-mm" else "dev"
        expected = by_hand([scores_and_shares("full", cell.task, cell.metric, split)])
        assert cell.estimate.interval() == expected, (cell.title, cell.metric)


def test_the_mean_over_glue_s_tasks_takes_both_metrics_of_a_task_on_the_same_examples():
    tasks = [scores_and_shares("full", "cola", "matthews"), mnli("full")]
    tasks.append(scores_and_shares("full", "rte", "accuracy"))
    for task, metrics in (("mrpc", ("f1", "accuracy")), ("stsb", ("pearson", "spearman"))):
        both = [scores_and_shares("full", task, metric) for metric in metrics]
        tasks.append(tuple(np.mean(part, axis=0) for part in zip(*both, strict=True)))
    glue = our_glue_mean(glue_cells(read_params()))
    assert glue.estimate.interval() == by_hand(tasks)


@pytest.mark.slow
def test_what_the_whole_model_has_over_a_variant_is_paired_and_lent_the_seeds_of_other_columns():
    table = ablation(read_params())
    titles = ("CoLA", "MRPC", "STS-B", "MNLI", "RTE")
    for system in SKILLS:
        assert table.average(system).interval() == by_hand([column(system, one) for one in titles])
        assert table.results[system, "MNLI"].estimate.interval() == by_hand([mnli(system)])
    for variant, other in (
        ("lstm", "full"),
        ("no_pretraining", "full"),
        ("lstm", "no_pretraining"),
    ):
        losses = {title: less(column(other, title), column(variant, title)) for title in titles}
        for wanted in (["CoLA"], ["MNLI", "RTE"], list(titles)):
            lent = [loss for title, loss in losses.items() if title not in wanted]
            expected = by_hand([losses[title] for title in wanted], lent)
            found = table.mean_difference(variant, wanted, less_than=other)
            assert found.interval() == expected, (variant, wanted)
    assert table.mean_difference("lstm", ["QQP"]) is None


@pytest.mark.parametrize(
    ("metric", "lowest"),
    [("accuracy", 0), ("f1", 0), ("matthews", -100), ("pearson", -100), ("spearman", -100)],
)
def test_no_interval_leaves_the_range_of_its_metric(metric, lowest):
    far_apart = JackknifeScores(np.array([10.0, 95.0, 50.0]), np.zeros((3, 20)))
    free = estimate([far_apart])
    low, high = free.interval()
    assert low < 0 < 100 < high
    assert ends(free, metric) == (max(lowest, low), 100)
    assert ends(free) == (low, high), "a difference can be anything"
