"""Prompts as arrays, as the stage writes them, and the sizes of the small networks that score them
in tests.
"""

import numpy as np

from gpt1.inference.continuations import Prompts
from gpt1.params.schema import Model

SIZES = Model(
    context=24,
    width=16,
    layers=2,
    heads=4,
    feed_forward=40,
    embedding_deviation=0.4,
    weight_deviation=0.3,
    layer_norm_epsilon=1e-5,
)


def prompts_of(made):
    """Arrays of (prefix, continuations, uncounted), as the stage writes them."""
    parts = [part for prefix, continuations, _ in made for part in (prefix, *continuations)]
    return Prompts(
        np.array([id_ for part in parts for id_ in part], dtype=np.uint16),
        np.cumsum([0, *map(len, parts)]),
        np.array([uncounted for *_, uncounted in made]),
        np.zeros(len(made), dtype=np.int64),
    )
