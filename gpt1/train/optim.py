"""The authors' optimizer: Adam with decoupled decay, clipping by the global norm (paper, section 4.1, and their code)."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gpt1.config import Optimization
from gpt1.train.schedules import schedule


class Rates(NamedTuple):
    """What torch's AdamW must be told at one update so that its step is the authors'."""

    learning_rate: float
    epsilon: float
    weight_decay: float


def rates(recipe: Optimization, update: int, updates: int, warmup: float) -> Rates:
    """The authors' Adam at `update` (from 1) in terms of AdamW.

    They add epsilon to the uncorrected sqrt(v) and multiply the decay by the bias-corrected rate; `warmup` is a share of `updates`.
    """
    root = math.sqrt(1.0 - recipe.beta2 ** update)
    return Rates(recipe.learning_rate * schedule(recipe.schedule, update, updates, warmup), recipe.epsilon / root,
                 recipe.weight_decay * root / (1.0 - recipe.beta1 ** update))


def adam(model: nn.Module, recipe: Optimization) -> torch.optim.AdamW:
    """Fused AdamW over a model's parameters: the first group, of rank above 1, decays; biases and gains do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [{"params": [parameter for parameter in parameters if parameter.ndim > 1]},
              {"params": [parameter for parameter in parameters if parameter.ndim <= 1]}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(recipe.beta1, recipe.beta2), fused=True)


def set_rates(optimizer: torch.optim.Optimizer, values: Rates) -> None:
    """Tell the two groups of `adam` the rates of the coming step."""
    for group, decay in zip(optimizer.param_groups, (values.weight_decay, 0.0), strict=True):
        group.update(lr=values.learning_rate, eps=values.epsilon, weight_decay=decay)


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients by max_norm / max(norm, max_norm); returns the global norm before."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = float(torch.nn.utils.get_total_norm(gradients))
    if norm > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / norm)
    return norm
