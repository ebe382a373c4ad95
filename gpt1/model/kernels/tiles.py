"""What the kernels of attention share: tiles of the matrix of queries, keys and values."""

import math

import triton
import triton.language as tl
from torch import Tensor

from gpt1.model.dropout import scale
from gpt1.model.kernels import hashing

LOG2_E = math.log2(math.e)
# for products of float32 numbers, which are made without tensor cores, and each in many registers
OF_FLOAT32 = {"OWN": 32, "STEP": 16, "num_warps": 8, "num_stages": 1}


def numbers_of(
    qkv_md: Tensor, heads: int, context: int, rate: float, tiles: dict[str, int]
) -> tuple[tuple[int, int, float, float, float], dict[str, int]]:
    """Pairs, limit, scale, sharpness and root of the kernels; and their constants: those of a head,
    and `tiles`, which are for 16-bit numbers.
    """
    width = qkv_md.shape[1] // 3 // heads
    root = 1 / math.sqrt(width)
    return (
        (hashing.pairs(context), hashing.limit(rate), scale(rate), root * LOG2_E, root),
        {"HEADS": heads, "WIDTH": width, "BLOCK": max(16, triton.next_power_of_2(width))}
        | (tiles if qkv_md.element_size() == 2 else OF_FLOAT32),
    )


@triton.jit
def rows(pointer, rows, end, stride, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """[rows, BLOCK] of a matrix whose rows are `stride` apart; 0 outside of it."""
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < end) & (columns[None, :] < WIDTH)
    return tl.load(pointer + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def store(pointer, rows, end, stride, values, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Write them, but for what is outside."""
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < end) & (columns[None, :] < WIDTH)
    tl.store(pointer + rows[:, None] * stride + columns[None, :], values, mask=inside)


@triton.jit
def places(sequence, head, t, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """Where a head begins in the matrix of queries, keys and values, and in that of the mixed."""
    place = sequence.to(tl.int64) * t * HEADS * WIDTH
    return 3 * place + head * WIDTH, place + head * WIDTH


@triton.jit
def product(a, b):
    """In float32, of float32 numbers without rounding them to TF32."""
    return tl.dot(a, b, input_precision="ieee")
