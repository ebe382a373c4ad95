"""The learning rate's schedules (paper, section 4.1). No torch: the report draws them."""

import math

from gpt1.params.schema import Schedule


def warmup_linear(x: float, warmup: float) -> float:
    """Return the rate's factor when the share `x` of all updates is done: it rises over the share
    `warmup`, and falls linearly to 0.
    """
    # Both factors at once: the peak lies a little below 1, as in the authors' code.
    return (x / warmup if x <= warmup else 1.0) * (1.0 - x)


def warmup_cosine(x: float, warmup: float) -> float:
    """Rise to 1 over `warmup`, then follow half a cosine to 0, counted from the first update."""
    return x / warmup if x <= warmup else 0.5 * (1.0 + math.cos(math.pi * x))


def schedule(name: Schedule, update: int, updates: int, warmup: float) -> float:
    """Return the rate's factor at `update`, counted from 1 to `updates`."""
    factor = warmup_linear if name == "warmup_linear" else warmup_cosine
    # x counts the update after its step, as theirs does: the last one has the rate 0.
    return factor(min(update / updates, 1.0), warmup)


def snapshot_updates(updates: int, per_decade: int) -> set[int]:
    """Return the updates whose weights are kept: `per_decade` on a log scale, and the last."""
    exponents = range(math.ceil(math.log10(updates) * per_decade) + 1)
    return {update for k in exponents if (update := round(10 ** (k / per_decade))) < updates} | {
        updates
    }
