"""For the benchmarks: made-up fine-tuning tasks as long as RTE, 10,000 rows of SST-2 and 2,000 of
RACE, with something to learn in them.
"""

from typing import NamedTuple

import numpy as np

from gpt1.model.heads import Classifier, Combine, Head
from gpt1.model.networks import make_network
from gpt1.params.schema import Finetune, Params
from gpt1.train.batches import Examples
from gpt1.train.finetuning import EncodedTask, Logits
from gpt1.train.loop import seed_for

SPECIAL_SYMBOLS = 3  # start, delimiter, extract, after the vocabulary
TELLING_SHARE, TELLING_IDS, TRUTH = (
    0.2,
    8,
    0.9,
)  # so many of the tokens are of so many rare ids for each label, mostly for the right one


class Shape(NamedTuple):
    """Rows of train and dev, and the lengths in tokens: log-normal of this median and deviation of
    the logarithm, at least the least; sequences a row, one of which is right where there are more.
    """

    train: int
    dev: int
    median: float
    deviation: float
    least: int
    sequences: int = 1


SHAPES = {
    "rte": Shape(2490, 277, 58.0, 0.6, 15),
    "sst2": Shape(10_000, 872, 10.5, 0.65, 4),
    "race": Shape(2_000, 400, 340.0, 0.3, 100, 4),
}  # means of some 70, 13 and 350 tokens


def examples(shape: Shape, rows: int, context: int, vocabulary: int, seed: int) -> Examples:
    """Rows of a task of two classes or as many as sequences; each of these ends in the extract
    symbol, the last of `vocabulary` + 3 ids.
    """
    draw, several = np.random.default_rng(seed), shape.sequences > 1
    labels = draw.integers(shape.sequences if several else 2, size=rows)
    right = (np.arange(shape.sequences) == labels[:, None]).ravel() if several else labels
    rows *= shape.sequences
    lengths = np.clip(
        np.exp(draw.normal(np.log(shape.median), shape.deviation, rows)).round().astype(np.int64),
        shape.least,
        context,
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = (vocabulary * draw.random(offsets[-1]) ** 3).astype(
        np.int64
    )  # few ids are frequent, most are rare, as in text
    told = np.where(
        draw.random(offsets[-1]) < TRUTH, right.repeat(lengths), 1 - right.repeat(lengths)
    )
    telling = draw.random(offsets[-1]) < TELLING_SHARE
    tokens[telling] = (
        vocabulary - 1 - told * TELLING_IDS - draw.integers(TELLING_IDS, size=len(told))
    )[telling]
    tokens[offsets[:-1]], tokens[offsets[1:] - 1] = vocabulary, vocabulary + SPECIAL_SYMBOLS - 1
    return Examples(tokens.astype(np.uint16), offsets, labels, shape.sequences)


def accuracy(logits: Logits, labels: np.ndarray) -> float:
    """The share of logits that are right."""
    return float((logits.argmax(axis=1) == labels).mean())


def made_up_task(name: str, rows_share: float, context: int, vocabulary: int) -> EncodedTask:
    """The task of that name with this share of its rows."""
    shape = SHAPES[name]
    train, dev = (
        examples(shape, max(64, round(rows * rows_share)), context, vocabulary, seed)
        for seed, rows in ((1, shape.train), (2, shape.dev))
    )
    return EncodedTask(
        name, {"train": train, "dev": dev}, "dev", lambda logits: accuracy(logits, dev.labels)
    )


def fresh_classifier(
    params: Params, vocabulary: int, outputs: int, seed: int, combine: Combine = "single"
) -> Classifier:
    """A classifier of the profile's sizes with nothing transferred, drawn from the seed."""
    import torch

    generator = torch.Generator().manual_seed(seed_for(seed))
    network = make_network("transformer", params, vocabulary + SPECIAL_SYMBOLS, generator)
    return Classifier(
        network,
        Head(params.model.width, outputs, combine, params.model.weight_deviation, generator),
    )


def recipe_of(params: Params, epochs: int, precision: str) -> Finetune:
    """The profile's fine-tuning for so many epochs, with evaluation after each and nowhere else."""
    return params.finetune.model_copy(
        update={
            "epochs": epochs,
            "precision": precision,
            "evaluation_updates": (),
        }
    )
