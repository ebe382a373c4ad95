"""The learning rate's schedules as pure functions of how much is done (paper, section 4.1, and the
authors' code). No torch: the report draws them.
"""

import math

from gpt1.params.schema import Schedule


def warmup_linear(x: float, warmup: float) -> float:
    """Factor of the rate when the share `x` of all updates is done: rises over the share `warmup`,
    while falling linearly to 0.
    """
    # Both factors at once: the peak lies a little below 1, as in the authors' code.
    return (x / warmup if x <= warmup else 1.0) * (1.0 - x)


def warmup_cosine(x: float, warmup: float) -> float:
    """Rises linearly to 1 over the share `warmup`, then follows half a cosine to 0, counted from
    the first update.
    """
    return x / warmup if x <= warmup else 0.5 * (1.0 + math.cos(math.pi * x))


def warmup_constant(x: float, warmup: float) -> float:
    """Rises linearly to 1 over the share `warmup`, then stays."""
    return x / warmup if x <= warmup else 1.0


def schedule(name: Schedule, update: int, updates: int, warmup: float) -> float:
    """Factor of the learning rate at `update`, counted from 1 to `updates`; beyond the end it stays
    as at the end.
    """
    functions = {
        "warmup_linear": warmup_linear,
        "warmup_cosine": warmup_cosine,
        "warmup_constant": warmup_constant,
    }
    # x counts the update after its step, as theirs does: the last one has the rate 0.
    return functions[name](min(update / updates, 1.0), warmup)


def snapshot_updates(updates: int, per_decade: int) -> set[int]:
    """Updates whose weights are kept: 10^(k / per_decade), rounded, below `updates`, and the
    last.
    """
    exponents = range(math.ceil(math.log10(updates) * per_decade) + 1)
    return {update for k in exponents if (update := round(10 ** (k / per_decade))) < updates} | {
        updates
    }
