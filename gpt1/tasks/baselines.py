"""Baselines on the same rows: a constant answer, and TF-IDF tuned on dev."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from scipy.special import log_softmax
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from gpt1.base.files import read_arrays
from gpt1.corpus.bpe import UNKNOWN, Vocabulary
from gpt1.params.schema import Baselines
from gpt1.tasks.metrics import answers_of, score
from gpt1.tasks.rows import CLUSTERS

TRAIN, DEV = "train", "dev"
LONGEST_RUN = 2  # words that TF-IDF counts together
ITERATIONS = 300
LOWEST = -60.0  # of a logit: a probability of nothing
Logits = npt.NDArray[np.float32]
Parts = Sequence[Sequence[str]]  # texts as words joined by blanks: those of each part in order


class DecodedRows(NamedTuple):
    """The rows of one split."""

    # texts; of a pair the first, then the second texts; of choices the contexts, then all choices
    parts: tuple[list[str], ...]
    labels: npt.NDArray[Any]
    clusters: npt.NDArray[np.int64]  # equal for rows that belong together


class Candidate(NamedTuple):
    """A setting, and its logits [n, outputs] by split."""

    settings: dict[str, float]
    logits: dict[str, Logits]


def read_rows(
    folder: Path, split: str, about: dict[str, Any], vocabulary: Vocabulary
) -> DecodedRows:
    """Read a split that stage encode wrote; about: its task.json."""
    arrays = read_arrays(folder / f"{split}.npz", ("tokens", "offsets", "labels"))
    clusters = read_arrays(folder / CLUSTERS, (split,))[split]
    tokens, offsets, each = arrays["tokens"], arrays["offsets"].tolist(), about["sequences"]
    step = each if about["combine"] == "sum" else 1  # the other order says the same again
    parts: tuple[list[str], ...] = ([], [])
    for number in range(0, len(offsets) - 1, step):
        sequence = tokens[offsets[number] + 1 : offsets[number + 1] - 1]  # start, extract
        [*cut] = np.flatnonzero(sequence == vocabulary.delimiter)[:1]
        first, second = np.split(sequence, cut) if cut else (sequence, None)
        if about["combine"] != "choose" or number % each == 0:
            parts[0].append(words_of(vocabulary, first))
        if second is not None:
            parts[1].append(words_of(vocabulary, second[1:]))
    return DecodedRows(tuple(filter(None, parts)), arrays["labels"], clusters)


def words_of(vocabulary: Vocabulary, ids: npt.NDArray[Any]) -> str:
    """Return words joined by blanks; an unknown piece separates words."""
    return " ".join(vocabulary.decode(ids.tolist()).replace(UNKNOWN, " ").split())


def candidates(
    system: str, about: Mapping[str, Any], splits: Mapping[str, DecodedRows], section: Baselines
) -> Iterator[Candidate]:
    """Yield every candidate of a system, the most penalised first. splits: train, and all to
    answer.
    """
    train, others = splits[TRAIN], {name: rows for name, rows in splits.items() if name != TRAIN}
    if system == "majority":
        answers = {name: constant(about, train, len(rows.labels)) for name, rows in others.items()}
        yield Candidate({}, answers)
        return
    vectorizer = tfidf(train.parts, section.words)
    features = {name: tfidf_features(vectorizer, rows.parts) for name, rows in splits.items()}
    for penalty in sorted(section.penalties, reverse=True):
        model = fit(about, train, features[TRAIN], penalty)
        answers = {name: logits_of(about, model, features[name]) for name in others}
        yield Candidate({"penalty": penalty}, answers)


def tfidf(parts: Parts, most: int) -> Any:
    """Fit TF-IDF on the `most` most frequent words and pairs of neighbours."""
    vectorizer = TfidfVectorizer(
        lowercase=False,
        token_pattern=r"[^ ]+",
        ngram_range=(1, LONGEST_RUN),
        max_features=most,
        sublinear_tf=True,
        dtype=np.float32,
    )
    return vectorizer.fit([text for texts in parts for text in texts])


def tfidf_features(vectorizer: Any, parts: Parts) -> csr_matrix:
    """Return weights [n, features] of a text; of a pair also product, absolute difference and
    cosine.
    """
    first, *more = (vectorizer.transform(texts) for texts in parts)
    if not more:
        return first
    second = repeat_rows(more[0], first)
    first = repeat_rows(first, second)
    product = first.multiply(second)
    return hstack([first, second, product, abs(first - second), product.sum(axis=1)], format="csr")


def repeat_rows(rows: Any, others: Any) -> Any:
    """Repeat each of n rows k times, where `others` has k * n."""
    return rows[np.repeat(np.arange(rows.shape[0]), max(1, others.shape[0] // rows.shape[0]))]


def constant(about: Mapping[str, Any], train: DecodedRows, rows: int) -> Logits:
    """Answer with train's commonest class or mean score, or with class 1 where F1 is the metric."""
    if about["target"] == "score":
        return scores_as_logits(np.full(rows, train.labels.mean()), about["outputs"])
    counts = np.bincount(train.labels.astype(np.int64), minlength=about["outputs"])
    if about["metric"] == "f1":
        counts = np.array([0, 1])
    logits = np.log(np.maximum(counts / counts.sum(), np.exp(LOWEST)))
    return np.tile(logits.astype(np.float32), (rows, 1))


def fit(about: Mapping[str, Any], train: DecodedRows, features: Any, penalty: float) -> Any:
    """Fit ridge regression of scores, or logistic regression of classes or right choices."""
    if about["target"] == "score":
        return Ridge(alpha=penalty).fit(features, train.labels)
    labels = train.labels
    if about["combine"] == "choose":
        labels = (labels[:, None] == np.arange(about["outputs"])).astype(np.int64).ravel()
    one_class = len(np.unique(labels)) == 1
    model = LogisticRegression(C=1 / penalty, max_iter=ITERATIONS)
    return (DummyClassifier() if one_class else model).fit(features, labels)


def logits_of(about: Mapping[str, Any], model: Any, features: Any) -> Logits:
    """Return logits [n, outputs] for features [n, f], or of choices [n * outputs, f]."""
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
    """Return logits [n, outputs] whose expected value over 0, 1, … is the score, clipped (Tai et
    al. 2015).
    """
    apart = np.abs(np.clip(scores, 0, outputs - 1)[:, None] - np.arange(outputs))
    return np.asarray(np.log(np.maximum(1 - apart, np.exp(LOWEST))), dtype=np.float32)


def chosen(
    about: Mapping[str, Any], candidates: Sequence[Candidate], splits: Mapping[str, DecodedRows]
) -> tuple[Candidate, dict[str, Logits]]:
    """Return the candidate that is best on dev, and logits named like a fine-tuning's. Under
    dev/`last` each half of the clusters has the candidate that is best on the other half.
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


def best(
    about: Mapping[str, Any],
    candidates: Sequence[Candidate],
    dev: DecodedRows,
    rows: npt.NDArray[np.intp],
) -> Candidate:
    """Return the candidate that is best on some rows of dev; of equals the one with likelier
    labels.
    """
    labels = dev.labels[rows]

    def key(candidate: Candidate) -> tuple[float, float]:
        logits = candidate.logits[DEV][rows]
        value = score(about["metric"], labels, answers_of(logits, about["target"]))
        if about["target"] == "score":
            return value, 0.0
        likely = log_softmax(logits.astype(np.float64), axis=1)
        return value, float(likely[np.arange(len(rows)), labels].mean())

    return max(candidates, key=key)


def scores(
    about: Mapping[str, Any], logits: Mapping[str, Logits], splits: Mapping[str, DecodedRows]
) -> dict[str, float]:
    """Score logits by `split/weights` (0..1, correlations -1..1)."""
    return {
        name: score(
            about["metric"],
            splits[name.split("/")[0]].labels,
            answers_of(split_logits, about["target"]),
        )
        for name, split_logits in logits.items()
    }
