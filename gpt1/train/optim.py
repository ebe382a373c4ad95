"""The authors' optimizer: Adam with decoupled decay, clipping by the global norm (paper, section
4.1, and their code).
"""

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.device import Copy, to_host
from gpt1.params.schema import Optimization
from gpt1.train.schedules import schedule

MOMENTS = ("exp_avg", "exp_avg_sq")
ROW = 1024


class Rates(NamedTuple):
    """What torch's AdamW must be told at one update so that its step is the authors'."""

    learning_rate: float
    epsilon: float
    weight_decay: float


def rates(recipe: Optimization, update: int, updates: int, warmup: float) -> Rates:
    """The authors' Adam at `update` (from 1) in terms of AdamW.

    They add epsilon to the uncorrected sqrt(v) and multiply the decay by the bias-corrected rate;
    `warmup` is a share of `updates`.
    """
    root = math.sqrt(1.0 - recipe.beta2**update)
    return Rates(
        recipe.learning_rate * schedule(recipe.schedule, update, updates, warmup),
        recipe.epsilon / root,
        recipe.weight_decay * root / (1.0 - recipe.beta1**update),
    )


class AdamW(torch.optim.AdamW):
    """torch's own, whose methods are taken out of wrappers that import its compiler, a second's
    work, to tell it to leave them alone.
    """

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)


def adam(model: nn.Module, recipe: Optimization) -> torch.optim.AdamW:
    """Fused AdamW over a model's parameters: the first group, of rank above 1, decays; biases and
    gains do not.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1]},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1]},
    ]
    return AdamW(groups, lr=recipe.learning_rate, betas=(recipe.beta1, recipe.beta2), fused=True)


def set_rates(optimizer: torch.optim.Optimizer, values: Rates) -> None:
    """Tell the two groups of `adam` the rates of the coming step."""
    for group, decay in zip(optimizer.param_groups, (values.weight_decay, 0.0), strict=True):
        group.update(lr=values.learning_rate, eps=values.epsilon, weight_decay=decay)


def square_norm(tensors: list[Tensor]) -> Tensor:
    """The sum of the squares of all numbers, float64.

    By short rows on a CPU: there a running float32 sum over the 31 M numbers of the embedding
    matrix is wrong in the third digit.
    """
    if tensors[0].is_cuda:
        norms = torch.stack(torch._foreach_norm(tensors))
    else:
        flat = [(tensor.flatten(), tensor.numel() // ROW * ROW) for tensor in tensors]
        rows = [numbers[:whole].view(-1, ROW) for numbers, whole in flat if whole]
        rest = torch.cat([numbers[whole:] for numbers, whole in flat])
        rows.append(F.pad(rest, (0, -len(rest) % ROW)).view(-1, ROW))
        norms = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in rows])
    return norms.double().square().sum()


def gradients_of(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The gradients of the parameters that have one."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


@torch.no_grad()
def clip_gradients(gradients: list[Tensor], norm: Tensor, max_norm: float) -> None:
    """Scale all gradients by max_norm / max(norm, max_norm), `norm` being that of all together."""
    torch._foreach_mul_(gradients, (max_norm / norm).clamp(max=1.0).to(gradients[0].dtype))


@torch.no_grad()
def prepare_step(
    optimizer: torch.optim.Optimizer,
    gradients: list[Tensor],
    totals_n: Tensor,
    rates: Rates,
    recipe: Optimization,
) -> Copy:
    """Clip, and set the optimizer of `adam` up for its step, which changes nothing where one of the
    totals is not finite; the last of them is the square of all gradients' norm.

    Gives the totals with the norm in its place. No step waits for them: the host may read them
    while it is taken.
    """
    norm = totals_n[-1].sqrt_()
    clip_gradients(gradients, norm, recipe.max_gradient_norm)
    set_rates(optimizer, rates)
    # what torch's gradient scaler would set: fused AdamW leaves all as it is where it is 1
    setattr(optimizer, "found_inf", 1.0 - totals_n.isfinite().all().float())  # noqa: B010
    return to_host(totals_n)


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's running averages as `<moment>.<parameter>`: the optimizer's own tensors. Empty before
    the first step.
    """
    return {
        f"{moment}.{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        for moment in MOMENTS
        if moment in optimizer.state[parameter]
    }


@torch.no_grad()
def put_back(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    weights: Mapping[str, Tensor],
    averages: Mapping[str, Tensor],
    steps: int,
) -> None:
    """Set a model's parameters, and its Adam to the running averages of `moments` after so many
    steps.
    """
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
        optimizer.state[parameter] = {
            "step": torch.tensor(float(steps), device=parameter.device),
            **{
                moment: averages[f"{moment}.{name}"].to(parameter.device, copy=True)
                for moment in MOMENTS
            },
        }
