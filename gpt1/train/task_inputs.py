"""What fine-tuning starts from: an encoded task, and a classifier with pre-trained weights."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.model.heads import Classifier, Head
from gpt1.model.networks import make_network
from gpt1.model.weights import Description, transfer_weights
from gpt1.params.schema import Finetune, Params
from gpt1.tasks import metrics
from gpt1.train.batches import Examples, read_examples
from gpt1.train.loop import seed_for

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary
Logits = npt.NDArray[np.float32]


class Task(NamedTuple):
    """A task as tensors can be made of it: its splits, which of them selects the model, and how
    logits on that one are scored.
    """

    name: str
    splits: Mapping[str, Examples]
    selection_split: str
    score: Callable[[Logits], float]


def read_task(folder: Path, params: Params) -> tuple[dict[str, Any], Task]:
    """An encoded task, and what task.json says of it. Raises UserError where it is absent, or its
    sequences do not fit the model.
    """
    if not (folder / "task.json").is_file():
        raise UserError(
            f"{folder}/task.json is not there; run dvc repro, or python -m gpt1.stages encode"
            f" {folder.name}"
        )
    about, splits = read_json(folder / "task.json"), dict[str, Examples]()
    rows = about["vocabulary_size"] + SPECIAL_SYMBOLS
    for name in about["splits"]:
        path = folder / f"{name}.npz"
        splits[name] = examples = read_examples(path, about["sequences"])
        longest = int(examples.lengths(np.arange(len(examples))).max(initial=0))
        largest = examples.tokens.max(initial=0)
        if longest > params.model.context or largest >= rows:
            raise UserError(
                f"{path}: expected sequences of at most {params.model.context} tokens"
                f" (model.context) with ids below {rows}, found {longest} and {largest}; run dvc"
                " repro, which encodes the task anew"
            )
    dev = splits[about["selection_split"]]
    if about["target"] == "class" and (dev.labels < 0).any():
        raise UserError(
            f"{folder}: expected labels for every row of {about['selection_split']}, which selects"
            " the model; found rows without; bring the labelled file and run dvc repro"
        )
    score = partial(_score, about["metric"], about["target"], dev.labels)
    return about, Task(folder.name, splits, about["selection_split"], score)


def _score(metric: str, target: str, labels: npt.NDArray[Any], logits: Logits) -> float:
    value = metrics.score(metric, labels, metrics.predictions(logits, target))
    return value if math.isfinite(value) else 0.0  # a correlation with a constant says nothing


def make_classifier(
    params: Params,
    recipe: Finetune,
    about: dict[str, Any],
    wanted: Description,
    weights: Path,
    seed: int,
) -> Classifier:
    """A classifier with the pre-trained weights in it; special symbols and head are drawn anew for
    each seed.
    """
    generator = torch.Generator().manual_seed(seed_for(seed))
    network = make_network(wanted.kind, params, wanted.vocabulary_size + SPECIAL_SYMBOLS, generator)
    head = Head(
        params.model.width,
        about["outputs"],
        about["combine"],
        params.model.weight_deviation,
        generator,
    )
    transfer_weights(weights, wanted, network, recipe.transfer)
    return Classifier(network, head)
