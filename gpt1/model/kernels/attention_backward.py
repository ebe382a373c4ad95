"""The backward pass of attention.py, as two kernels: of queries, and of keys and values. Shares (of
the softmax) are made again from scores and their statistics, masks from the hash. Shape letters as
there.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from gpt1.model.kernels.hashing import hashed
from gpt1.model.kernels.tiles import numbers_of, places, product, rows, store

# as attention.py's FORWARD; of keys the pairs that a program answers for
OF_QUERIES = {"OWN": 128, "STEP": 32, "num_warps": 8, "num_stages": 2}
OF_KEYS = {"OWN": 32, "STEP": 32, "num_warps": 4, "num_stages": 2}


@triton.jit
def queries_kernel(
    qkv_ptr, keys_ptr, mixed_ptr, logs_ptr, gradient_ptr, along_ptr, qkv_gradient_ptr,
    t, context, pairs, limit, scale, sharpness, root,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    OWN: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The gradient of OWN queries of one head, from the keys that they see; and for the other
    kernel `along`, the sum of each one's gradient times what it has mixed. `root`: what scores are
    multiplied by.
    """
    sequence, head = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * OWN
    queries = first + tl.arange(0, OWN)
    stride = 3 * HEADS * WIDTH
    at, at_mixed = places(sequence, head, t, HEADS, WIDTH)
    one, other = tl.load(keys_ptr + 2 * sequence), tl.load(keys_ptr + 2 * sequence + 1)
    counters = (head * context + queries) * pairs
    query = rows(qkv_ptr + at, queries, t, stride, WIDTH, BLOCK)
    gradient = rows(gradient_ptr + at_mixed, queries, t, HEADS * WIDTH, WIDTH, BLOCK)
    mixed = rows(mixed_ptr + at_mixed, queries, t, HEADS * WIDTH, WIDTH, BLOCK)
    along = tl.sum(gradient.to(tl.float32) * mixed.to(tl.float32), 1)
    numbers = tl.program_id(1) * t + queries
    tl.store(along_ptr + numbers, along, mask=queries < t)
    logs = tl.load(logs_ptr + numbers, mask=queries < t, other=float("inf"))
    of_query = tl.zeros([OWN, BLOCK], tl.float32)
    for start in range(0, min(first + OWN, t), 2 * STEP):
        even = start + 2 * tl.arange(0, STEP)
        bits = hashed(counters[:, None] + even[None, :] // 2, one, other)
        for odd in tl.static_range(2):
            keeps = (bits if odd else bits << 16) >= limit
            key = rows(qkv_ptr + at + HEADS * WIDTH, even + odd, t, stride, WIDTH, BLOCK)
            value = rows(qkv_ptr + at + 2 * HEADS * WIDTH, even + odd, t, stride, WIDTH, BLOCK)
            share = tl.exp2(product(query, tl.trans(key)) * sharpness - logs[:, None])
            share = tl.where(queries[:, None] >= even[None, :] + odd, share, 0.0)
            of_share = tl.where(keeps, product(gradient, tl.trans(value)) * scale, 0.0)
            of_query += product((share * (of_share - along[:, None])).to(query.dtype), key)
    store(qkv_gradient_ptr + at, queries, t, stride, of_query * root, WIDTH, BLOCK)


@triton.jit
def _of_keys(
    key, value, query, gradient, seen, keeps, logs, along, sharpness, scale, of_key, of_value
):  # fmt: skip
    """The gradients with those of some queries; shares and scores are [keys, queries]."""
    share = tl.exp2(product(key, tl.trans(query)) * sharpness - logs[None, :])
    share = tl.where(seen, share, 0.0)
    of_value += product(tl.where(keeps, share, 0.0).to(query.dtype), gradient)
    of_share = tl.where(keeps, product(value, tl.trans(gradient)) * scale, 0.0)
    of_key += product((share * (of_share - along[None, :])).to(query.dtype), query)
    return of_key, of_value


@triton.jit
def keys_kernel(
    qkv_ptr, keys_ptr, logs_ptr, gradient_ptr, along_ptr, qkv_gradient_ptr,
    t, context, pairs, limit, scale, sharpness, root,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    OWN: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The gradients of OWN even and odd keys and values of one head, from STEP queries at a time of
    those that see them.
    """
    sequence, head = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS
    first, stride = tl.program_id(0) * 2 * OWN, 3 * HEADS * WIDTH
    at, at_mixed = places(sequence, head, t, HEADS, WIDTH)
    at_key, at_value = at + HEADS * WIDTH, at + 2 * HEADS * WIDTH
    one, other = tl.load(keys_ptr + 2 * sequence), tl.load(keys_ptr + 2 * sequence + 1)
    even = first + 2 * tl.arange(0, OWN)
    even_key = rows(qkv_ptr + at_key, even, t, stride, WIDTH, BLOCK)
    odd_key = rows(qkv_ptr + at_key, even + 1, t, stride, WIDTH, BLOCK)
    even_value = rows(qkv_ptr + at_value, even, t, stride, WIDTH, BLOCK)
    odd_value = rows(qkv_ptr + at_value, even + 1, t, stride, WIDTH, BLOCK)
    of_even_key = tl.zeros([OWN, BLOCK], tl.float32)
    of_odd_key = tl.zeros([OWN, BLOCK], tl.float32)
    of_even_value = tl.zeros([OWN, BLOCK], tl.float32)
    of_odd_value = tl.zeros([OWN, BLOCK], tl.float32)
    for start in range(first, t, STEP):
        queries = start + tl.arange(0, STEP)
        query = rows(qkv_ptr + at, queries, t, stride, WIDTH, BLOCK)
        gradient = rows(gradient_ptr + at_mixed, queries, t, HEADS * WIDTH, WIDTH, BLOCK)
        numbers = tl.program_id(1) * t + queries
        logs = tl.load(logs_ptr + numbers, mask=queries < t, other=float("inf"))
        along = tl.load(along_ptr + numbers, mask=queries < t, other=0.0)
        counters = (head * context + queries) * pairs
        bits = hashed(counters[None, :] + even[:, None] // 2, one, other)
        of_even_key, of_even_value = _of_keys(
            even_key, even_value, query, gradient, queries[None, :] >= even[:, None],
            bits << 16 >= limit, logs, along, sharpness, scale, of_even_key, of_even_value,
        )  # fmt: skip
        of_odd_key, of_odd_value = _of_keys(
            odd_key, odd_value, query, gradient, queries[None, :] > even[:, None],
            bits >= limit, logs, along, sharpness, scale, of_odd_key, of_odd_value,
        )  # fmt: skip
    store(qkv_gradient_ptr + at_key, even, t, stride, of_even_key * root, WIDTH, BLOCK)
    store(qkv_gradient_ptr + at_key, even + 1, t, stride, of_odd_key * root, WIDTH, BLOCK)
    store(qkv_gradient_ptr + at_value, even, t, stride, of_even_value * scale, WIDTH, BLOCK)
    store(qkv_gradient_ptr + at_value, even + 1, t, stride, of_odd_value * scale, WIDTH, BLOCK)


@torch.library.custom_op("gpt1::attention_backward", mutates_args=())
def attention_backward(
    gradient_md: Tensor,
    qkv_md: Tensor,
    keys_b2: Tensor,
    mixed_md: Tensor,
    logs: Tensor,
    heads: int,
    t: int,
    context: int,
    rate: float,
) -> Tensor:
    """The gradient of queries, keys and values, [m, 3 d]."""
    made, along = torch.empty_like(qkv_md), torch.empty_like(logs)
    numbers, constants = numbers_of(qkv_md, heads, context, rate, OF_QUERIES)
    queries_kernel[(triton.cdiv(t, constants["OWN"]), len(keys_b2) * heads)](
        qkv_md, keys_b2, mixed_md, logs, gradient_md, along, made, t, context, *numbers, **constants
    )
    numbers, constants = numbers_of(qkv_md, heads, context, rate, OF_KEYS)
    keys_kernel[(triton.cdiv(t, 2 * constants["OWN"]), len(keys_b2) * heads)](
        qkv_md, keys_b2, logs, gradient_md, along, made, t, context, *numbers, **constants
    )
    return made


attention_backward.register_fake(lambda gradient_md, qkv_md, *_: torch.empty_like(qkv_md))
