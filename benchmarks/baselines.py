"""Floors beside every score: the best constant answer, and TF-IDF with logistic or ridge
regression, three times.

It sees single words; words and pairs of words; or those of the last text alone (hypothesis, answer,
choice), which should say nothing.

Trained on the train rows that `encode` takes, scored on the rows and with the metric of the tables.
Texts of a pair have features of their own each. Choices are scored one by one from their own words
alone: what all choices share cannot change a linear ranking.

    python benchmarks/baselines.py [TASK ...]        after the acquire stages
"""

import sys
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from gpt1.base.errors import UserError, run_stage
from gpt1.base.files import stage_folder
from gpt1.params.schema import Params, read_params
from gpt1.tasks.metrics import majority_score, score
from gpt1.tasks.readers import SplitRows, read_split, splits_to_read
from gpt1.tasks.rows import Example
from gpt1.tasks.table import TASKS, Task, scored_split

ITERATIONS = 1000


class View(NamedTuple):
    """What a linear model sees: words up to `most` in a row, of all texts or of the last alone."""

    most: int
    last_alone: bool


VIEWS = {
    "words": View(1, last_alone=False),
    "words and pairs": View(2, last_alone=False),
    "last text alone": View(2, last_alone=True),
}


def parts(view: View, examples: list[Example]) -> list[list[str]]:
    """Texts by place: one list of texts for each part; for choices one part, the choices of all
    examples one after another.
    """
    if examples[0].choices:
        return [[choice for example in examples for choice in example.choices]]
    texts = [list(texts) for texts in zip(*(example.context for example in examples), strict=True)]
    return texts[-1:] if view.last_alone else texts


def targets(examples: list[Example]) -> np.ndarray:
    """Labels; for choices a 1 at each right choice and a 0 at the others."""
    if examples[0].choices:
        return np.array(
            [
                number == example.label
                for example in examples
                for number in range(len(example.choices))
            ],
            dtype=np.int64,
        )
    return np.array([example.label for example in examples])


def fit(task: Task, view: View, train: list[Example]) -> tuple[list[TfidfVectorizer], Any]:
    """Vectorizers, one a part, and the model over their features side by side."""
    vectorizers = [
        TfidfVectorizer(ngram_range=(1, view.most), sublinear_tf=True) for _ in parts(view, train)
    ]
    features = hstack(
        [
            vectorizer.fit_transform(texts)
            for vectorizer, texts in zip(vectorizers, parts(view, train), strict=True)
        ]
    )
    model = Ridge() if task.target == "score" else LogisticRegression(max_iter=ITERATIONS)
    return vectorizers, model.fit(csr_matrix(features), targets(train))


def predict(
    view: View, vectorizers: list[TfidfVectorizer], model: Any, examples: list[Example]
) -> np.ndarray:
    """An answer for each example."""
    texts = parts(view, examples)
    features = csr_matrix(
        hstack(
            [
                vectorizer.transform(part)
                for vectorizer, part in zip(vectorizers, texts, strict=True)
            ]
        )
    )
    if examples[0].choices:
        return np.argmax(model.decision_function(features).reshape(len(examples), -1), axis=1)
    return np.asarray(model.predict(features))


def table_rows(task: Task, params: Params) -> list[str]:
    """The markdown rows of one task: one for each of its columns in the tables."""
    folder, row = stage_folder("acquire", "tasks", task.name), params.tasks[task.name]
    wanted = {split.name: split for split in splits_to_read(task, folder, row)}
    labelled = {
        name: {"labelled": split.format.label is not None} for name, split in wanted.items()
    }

    def rows_of(name: str) -> SplitRows:
        return read_split(task, wanted[name], folder, row, params.encode.max_unreadable_fraction)

    train = rows_of("train").examples
    fitted = {view: fit(task, view, train) for view in VIEWS.values()}
    lines = []
    for column in task.columns:
        name = scored_split(column, labelled)
        subset = task.subsets.index(column.subset) if column.subset else None
        examples = [
            example for example in rows_of(name).examples if subset in (None, example.subset)
        ]
        labels = np.array([example.label for example in examples])
        found = [
            score(task.metric, labels, predict(view, *fitted[view], examples))
            for view in VIEWS.values()
        ]
        values = " | ".join(
            f"{100 * value:.1f}" for value in (majority_score(task.metric, labels), *found)
        )
        lines.append(
            f"| {column.title} | {task.metric} | {name} | {len(train)} | {len(examples)} |"
            f" {values} |"
        )
    return lines


def main() -> None:
    """Print the table, a task at a time."""
    params = read_params()
    names = sys.argv[1:] or list(params.tasks)
    for name in names:
        if name not in params.tasks or name not in TASKS:
            raise UserError(
                f"expected tasks of params.yaml ({', '.join(params.tasks)}); found {name}"
            )
    print(
        "| task | metric | split | train rows | rows scored | constant answer |"
        f" {' | '.join(VIEWS)} |\n|{'---|' * (6 + len(VIEWS))}"
    )
    for name in names:
        started = time.perf_counter()
        print("\n".join(table_rows(TASKS[name], params)), flush=True)
        print(f"{name}: {time.perf_counter() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    run_stage(main)
