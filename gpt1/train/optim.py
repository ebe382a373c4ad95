"""The authors' Adam with decoupled decay, clipping by the global norm (paper, section 4.1)."""

import inspect
import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.params.schema import Optimization
from gpt1.train.schedules import schedule

MOMENTS = ("exp_avg", "exp_avg_sq")
ROW = 1024


class Rates(NamedTuple):
    """Settings of torch's AdamW at one update."""

    learning_rate: float
    epsilon: float
    weight_decay: float


def rates(recipe: Optimization, update: int, updates: int, warmup: float) -> Rates:
    """Return the settings with which AdamW's step at `update` (from 1) is the authors': they add
    epsilon to the uncorrected sqrt(v) and multiply the decay by the bias-corrected rate. `warmup`
    is a share of `updates`.
    """
    # torch: m / (1 - b1^t) / (sqrt(v) / sqrt(1 - b2^t) + eps). The authors: m * sqrt(1 - b2^t) / (1
    # - b1^t) / (sqrt(v) + eps). They are equal where torch's eps is theirs over sqrt(1 - b2^t).
    root = math.sqrt(1.0 - recipe.beta2**update)
    return Rates(
        recipe.learning_rate * schedule(recipe.schedule, update, updates, warmup),
        recipe.epsilon / root,
        recipe.weight_decay * root / (1.0 - recipe.beta1**update),
    )


class AdamW(torch.optim.AdamW):
    """torch's AdamW without what imports torch's compiler, which takes a second."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)


def adam(model: nn.Module, recipe: Optimization) -> torch.optim.AdamW:
    """Return fused AdamW. Its first group decays; biases and gains do not."""
    # Rank above 1 tells matrices and embeddings from biases and gains, as in the authors' code.
    parameters = list(model.parameters())
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1]},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1]},
    ]
    return AdamW(groups, lr=recipe.learning_rate, betas=(recipe.beta1, recipe.beta2), fused=True)


def set_rates(optimizer: torch.optim.Optimizer, values: Rates) -> None:
    """Set the rates of the coming step."""
    # Epsilon and decay change with every update too: see `rates`.
    for group, decay in zip(optimizer.param_groups, (values.weight_decay, 0.0), strict=True):
        group.update(lr=values.learning_rate, eps=values.epsilon, weight_decay=decay)


def gradients_of(parameters: Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients of the parameters that have one."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def global_norm(tensors: list[Tensor]) -> Tensor:
    """Return the norm of all numbers together, in float64."""
    if tensors[0].is_cuda:
        # On a GPU one kernel for all tensors; its sums are made in a tree, and so exact enough.
        norms = torch.stack(torch._foreach_norm(tensors))
    else:
        # short rows: a running float32 sum over 31 M numbers is wrong in the third digit
        flat = [(tensor.flatten(), tensor.numel() // ROW * ROW) for tensor in tensors]
        rows = [numbers[:whole].view(-1, ROW) for numbers, whole in flat if whole]
        rest = torch.cat([numbers[whole:] for numbers, whole in flat])
        rows.append(F.pad(rest, (0, -len(rest) % ROW)).view(-1, ROW))
        norms = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in rows])
    return norms.double().square().sum().sqrt()


@torch.no_grad()
def clip_gradients(gradients: list[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients by max_norm / max(norm, max_norm). Returns their norm before."""
    norm = global_norm(gradients)
    # Multiplied even where nothing is to be clipped: to ask first would wait for the device.
    torch._foreach_mul_(gradients, (max_norm / norm).clamp(max=1.0).to(gradients[0].dtype))
    return norm
