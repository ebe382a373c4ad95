"""dropout.py's decisions inside a kernel: the same bits, drawn where they are used, so that no mask
is written to memory or read from it.
"""

import math

import triton
import triton.language as tl

from gpt1.model.dropout import DECISIONS, threshold


def limit(rate: float) -> int:
    """The least of the 32-bit numbers that keep an element, see `kept`."""
    return (threshold(rate) - DECISIONS // 2) * DECISIONS


def pairs(widest: int) -> int:
    """How many counters a position has, where there may be so many elements in it."""
    return math.ceil(widest / 2)


@triton.jit
def hashed(counters, first, second):
    """32 bits of each counter (int32) under two keys, as dropout.py's `_hashed`."""
    x = (counters + first).to(tl.uint32, bitcast=True)
    x = (x ^ (x >> 17)) * 0xED5AD4BB
    x = ((x ^ (x >> 11)) + second.to(tl.uint32, bitcast=True)) * 0xAC4C1B51
    x = (x ^ (x >> 15)) * 0x31848BAB
    return (x ^ (x >> 14)).to(tl.int32, bitcast=True)


@triton.jit
def kept(counters, odd, first, second, limit):
    """Which elements to keep. A counter decides on two: the even one by its lower 16 bits, the odd
    one by its upper 16, both as signed numbers; here shifted to the top of 32, where what stands
    below changes no comparison with a multiple of 2^16.
    """
    bits = hashed(counters, first, second)
    return tl.where(odd, bits, bits << 16) >= limit
