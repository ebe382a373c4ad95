"""Linear models over features, and which of several is taken: the best on dev."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from gpt1.tasks.baselines.inputs import DecodedRows
from gpt1.tasks.metrics import predictions, score

Logits = npt.NDArray[np.float32]
ITERATIONS = 300
LOWEST = -60.0  # of a logit: a probability of nothing
DEV = "dev"


class Candidate(NamedTuple):
    """A setting, and its logits [n, outputs] of each split but train."""

    settings: dict[str, float]
    logits: dict[str, Logits]


def constant(about: Mapping[str, Any], train: DecodedRows, rows: int) -> Logits:
    """The same answer to every row: the commonest class of train, the mean score, or, where F1 is
    the metric, class 1, as the best constant answer is.
    """
    if about["target"] == "score":
        return scores_as_logits(np.full(rows, train.labels.mean()), about["outputs"])
    counts = np.bincount(train.labels.astype(np.int64), minlength=about["outputs"])
    if about["metric"] == "f1":
        counts = np.array([0, 1])
    logits = np.log(np.maximum(counts / counts.sum(), np.exp(LOWEST)))
    return np.tile(logits.astype(np.float32), (rows, 1))


def fit(about: Mapping[str, Any], train: DecodedRows, features: Any, penalty: float) -> Any:
    """Ridge regression of scores, or logistic regression of classes; of choices of right (1)
    against wrong (0). penalty: of the squared weights.
    """
    if about["target"] == "score":
        return Ridge(alpha=penalty).fit(features, train.labels)
    labels = train.labels
    if about["combine"] == "choose":
        labels = (labels[:, None] == np.arange(about["outputs"])).astype(np.int64).ravel()
    one_class = len(np.unique(labels)) == 1
    model = LogisticRegression(C=1 / penalty, max_iter=ITERATIONS)
    return (DummyClassifier() if one_class else model).fit(features, labels)


def logits_of(about: Mapping[str, Any], model: Any, features: Any) -> Logits:
    """The model's logits [n, outputs] for features [n, f], or of choices [n * outputs, f]."""
    if about["target"] == "score":
        return scores_as_logits(model.predict(features), about["outputs"])
    with np.errstate(divide="ignore"):
        log_probabilities = np.maximum(model.predict_log_proba(features), LOWEST).astype(np.float32)
    if about["combine"] == "choose":
        return np.reshape(log_probabilities[:, 1] - log_probabilities[:, 0], (-1, about["outputs"]))
    logits = np.full((len(log_probabilities), about["outputs"]), LOWEST, dtype=np.float32)
    logits[:, model.classes_] = log_probabilities
    return logits


def scores_as_logits(scores: npt.NDArray[np.floating], outputs: int) -> Logits:
    """Logits [n, outputs] whose expected value over 0, 1, … is the score, cut to that range: all
    weight on its two neighbours (Tai et al. 2015).
    """
    apart = np.abs(np.clip(scores, 0, outputs - 1)[:, None] - np.arange(outputs))
    return np.asarray(np.log(np.maximum(1 - apart, np.exp(LOWEST))), dtype=np.float32)


def chosen(
    about: Mapping[str, Any], candidates: Sequence[Candidate], splits: Mapping[str, DecodedRows]
) -> tuple[Candidate, dict[str, Logits]]:
    """The candidate that is best on dev, and logits of each split by names that a fine-tuning has:
    `best`, of that candidate; `last`, of what the split's own rows did not select.

    So dev/last answers each half of dev's clusters by what is best on the other half.
    """
    dev = splits[DEV]
    taken = best(about, candidates, dev, np.arange(len(dev.labels)))
    chosen_logits = {
        f"{split}/{weights}": logits.copy()
        for split, logits in taken.logits.items()
        for weights in ("best", "last")
    }
    halves = [np.flatnonzero(dev.clusters % 2 == half) for half in (0, 1)]
    for rows, others in (halves, halves[::-1]) if all(map(len, halves)) else ():
        chosen_logits[f"{DEV}/last"][rows] = best(about, candidates, dev, others).logits[DEV][rows]
    return taken, chosen_logits


def scores(
    about: Mapping[str, Any], logits: Mapping[str, Logits], splits: Mapping[str, DecodedRows]
) -> dict[str, float]:
    """The task's metric (0..1, correlations -1..1) of logits by `split/weights`."""
    return {
        name: score(
            about["metric"],
            splits[name.split("/")[0]].labels,
            predictions(split_logits, about["target"]),
        )
        for name, split_logits in logits.items()
    }


def best(
    about: Mapping[str, Any],
    candidates: Sequence[Candidate],
    dev: DecodedRows,
    rows: npt.NDArray[np.intp],
) -> Candidate:
    """The candidate with the best score on some rows of dev; of equals the one that finds their
    labels likeliest, then the first.
    """
    labels = dev.labels[rows]

    def key(candidate: Candidate) -> tuple[float, float]:
        logits = candidate.logits[DEV][rows]
        value = score(about["metric"], labels, predictions(logits, about["target"]))
        if about["target"] == "score":
            return value, 0.0
        likely = log_softmax(logits.astype(np.float64), axis=1)
        return value, float(likely[np.arange(len(rows)), labels].mean())

    return max(candidates, key=key)
