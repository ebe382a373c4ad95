"""Equations 1, 4 and 5 of the paper as pure functions, and the soft labels of STS-B.

Shape letters: n sequences, t positions, d width, v rows of the softmax, b examples, o outputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt1.train.softmax import tied_softmax


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
