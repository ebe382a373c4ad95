"""For the benchmarks: our pre-training step as gpt1/train/pretraining.py takes it, on made-up
windows, at sizes that have names.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.params.profile import compose
from gpt1.params.schema import Model, Pretrain, validate
from gpt1.train import optim
from gpt1.train.batches import Integers, shares
from gpt1.train.engine import make_engine
from gpt1.train.launch import Machine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.pretraining import Corpus
from gpt1.train.speed import speed_up

TINY = [
    "model.width=64",
    "model.layers=2",
    "model.heads=2",
    "model.feed_forward=256",
    "model.context=64",
    "transfer.race.layers=null",
]
PROFILES = {
    "117m": ("paper", [], 40_478),
    "4m": ("small", [], 5_202),
    "1m": ("demo", [], 2_622),
    "tiny": ("demo", TINY, 500),
}
LSTMS = {
    "lstm": "4m",
    "lstm-1m": "1m",
}  # the LSTM of the paper's proportion beside such a Transformer
UPDATES = 1_000_000  # of the schedule: far more than are measured


class Size(NamedTuple):
    """A network's sizes and its vocabulary, and the recipe of its pre-training; `units` of an LSTM."""

    model: Model
    vocabulary: int
    recipe: Pretrain
    units: int | None = None

    def network(self) -> Network:
        """A network of this size; always the same weights."""
        generator = torch.Generator().manual_seed(0)
        if self.units:
            rows = self.vocabulary
            return Lstm(self.model, self.units, rows, generator)
        return Decoder(self.model, self.vocabulary, generator)

    def flops_per_token(self) -> float:
        """Operations of matrix products for a token of a full window, forward and backward; half of
        attention is masked, not counted.
        """
        width, layers = self.model.width, self.model.layers
        if self.units:
            gates = 4 * self.units * (width + self.units)
            return 6.0 * (gates + (self.units + self.vocabulary) * width)
        products = (
            layers * (4 * width**2 + 2 * width * self.model.feed_forward) + self.vocabulary * width
        )
        return 6.0 * (products + layers * self.model.context * width)


def named_size(name: str, batch: int, context: int | None, precision: str, dropout: float) -> Size:
    """A size by name with the recipe of its profile, but for what is given. Run in the root of the
    checkout.
    """
    profile, overrides, vocabulary = PROFILES[LSTMS.get(name, name)]
    own = [
        f"pretrain.batch_size={batch}",
        f"pretrain.precision={precision}",
        f"pretrain.dropout={dropout}",
    ]
    params = validate(
        compose(profile, [*overrides, *own, *([f"model.context={context}"] if context else [])])
    )
    return Size(
        params.model, vocabulary, params.pretrain, params.lstm.units if name in LSTMS else None
    )


def windows_of(size: Size) -> Callable[[int], Integers]:
    """Made-up windows [batch, context + 1] of an update."""
    shape = (size.recipe.batch_size, size.model.context + 1)
    return lambda update: np.random.default_rng(update).integers(size.vocabulary, size=shape)


def corpus_of(size: Size) -> Corpus:
    """The same for a run: a window is drawn by its number, the batch's size times its update."""
    windows, rows = windows_of(size), size.recipe.batch_size
    return Corpus(
        lambda update: update * rows + np.arange(rows),
        lambda starts: np.stack([windows(start // rows)[start % rows] for start in starts]),
        windows(0),
        1.0,
    )


class Step(NamedTuple):
    """The next update, at every call of `take` (ours gives losses and the gradient's norm), and
    what was chosen for this machine.
    """

    take: Callable[[], Any]
    chosen: dict[str, str]


def our_step(size: Size, network: Network, machine: Machine) -> Step:
    """A step as in a run of UPDATES updates."""
    recipe, windows_at, context = size.recipe, windows_of(size), size.model.context
    chosen = speed_up(network, recipe, machine, UPDATES * recipe.batch_size * context)
    rows = shares(
        np.arange(recipe.batch_size),
        machine.rank,
        machine.processes,
        machine.micro_batch_for(context),
    )
    objective = Pretraining(network, recipe.precision)
    engine = make_engine(objective, recipe, machine, len(rows))
    updates, stop = count(1), Stop()

    def take() -> dict[str, float]:
        update = next(updates)
        windows = windows_at(update)
        batches = [
            MicroBatch(len(part) / len(windows), torch.from_numpy(windows[part]).to(engine.device))
            for part in rows
        ]
        rates = optim.rates(recipe, update, UPDATES, recipe.warmup_updates / UPDATES)
        return take_update(engine, batches, recipe.dropout, recipe.seeds[0], update, rates, stop)

    return Step(
        take, {"engine": type(engine).__name__, "micro_batch": str(max(map(len, rows))), **chosen}
    )
