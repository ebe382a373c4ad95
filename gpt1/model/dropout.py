"""The paper's five dropouts (section 4.1) without a generator: each decision is a hash of what it
is for.

Seed, update, place in the network, number of the sequence in the global batch and position give the
bits, on any device: so a mask does not depend on processes, micro-batches, padding, or on what was
drawn before it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpt1.model.device import to_device

DECISIONS = 1 << 16  # values of the 16 random bits that decide on an element
MATRIX, HEAD, BLOCKS = (
    0,
    1,
    2,
)  # places: the embedding matrix, the classifier, and PLACES_A_BLOCK from BLOCKS on
PLACES_A_BLOCK = 3
GAMMA = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: multiples of it lie apart


class Dropout(NamedTuple):
    """Rate of dropout, key of (seed, update), and the number of each sequence or example in the
    global batch, [b].
    """

    rate: float
    key: int
    rows_b: npt.NDArray[np.int64]

    def keys(self, places: Sequence[int]) -> Tensor:
        """Two 32-bit keys [places, 1 + b, 2] at each of these places of the network: for all rows
        together, as the embedding matrix has them, which is dropped once an update, and then for
        each of the rows.
        """
        place_keys = [(self.key + GAMMA * (place + 1)) % (1 << 64) for place in places]
        numbers_b = np.concatenate([[0], self.rows_b]).astype(np.uint64) + np.uint64(1)
        keys_pb = _mixed(
            _mixed(np.asarray(place_keys, np.uint64))[:, None] + np.uint64(GAMMA) * numbers_b
        )
        return torch.from_numpy(keys_pb.view(np.int32).reshape(*keys_pb.shape, 2))

    def keys_on(self, device: torch.device, places: Sequence[int]) -> Tensor:
        """The same on a device, in one copy."""
        return to_device(self.keys(places), device)

    def seed(self) -> int:
        """For a generator of torch's, where a kernel draws by one."""
        return int(self.keys([BLOCKS])[0, 1, 0])


NO_DROPOUT = Dropout(0.0, 0, np.zeros(0, np.int64))


def threshold(rate: float) -> int:
    """How many of the DECISIONS values drop an element."""
    return round(rate * DECISIONS)


def scale(rate: float) -> float:
    """What kept elements are multiplied by, so that the expectation stays: 1 / (1 - rate), for the
    rate in whole 65,536ths.
    """
    return DECISIONS / (DECISIONS - threshold(rate))


def keep(
    keys_x2: Tensor, positions_x: Tensor, width: int, widest: int, dropped_values: int
) -> Tensor:
    """Which of [..., width] elements to keep: keys [..., 2] and positions [...] broadcast; `widest`
    is the largest width there may be.

    Positions times `widest` must stay below 2^32: beyond that the counters repeat.
    """
    pairs = torch.arange(math.ceil(width / 2), dtype=torch.int32, device=keys_x2.device)
    counters = positions_x[..., None] * math.ceil(widest / 2) + pairs
    bits = _hashed(counters, keys_x2[..., :1], keys_x2[..., 1:])
    return bits.view(torch.int16)[..., :width] >= dropped_values - DECISIONS // 2


def only(x: Tensor, kept: Tensor) -> Tensor:
    """x where it is kept, else 0. As a product with numbers: torch.where takes ten times as long on
    a CPU, and one with bool three times.
    """
    return x * kept.view(torch.uint8)


def cut(x: Tensor, kept: Tensor, rate: float) -> Tensor:
    """Dropout of x by a mask that broadcasts to it."""
    return only(x, kept) * scale(rate)


def _hashed(counters: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """32 bits of each counter under two keys; under one, any two keys would give the same bits in
    another order.

    Multipliers and shifts are those of Wellons' triple32, the result of a search for the least
    bias.
    """
    x = counters + first
    _fold(x, 17).mul_(0xED5AD4BB - (1 << 32))
    _fold(x, 11).add_(second).mul_(0xAC4C1B51 - (1 << 32))
    _fold(x, 15).mul_(0x31848BAB)
    return _fold(x, 14)


def _fold(x: Tensor, places: int) -> Tensor:
    """x ^= x >> places; torch's shift of int32 copies the sign."""
    return x.bitwise_xor_((x >> places).bitwise_and_((1 << 32 - places) - 1))


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The last step of SplitMix64 (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), np.uint64)
