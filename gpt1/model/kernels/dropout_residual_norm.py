"""LN(x + dropout(change)) as one kernel, and its backward pass as one: no mask, sum or statistic of
a row is kept between the two, each is made again from x and change. What follows is a residual sum
and a matrix product: where the product's numbers are of another type, it has them rounded already,
and the two gradients are added where they are read.

Shape letters: m rows (tokens), d width, b sequences, p programs of the backward pass.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from gpt1.model.dropout import keep, only, scale, threshold
from gpt1.model.kernels import hashing
from gpt1.model.kernels.hashing import kept

ROWS_A_PROGRAM = 64  # of the backward pass, which sums the gradients of gain and bias over them
WARPS = 8  # so each thread has four neighbours of a row of 768, which it reads at once


def plain(
    x_md: Tensor,
    change_md: Tensor,
    keys_b2: Tensor,
    sequences_m: Tensor,
    positions_m: Tensor,
    gain_d: Tensor,
    bias_d: Tensor,
    rate: float,
    epsilon: float,
) -> Tensor:
    """The twin: the same by torch's operators."""
    width = x_md.shape[1]
    kept_md = keep(keys_b2[sequences_m], positions_m, width, width, threshold(rate))
    sums_md = torch.add(x_md, only(change_md, kept_md), alpha=scale(rate))
    return F.layer_norm(sums_md, (width,), gain_d, bias_d, epsilon)


@triton.jit
def _sums(
    x_ptr, change_ptr, keys_ptr, sequences_ptr, positions_ptr, row, limit, scale,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """x + dropout(change) of a row, [BLOCK], 0 outside of it; and where change is kept."""
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    key = keys_ptr + 2 * tl.load(sequences_ptr + row)
    position = tl.load(positions_ptr + row).to(tl.int32)
    counters = position * ((WIDTH + 1) // 2) + columns // 2
    keeps = kept(counters, columns % 2 == 1, tl.load(key), tl.load(key + 1), limit)
    places = tl.full([], WIDTH, tl.int64) * row + columns
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    change = tl.load(change_ptr + places, mask=inside, other=0.0).to(tl.float32)
    return x + tl.where(keeps, change, 0.0) * scale, keeps, places, inside


@triton.jit
def _normal(sums, inside, epsilon, WIDTH: tl.constexpr):
    """The row with mean 0 and variance 1, and what its deviations were multiplied by."""
    deviations = tl.where(inside, sums - tl.sum(sums, 0) / WIDTH, 0.0)
    factor = 1.0 / tl.sqrt(tl.sum(deviations * deviations, 0) / WIDTH + epsilon)
    return deviations * factor, factor


@triton.jit
def forward_kernel(
    x_ptr, change_ptr, keys_ptr, sequences_ptr, positions_ptr, gain_ptr, bias_ptr,
    normed_ptr, rounded_ptr,
    limit, scale, epsilon, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROUNDED: tl.constexpr,
):  # fmt: skip
    """A program a row."""
    sums, _, places, inside = _sums(
        x_ptr, change_ptr, keys_ptr, sequences_ptr, positions_ptr, tl.program_id(0), limit, scale,
        WIDTH, BLOCK,
    )  # fmt: skip
    normal, _ = _normal(sums, inside, epsilon, WIDTH)
    columns = tl.arange(0, BLOCK)
    gain = tl.load(gain_ptr + columns, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + columns, mask=inside, other=0.0)
    normed = normal * gain + bias
    tl.store(normed_ptr + places, normed, mask=inside)
    if ROUNDED:
        tl.store(rounded_ptr + places, normed, mask=inside)


@triton.jit
def backward_kernel(
    x_ptr, change_ptr, keys_ptr, sequences_ptr, positions_ptr, gain_ptr,
    gradient_ptr, rounded_gradient_ptr,
    x_gradient_ptr, change_gradient_ptr, gain_gradients_ptr, bias_gradients_ptr,
    rows, limit, scale, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROUNDED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program for ROWS rows; of the gain and the bias it gives the gradients of these."""
    program, columns = tl.program_id(0), tl.arange(0, BLOCK)
    gain = tl.load(gain_ptr + columns, mask=columns < WIDTH, other=0.0)
    of_gain = tl.zeros([BLOCK], tl.float32)
    of_bias = tl.zeros([BLOCK], tl.float32)
    for row in range(program * ROWS, min(program * ROWS + ROWS, rows)):
        sums, keeps, places, inside = _sums(
            x_ptr, change_ptr, keys_ptr, sequences_ptr, positions_ptr, row, limit, scale,
            WIDTH, BLOCK,
        )  # fmt: skip
        normal, factor = _normal(sums, inside, epsilon, WIDTH)
        gradient = tl.load(gradient_ptr + places, mask=inside, other=0.0).to(tl.float32)
        if ROUNDED:
            gradient += tl.load(rounded_gradient_ptr + places, mask=inside, other=0.0)
        of_gain += gradient * normal
        of_bias += gradient
        of_normal = gradient * gain
        # what moves the mean or the variance of the row has no effect
        along = tl.sum(of_normal * normal, 0) / WIDTH
        of_sums = (of_normal - tl.sum(of_normal, 0) / WIDTH - normal * along) * factor
        tl.store(x_gradient_ptr + places, of_sums, mask=inside)
        tl.store(change_gradient_ptr + places, tl.where(keeps, of_sums * scale, 0.0), mask=inside)
    places = program * WIDTH + columns
    tl.store(gain_gradients_ptr + places, of_gain, mask=columns < WIDTH)
    tl.store(bias_gradients_ptr + places, of_bias, mask=columns < WIDTH)


@torch.library.custom_op("gpt1::dropout_residual_norm", mutates_args=())
def dropout_residual_norm(
    x_md: Tensor,
    change_md: Tensor,
    keys_b2: Tensor,
    sequences_m: Tensor,
    positions_m: Tensor,
    gain_d: Tensor,
    bias_d: Tensor,
    rate: float,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """LN(x + dropout(change)) in the type of x, each row with the mask of its sequence (a number
    below b) and position; and the same in the type of change, where that is another ([0]: it is
    not).
    """
    made: tuple[Tensor, Tensor] = _normed_like(x_md, change_md)
    width = x_md.shape[1]
    forward_kernel[(len(x_md),)](
        x_md, change_md, keys_b2, sequences_m, positions_m, gain_d, bias_d, *made,
        hashing.limit(rate), scale(rate), epsilon, WIDTH=width,
        BLOCK=triton.next_power_of_2(width), ROUNDED=len(made[1]) > 0, num_warps=WARPS,
    )  # fmt: skip
    return made


@dropout_residual_norm.register_fake
def _normed_like(x_md: Tensor, change_md: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    rounded = change_md.dtype != x_md.dtype
    return (
        torch.empty_like(x_md),
        torch.empty_like(change_md) if rounded else change_md.new_empty(0),
    )


@torch.library.custom_op("gpt1::dropout_residual_norm_backward", mutates_args=())
def _backward(
    gradient_md: Tensor,
    rounded_gradient_md: Tensor,
    x_md: Tensor,
    change_md: Tensor,
    keys_b2: Tensor,
    sequences_m: Tensor,
    positions_m: Tensor,
    gain_d: Tensor,
    rate: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x and change [m, d], and of gain and bias [p, d], to be summed."""
    rows, width = x_md.shape
    made: tuple[Tensor, Tensor, Tensor, Tensor] = _like(
        gradient_md, rounded_gradient_md, x_md, change_md
    )
    backward_kernel[(len(made[2]),)](
        x_md, change_md, keys_b2, sequences_m, positions_m, gain_d,
        gradient_md, rounded_gradient_md, *made,
        rows, hashing.limit(rate), scale(rate), epsilon,
        WIDTH=width, BLOCK=triton.next_power_of_2(width), ROUNDED=len(rounded_gradient_md) > 0,
        ROWS=ROWS_A_PROGRAM, num_warps=WARPS,
    )  # fmt: skip
    return made


@_backward.register_fake
def _like(
    gradient_md: Tensor, rounded_gradient_md: Tensor, x_md: Tensor, change_md: Tensor, *_: object
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sums_pd = x_md.new_empty(
        -(-x_md.shape[0] // ROWS_A_PROGRAM), x_md.shape[1], dtype=torch.float32
    )
    return (
        torch.empty_like(x_md),
        torch.empty_like(change_md),
        sums_pd,
        torch.empty_like(sums_pd),
    )


def _save(ctx, inputs, output):
    *tensors, _, rate, epsilon = inputs
    ctx.save_for_backward(*tensors)
    ctx.numbers = rate, epsilon


def _gradients(ctx, gradient_md, rounded_gradient_md):
    of_x_md, of_change_md, of_gain_pd, of_bias_pd = _backward(
        gradient_md.contiguous(),
        rounded_gradient_md.contiguous(),
        *ctx.saved_tensors,
        *ctx.numbers,
    )
    return of_x_md, of_change_md, None, None, None, of_gain_pd.sum(0), of_bias_pd.sum(0), None, None


dropout_residual_norm.register_autograd(_gradients, setup_context=_save)
