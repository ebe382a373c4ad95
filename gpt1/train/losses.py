"""Equations 1, 4 and 5 of the paper as pure functions, the soft labels of STS-B, and cross-entropy
through the softmax that is tied to the embeddings, in blocks of rows with the gradient by hand: of
the [tokens, vocabulary] logits only ROWS rows exist at a time.

Shape letters: n sequences, t positions, m targets, d width, v rows of the softmax, b examples, o
outputs.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

ROWS = 1024  # whose logits stand in memory together: enough for matrix products at full speed
CACHED_ELEMENTS = (
    1 << 19
)  # of the logits that are normalised together: their float32 copies stay in the processor's cache


class LanguageModelLoss(NamedTuple):
    """Mean over sequences of equation 1, to be minimised, and the loss of each sequence [n], to be
    looked at; in nats a token.
    """

    mean: Tensor
    losses_n: Tensor


def language_model(
    hidden_ntd: Tensor, embeddings_vd: Tensor, targets_nt: Tensor, real_nt: Tensor
) -> LanguageModelLoss:
    """Equation 1 for each sequence: mean negative log-likelihood of its real targets.

    The softmax is tied to the embeddings, over the rows given. `real_nt` is true where a target
    counts; each sequence needs one.
    """
    sequence_m = torch.arange(len(real_nt), device=real_nt.device)[:, None].expand_as(real_nt)[
        real_nt
    ]
    weights_m = 1.0 / real_nt.sum(dim=1)[sequence_m] / len(real_nt)
    mean, losses_m = tied_softmax(
        hidden_ntd[real_nt], embeddings_vd, targets_nt[real_nt], weights_m
    )
    return LanguageModelLoss(
        mean,
        torch.zeros_like(losses_m[: len(real_nt)]).index_add(
            0, sequence_m, losses_m * weights_m * len(real_nt)
        ),
    )


def classification(logits_bo: Tensor, labels_b: Tensor) -> Tensor:
    """Equation 4 for each example: negative log-likelihood [b] of its class."""
    return F.cross_entropy(logits_bo.float(), labels_b, reduction="none")


def score_distribution(scores_b: Tensor, classes: int) -> Tensor:
    """Soft labels [b, classes] of scores from 0 to classes - 1, which is 5 in STS-B: a score y puts
    y - floor(y) on floor(y) + 1 and the rest on floor(y) (Tai et al. 2015).
    """
    classes_c = torch.arange(classes, device=scores_b.device, dtype=scores_b.dtype)
    return (1 - (scores_b[:, None] - classes_c).abs()).clamp(min=0)


def soft_classification(logits_bo: Tensor, distribution_bo: Tensor) -> Tensor:
    """Cross-entropy [b] against a distribution over classes instead of one class."""
    return F.cross_entropy(logits_bo.float(), distribution_bo, reduction="none")


def finetune(task_losses_b: Tensor, lm_loss: Tensor, lambda_lm: float) -> Tensor:
    """Equation 5: mean task loss over examples + lambda · mean language-model loss over
    sequences.
    """
    return task_losses_b.mean() + lambda_lm * lm_loss


def tied_softmax(
    hidden_md: Tensor, embeddings_vd: Tensor, targets_m: Tensor, weights_m: Tensor
) -> tuple[Tensor, Tensor]:
    """Weighted sum of the negative log-likelihoods of the targets, which has gradients, and these
    [m] by themselves, which have none.

    Products are in the precision in force (autocast), sums and the softmax in float32.
    """
    total, losses_m = _TiedSoftmax.apply(hidden_md, embeddings_vd, targets_m, weights_m)  # type: ignore[no-untyped-call]
    return total, losses_m


class _TiedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_md: Tensor, embeddings_vd: Tensor, targets_m: Tensor, weights_m: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Losses and, while the logits are there, gradients."""
        wanted = any(ctx.needs_input_grad)
        low_precision = torch.is_autocast_enabled(hidden_md.device.type)
        dtype = (
            torch.get_autocast_dtype(hidden_md.device.type) if low_precision else hidden_md.dtype
        )
        rows_vd, losses_m = (
            embeddings_vd.to(dtype),
            torch.empty(len(hidden_md), device=hidden_md.device),
        )
        hidden_gradient_md, rows_gradient_vd = torch.empty_like(hidden_md), None
        for start in range(0, len(hidden_md), ROWS):
            part = slice(start, start + ROWS)
            states_md = hidden_md[part].to(dtype)
            logits_mv = F.linear(states_md, rows_vd)
            losses_m[part] = _normalise(logits_mv, targets_m[part], weights_m[part], wanted)
            if wanted:
                hidden_gradient_md[part] = logits_mv @ rows_vd
                product_vd = (logits_mv.T @ states_md).to(embeddings_vd.dtype)
                rows_gradient_vd = (
                    product_vd if rows_gradient_vd is None else rows_gradient_vd.add_(product_vd)
                )
        ctx.gradients = (hidden_gradient_md, rows_gradient_vd)
        ctx.mark_non_differentiable(losses_m)
        return (losses_m * weights_m).sum(), losses_m

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor, _losses_gradient_m: Tensor
    ) -> tuple[Tensor, Tensor, None, None]:
        """The gradients that were made with the losses, times that of their sum."""
        hidden_gradient_md, rows_gradient_vd = ctx.gradients
        ctx.gradients = None
        return hidden_gradient_md.mul_(gradient), rows_gradient_vd.mul_(gradient), None, None


def _normalise(logits_mv: Tensor, targets_m: Tensor, weights_m: Tensor, gradients: bool) -> Tensor:
    """Losses [m]; where `gradients` are wanted, each logit is replaced by the gradient of the
    weighted losses at it.
    """
    rows, losses = max(1, CACHED_ELEMENTS // logits_mv.shape[1]), []
    parts = (
        torch.split(tensor, rows) for tensor in (logits_mv, targets_m[:, None], weights_m[:, None])
    )
    for block_mv, targets, weights in zip(*parts, strict=True):
        logs_mv = torch.log_softmax(block_mv, 1, dtype=torch.float32)
        losses.append(-logs_mv.gather(1, targets).squeeze(1))
        if gradients:
            probabilities_mv = logs_mv.exp_()
            probabilities_mv.scatter_add_(
                1, targets, torch.full_like(weights, -1.0, dtype=torch.float32)
            )
            block_mv.copy_(probabilities_mv.mul_(weights))
    return torch.cat(losses)
