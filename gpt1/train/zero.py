"""ZeRO stage 1: Adam's state shared out among processes, and one whole state from all shares. The
numbers are those of stage 0.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpt1.train.optim import MOMENTS


class ShardedAdam:
    """This process's share of Adam's state in a DeepSpeed engine of stage 1. All processes must
    call all methods alike; every process has all weights.
    """

    def __init__(self, engine: Any, optimizer: torch.optim.Optimizer) -> None:
        self.engine, self.optimizer = engine, optimizer
        self.zero = engine.optimizer
        self.shards: list[Tensor] = self.zero.single_partition_of_fp32_groups
        for shard in self.shards:
            optimizer.state[shard] = {
                "step": torch.zeros((), device=shard.device),
                **{moment: torch.zeros_like(shard.detach()) for moment in MOMENTS},
            }
        # else known to it only after a first step: too late for `scatter`
        self.zero._lazy_init_hp_params_optimizer_state()

    def begin(self) -> None:
        """Forget gradients of micro-batches whose backward passes are complete."""
        self.zero.zero_grad()
        for gradients in (self.zero.averaged_gradients, self.zero.all_grad_tensors):
            gradients.update(dict.fromkeys(gradients))

    def gradients(self) -> list[Tensor]:
        """This process's share of the gradient, averaged over all."""
        return [part for parts in self.zero.averaged_gradients.values() for part in parts]

    def gather(self, wanted: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights, and the whole moments of all shares on the CPU; empty where not wanted."""
        from deepspeed.utils import safe_get_full_optimizer_state

        weights, moments = dict(self.engine.module.named_parameters()), dict[str, Tensor]()
        for name, parameter in weights.items():
            for moment in MOMENTS:  # all processes ask, one keeps
                average = safe_get_full_optimizer_state(parameter, moment)
                if wanted:
                    moments[f"{moment}.{name}"] = average.cpu()
        return (weights, moments) if wanted else ({}, {})

    @torch.no_grad()
    def scatter(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], steps: int
    ) -> None:
        """Put whole weights and moments back into the shares, after so many steps."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        device = self.shards[0].device
        for name, parameter in self.engine.module.named_parameters():
            parameter.copy_(weights[name])
            safe_set_full_fp32_param(parameter, weights[name].to(device))
            for moment in MOMENTS:
                average = moments[f"{moment}.{name}"].to(device)
                safe_set_full_optimizer_state(parameter, average, moment)
        for shard in self.shards:
            self.optimizer.state[shard]["step"].fill_(steps)
