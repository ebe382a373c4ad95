"""Equations 1, 4 and 5 of the paper as pure functions, and the soft labels of STS-B.

Shape letters: n sequences, t positions, d width, v rows of the softmax, b examples, o outputs.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

SCORE_CLASSES = 6  # STS-B scores lie between 0 and 5


def language_model(hidden_ntd: Tensor, embeddings_vd: Tensor, targets_nt: Tensor, real_nt: Tensor) -> Tensor:
    """Equation 1 for each sequence: mean negative log-likelihood [n] in nats of its real targets.

    The softmax is tied to the embeddings, over the rows given. `real_nt` is true where a target counts; each sequence needs one.
    """
    logits_mv = F.linear(hidden_ntd[real_nt], embeddings_vd).float()
    losses_m = F.cross_entropy(logits_mv, targets_nt[real_nt], reduction="none")
    sequence_m = torch.arange(len(real_nt), device=real_nt.device)[:, None].expand_as(real_nt)[real_nt]
    sums_n = torch.zeros(len(real_nt), dtype=losses_m.dtype, device=losses_m.device).index_add(0, sequence_m, losses_m)
    return sums_n / real_nt.sum(dim=1)


def classification(logits_bo: Tensor, labels_b: Tensor) -> Tensor:
    """Equation 4 for each example: negative log-likelihood [b] of its class."""
    return F.cross_entropy(logits_bo.float(), labels_b, reduction="none")


def score_distribution(scores_b: Tensor) -> Tensor:
    """Soft labels [b, 6] of scores in 0..5: a score y puts y - floor(y) on floor(y) + 1 and the rest on floor(y) (Tai et al. 2015)."""
    classes_c = torch.arange(SCORE_CLASSES, device=scores_b.device, dtype=scores_b.dtype)
    return (1 - (scores_b[:, None] - classes_c).abs()).clamp(min=0)


def soft_classification(logits_bo: Tensor, distribution_bo: Tensor) -> Tensor:
    """Cross-entropy [b] against a distribution over classes instead of one class."""
    return F.cross_entropy(logits_bo.float(), distribution_bo, reduction="none")


def finetune(task_losses_b: Tensor, lm_losses_n: Tensor, lambda_lm: float) -> Tensor:
    """Equation 5: mean task loss over examples + lambda · mean language-model loss over sequences."""
    return task_losses_b.mean() + lambda_lm * lm_losses_n.mean()
