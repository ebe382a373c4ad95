"""The softmax's losses and, in the place of the logits, their gradients, as one kernel: a program
reads its row twice, the second time from the cache, and writes it once.

Shape letters: m rows (targets), v columns, of which the first `columns` are real: the others make
rows begin at whole lines of memory, change no loss, and have no gradient.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 8192  # columns at a time
WARPS = 16


def plain(
    logits_mv: Tensor, targets_m: Tensor, weights_m: Tensor, columns: int, gradients: bool
) -> Tensor:
    """The twin: the same by torch's operators."""
    logs_mv = logits_mv[:, :columns].log_softmax(1)
    losses_m = -logs_mv.gather(1, targets_m[:, None]).squeeze(1)
    if gradients:
        of_losses_mv = logs_mv.exp()
        of_losses_mv.scatter_add_(1, targets_m[:, None], -torch.ones_like(logs_mv[:, :1]))
        logits_mv.zero_()[:, :columns] = of_losses_mv * weights_m[:, None]
    return losses_m


@triton.jit
def _real(logits_ptr, places, width, columns):
    """Logits in float32, -inf beyond the real ones. All are read, for rows of `width` begin and end
    at whole lines, so that a thread reads eight at once.
    """
    logits = tl.load(logits_ptr + places, mask=places < width, other=0.0).to(tl.float32)
    return tl.where(places < columns, logits, -float("inf"))


@triton.jit
def kernel(
    logits_ptr, targets_ptr, weights_ptr, losses_ptr, width, columns,
    GRADIENTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program a row of `width` logits."""
    row = tl.program_id(0)
    logits_ptr += tl.full([], 1, tl.int64) * row * width
    target = tl.load(targets_ptr + row)
    of_target = tl.load(logits_ptr + target).to(tl.float32)  # before others write there
    greatest = tl.full([], -float("inf"), tl.float32)
    total = tl.zeros([], tl.float32)  # of exp(logit - greatest)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        logits = _real(logits_ptr, places, width, columns)
        above = tl.maximum(greatest, tl.max(logits, 0))
        total = total * tl.exp(greatest - above) + tl.sum(tl.exp(logits - above), 0)
        greatest = above
    log_total = greatest + tl.log(total)
    tl.store(losses_ptr + row, log_total - of_target)
    if GRADIENTS:
        weight = tl.load(weights_ptr + row)
        for start in range(0, width, BLOCK):
            places = start + tl.arange(0, BLOCK)
            probabilities = tl.exp(_real(logits_ptr, places, width, columns) - log_total)
            of_losses = (probabilities - tl.where(places == target, 1.0, 0.0)) * weight
            tl.store(logits_ptr + places, of_losses, mask=places < width)


@torch.library.custom_op("gpt1::softmax_losses", mutates_args=("logits_mv",))
def softmax_losses(
    logits_mv: Tensor, targets_m: Tensor, weights_m: Tensor, columns: int, gradients: bool
) -> Tensor:
    """Negative log-likelihood [m] of each row's target, in float32; where `gradients` are wanted,
    each logit is replaced by the gradient of the weighted losses at it.
    """
    losses_m: Tensor = _like(logits_mv)
    kernel[(len(logits_mv),)](
        logits_mv, targets_m, weights_m, losses_m, logits_mv.stride(0), columns,
        GRADIENTS=gradients, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    return losses_m


@softmax_losses.register_fake
def _like(logits_mv: Tensor, *_: object) -> Tensor:
    return logits_mv.new_empty(logits_mv.shape[0], dtype=torch.float32)
