"""Causal attention with the paper's dropout as one kernel. Like FlashAttention-2 (Dao 2023) it has
no scores, probabilities or masks in memory; and its masks are the CPU's bits, so they depend on no
micro-batch and no number of processes, as those of torch's fused one do.

A counter of the hash decides on two neighbouring keys. So even and odd keys are read apart, and
each pair of products shares one hash, without moving numbers between threads; the sum over the keys
does not ask for their order. Sums are in one order: the same run again gives the same bits.

Shape letters: b sequences, t positions, m = b t, h heads, d width of all heads.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from gpt1.model.dropout import keep, only, scale, threshold
from gpt1.model.kernels.attention_backward import attention_backward
from gpt1.model.kernels.hashing import hashed
from gpt1.model.kernels.tiles import numbers_of, places, product, rows, store

# positions that a program answers for, pairs of keys that it takes at a time, warps, stages: such
# that no register spills on sm_80 and sm_90
FORWARD = {"OWN": 128, "STEP": 32, "num_warps": 8, "num_stages": 2}


def plain(qkv_md: Tensor, keys_b2: Tensor, heads: int, t: int, context: int, rate: float) -> Tensor:
    """The twin: the same by torch's operators."""
    b, device = len(keys_b2), qkv_md.device
    query_bhtd, key_bhtd, value_bhtd = qkv_md.view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
    scores_bhtt = query_bhtd / math.sqrt(query_bhtd.shape[3]) @ key_bhtd.transpose(2, 3)
    later_tt = torch.ones(t, t, dtype=torch.bool, device=device).triu(1)
    probabilities_bhtt = scores_bhtt.masked_fill(later_tt, -math.inf).softmax(3)
    places_h = torch.arange(heads, dtype=torch.int32, device=device) * context
    places_ht = places_h[:, None] + torch.arange(t, dtype=torch.int32, device=device)
    kept_bhtt = keep(keys_b2[:, None, None], places_ht, t, context, threshold(rate))
    mixed_bhtd = only(probabilities_bhtt, kept_bhtt) @ value_bhtd * scale(rate)
    mixed_btd: Tensor = mixed_bhtd.transpose(1, 2)
    return mixed_btd.reshape(b * t, -1)


@triton.jit
def forward_kernel(
    qkv_ptr, keys_ptr, mixed_ptr, logs_ptr, t, context, pairs, limit, scale, sharpness,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    OWN: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """A program for OWN queries of one head, the last ones first, for they see most; it takes STEP
    even and odd keys at a time. `sharpness`: what scores are multiplied by, for powers of 2.
    """
    sequence, head = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * OWN
    queries = first + tl.arange(0, OWN)
    stride = 3 * HEADS * WIDTH
    at, at_mixed = places(sequence, head, t, HEADS, WIDTH)
    one, other = tl.load(keys_ptr + 2 * sequence), tl.load(keys_ptr + 2 * sequence + 1)
    counters = (head * context + queries) * pairs
    query = rows(qkv_ptr + at, queries, t, stride, WIDTH, BLOCK)
    greatest = tl.full([OWN], -float("inf"), tl.float32)
    total = tl.zeros([OWN], tl.float32)
    mixed = tl.zeros([OWN, BLOCK], tl.float32)
    for start in range(0, min(first + OWN, t), 2 * STEP):
        even = start + 2 * tl.arange(0, STEP)
        key_ptr = qkv_ptr + at + HEADS * WIDTH
        value_ptr = key_ptr + HEADS * WIDTH
        even_key = rows(key_ptr, even, t, stride, WIDTH, BLOCK)
        odd_key = rows(key_ptr, even + 1, t, stride, WIDTH, BLOCK)
        even_score = product(query, tl.trans(even_key)) * sharpness
        odd_score = product(query, tl.trans(odd_key)) * sharpness
        even_score = tl.where(queries[:, None] >= even[None, :], even_score, -float("inf"))
        odd_score = tl.where(queries[:, None] > even[None, :], odd_score, -float("inf"))
        above = tl.maximum(greatest, tl.max(tl.maximum(even_score, odd_score), 1))
        even_share = tl.exp2(even_score - above[:, None])
        odd_share = tl.exp2(odd_score - above[:, None])
        shrink = tl.exp2(greatest - above)
        total = total * shrink + tl.sum(even_share + odd_share, 1)
        bits = hashed(counters[:, None] + even[None, :] // 2, one, other)
        even_share = tl.where(bits << 16 >= limit, even_share, 0.0).to(query.dtype)
        odd_share = tl.where(bits >= limit, odd_share, 0.0).to(query.dtype)
        mixed *= shrink[:, None]
        mixed += product(even_share, rows(value_ptr, even, t, stride, WIDTH, BLOCK))
        mixed += product(odd_share, rows(value_ptr, even + 1, t, stride, WIDTH, BLOCK))
        greatest = above
    mixed *= scale / total[:, None]
    store(mixed_ptr + at_mixed, queries, t, HEADS * WIDTH, mixed, WIDTH, BLOCK)
    logs = greatest + tl.log2(total)
    tl.store(logs_ptr + tl.program_id(1) * t + queries, logs, mask=queries < t)


@torch.library.custom_op("gpt1::attention", mutates_args=())
def _forward(
    qkv_md: Tensor, keys_b2: Tensor, heads: int, t: int, context: int, rate: float
) -> tuple[Tensor, Tensor]:
    """What `attention` gives, and of each query the binary logarithm of the sum of the exponentials
    of its scores, [b h t].
    """
    made: tuple[Tensor, Tensor] = _like(qkv_md, keys_b2, heads, t)
    numbers, constants = numbers_of(qkv_md, heads, context, rate, FORWARD)
    forward_kernel[(triton.cdiv(t, constants["OWN"]), len(keys_b2) * heads)](
        qkv_md, keys_b2, *made, t, context, *numbers[:-1], **constants
    )
    return made


@_forward.register_fake
def _like(qkv_md: Tensor, keys_b2: Tensor, heads: int, t: int, *_: object) -> tuple[Tensor, Tensor]:
    return (
        qkv_md.new_empty(qkv_md.shape[0], qkv_md.shape[1] // 3),
        qkv_md.new_empty(keys_b2.shape[0] * heads * t, dtype=torch.float32),
    )


def _save(ctx, inputs, output):
    qkv_md, keys_b2, *ctx.numbers = inputs
    ctx.save_for_backward(qkv_md, keys_b2, *output)


def _gradients(ctx, gradient_md, _):
    of_qkv_md = attention_backward(gradient_md.contiguous(), *ctx.saved_tensors, *ctx.numbers)
    return of_qkv_md, None, None, None, None, None


_forward.register_autograd(_gradients, setup_context=_save)


def attention(
    qkv_md: Tensor, keys_b2: Tensor, heads: int, t: int, context: int, rate: float
) -> Tensor:
    """What each of t positions of b sequences mixes of the values at and before it, [m, d], from
    queries, keys and values beside each other, [m, 3 d] with m = b t; masks are those of a place
    whose keys are [b, 2], in a network of that `context`.
    """
    mixed_md: Tensor = _forward(qkv_md, keys_b2, heads, t, context, rate)[0]
    return mixed_md
