"""Equations 1, 4 and 5 of the paper, the soft labels of STS-B, and the tied softmax, of whose
logits [tokens, vocabulary] only some rows exist at a time.

Shape letters: n sequences, t positions, m targets, d width, v rows of the softmax, b examples, o
outputs.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt1.model.packing import computed_places, to_device


class SoftmaxBlocks(NamedTuple):
    """How the softmax is cut."""

    rows: int  # at least so many together
    logits: int  # in memory together
    elements: int  # normalised together
    multiple: int  # of columns, by padding


# On a CPU rows enough for matrix products at full speed (each block of rows adds to a gradient as
# large as the embeddings), elements whose float32 copies stay in a core's own cache, and columns in
# whole tiles of AMX. On others few launches, 1.3 GB at 8,192 rows, and rows that begin at whole
# lines of memory, without which cuBLAS takes slower kernels.
BLOCKS = {"cpu": SoftmaxBlocks(1024, 1 << 25, 1 << 17, 32)}
OTHER_BLOCKS = SoftmaxBlocks(8192, 0, 1 << 40, 128)


class LanguageModelLoss(NamedTuple):
    """Equation 1, in nats per token."""

    mean: Tensor  # over sequences
    losses_n: Tensor


class Targets(NamedTuple):
    """Which tokens are predicted, and how much each counts."""

    places_m: Tensor  # among the n · t of a batch
    weights_nt: Tensor  # 1 / (n · its sequence's number of targets), 0 for padding


def computed_targets(lengths_n: Tensor, t: int, device: torch.device) -> Targets:
    """Return the targets of right-padded sequences with so many each."""
    places_m = computed_places(lengths_n, t, device).places_m
    weights_nt = (torch.arange(t) < lengths_n[:, None]) / lengths_n[:, None] / len(lengths_n)
    return Targets(places_m, to_device(weights_nt, device))


def language_model(
    hidden_ntd: Tensor, embeddings_vd: Tensor, targets_nt: Tensor, computed: Targets | None = None
) -> LanguageModelLoss:
    """Compute equation 1: the mean negative log-likelihood of each sequence's `computed` targets
    (None: all).
    """
    (n, t), device = targets_nt.shape, targets_nt.device
    hidden_md, targets_m = hidden_ntd.flatten(0, 1), targets_nt.flatten()
    if computed is None:
        places_m = torch.arange(n * t, device=device)
        weights_m = torch.full((n * t,), 1.0 / t, device=device) / n
    else:
        places_m = computed.places_m
        hidden_md, targets_m, weights_m = (
            every.index_select(0, places_m)
            for every in (hidden_md, targets_m, computed.weights_nt.flatten())
        )
    # The weights make the mean over tokens, then over sequences, in one sum.
    mean, losses_m = tied_softmax(hidden_md, embeddings_vd, targets_m, weights_m)
    return LanguageModelLoss(
        mean, losses_m.new_zeros(n).index_add(0, places_m // t, losses_m * weights_m * n)
    )


def classification(logits_bo: Tensor, labels_b: Tensor) -> Tensor:
    """Compute equation 4: the negative log-likelihood [b] of classes [b], or the cross-entropy
    against soft labels [b, classes].
    """
    return F.cross_entropy(logits_bo.float(), labels_b, reduction="none")


def score_distribution(scores_b: Tensor, classes: int) -> Tensor:
    """Return soft labels [b, classes] of scores from 0 to classes - 1: a score y puts y - floor(y)
    on floor(y) + 1 and the rest on floor(y) (Tai et al. 2015).
    """
    classes_c = torch.arange(classes, device=scores_b.device, dtype=scores_b.dtype)
    return (1 - (scores_b[:, None] - classes_c).abs()).clamp(min=0)


def finetune(task_losses_b: Tensor, lm_loss: Tensor, lambda_lm: float) -> Tensor:
    """Compute equation 5: mean task loss + lambda · mean language-model loss."""
    return task_losses_b.mean() + lambda_lm * lm_loss


def tied_softmax(
    hidden_md: Tensor, embeddings_vd: Tensor, targets_m: Tensor, weights_m: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of the targets' negative log-likelihoods, which has gradients, and
    these [m], which have none. Products are in autocast's precision, sums and softmax in float32.
    """
    if not torch.is_grad_enabled():  # else gradients would be made that nobody wants
        hidden_md, embeddings_vd = hidden_md.detach(), embeddings_vd.detach()
    total, losses_m = _TiedSoftmax.apply(  # type: ignore[no-untyped-call]
        hidden_md, embeddings_vd, targets_m, weights_m
    )
    return total, losses_m


class _TiedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_md: Tensor, embeddings_vd: Tensor, targets_m: Tensor, weights_m: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute losses and, while the logits are there, gradients."""
        with_gradient, device = any(ctx.needs_input_grad), hidden_md.device.type
        low_precision = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if low_precision else hidden_md.dtype
        blocks, v = BLOCKS.get(device, OTHER_BLOCKS), len(embeddings_vd)
        # Columns are made up to whole tiles; the surplus gets -inf below, a probability of 0.
        rows_vd = F.pad(embeddings_vd.to(dtype), (0, 0, 0, -v % blocks.multiple))
        losses_m = torch.empty(len(hidden_md), device=hidden_md.device)
        hidden_gradient_md = torch.empty_like(hidden_md)
        rows_gradient_vd = torch.zeros_like(rows_vd, dtype=embeddings_vd.dtype)
        # [m, v] logits of a batch would take gigabytes: some rows at a time, forward and backward.
        together = max(blocks.rows, blocks.logits // len(rows_vd))
        for start in range(0, len(hidden_md), together):
            part = slice(start, start + together)
            states_md = hidden_md[part].to(dtype)
            logits_mv = F.linear(states_md, rows_vd)
            logits_mv[:, v:] = -math.inf  # which changes no loss, and has no gradient
            losses_m[part] = _softmax(
                logits_mv, targets_m[part], weights_m[part], with_gradient, blocks.elements
            )
            if with_gradient:  # the logits are their own gradients now
                hidden_gradient_md[part] = logits_mv @ rows_vd
                rows_gradient_vd += logits_mv.T @ states_md
        # The gradient is linear in that of the sum, so it is made now, while the logits are there,
        # and only scaled in backward.
        ctx.gradients = hidden_gradient_md, rows_gradient_vd[:v]
        ctx.mark_non_differentiable(losses_m)
        return (losses_m * weights_m).sum(), losses_m

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor, _losses_gradient_m: Tensor
    ) -> tuple[Tensor, Tensor, None, None]:
        hidden_gradient_md, rows_gradient_vd = ctx.gradients
        # Free at once: they are as large as the embeddings.
        ctx.gradients = None
        return hidden_gradient_md.mul_(gradient), rows_gradient_vd.mul_(gradient), None, None


def _softmax(
    logits_mv: Tensor, targets_m: Tensor, weights_m: Tensor, gradients: bool, elements: int
) -> Tensor:
    """Return losses [m]; with `gradients`, replace each logit by its gradient."""
    rows, losses = max(1, elements // logits_mv.shape[1]), []
    parts = (
        torch.split(tensor, rows) for tensor in (logits_mv, targets_m[:, None], weights_m[:, None])
    )
    for block_mv, targets, weights in zip(*parts, strict=True):
        scores_mv = block_mv.float()
        # -log p = (max - score) + log(sum of exp(x - max)), and the sum is 1 / the greatest p.
        above = scores_mv.amax(1, keepdim=True) - scores_mv.gather(1, targets)
        probabilities_mv = torch.softmax(scores_mv, 1)
        losses.append(above - probabilities_mv.amax(1, keepdim=True).log())
        if gradients:  # the weighted probability, less the weight at the target
            block_mv.copy_(probabilities_mv.mul_(weights))
    losses_m = torch.cat(losses).squeeze(1)
    if gradients:  # by places among all: scatter_ takes as long as there are columns
        of_targets_m = ((-losses_m).exp() - 1.0).mul_(weights_m)
        places_m = torch.arange(len(targets_m), device=targets_m.device) * logits_mv.shape[1]
        logits_mv.view(-1).index_copy_(
            0, places_m.add_(targets_m), of_targets_m.to(logits_mv.dtype)
        )
    return losses_m
