"""Adam's state, from ZeRO stage 1 on shared out among processes: the authors' clipping there, and
one whole state from all shares.

Stage 1 shares what Adam keeps, stage 2 the gradients too, stage 3 the weights too, during an
update; the numbers are those of stage 0.
"""

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from gpt1.train.optim import MOMENTS, square_norm


class Shards:
    """This process's share, in a DeepSpeed engine of stage 1, 2 or 3. All processes must call all
    methods alike.

    Between updates every process has all weights, so that evaluations and snapshots know nothing of
    stages.
    """

    def __init__(
        self, engine: Any, optimizer: torch.optim.Optimizer, stage: int, max_norm: float
    ) -> None:
        self.engine, self.optimizer, self.stage, self.max_norm = engine, optimizer, stage, max_norm
        self.zero = engine.optimizer
        self.flat: list[Tensor] = (
            self.zero.fp32_partitioned_groups_flat
            if stage == 3
            else self.zero.single_partition_of_fp32_groups
        )
        for shard in self.flat:
            optimizer.state[shard] = {
                "step": torch.zeros((), device=shard.device),
                **{moment: torch.zeros_like(shard.detach()) for moment in MOMENTS},
            }
        if stage < 3:
            # else known to it only after a first step: too late for `scatter`
            self.zero._lazy_init_hp_params_optimizer_state()
        self.whole = ExitStack()
        self._gather_weights(None)

    def begin(self) -> None:
        """Leave weights to their owners, and forget gradients of micro-batches whose backward
        passes are complete.
        """
        self.whole.close()
        self.zero.zero_grad()
        for kept in (self.zero.averaged_gradients, getattr(self.zero, "all_grad_tensors", {})):
            kept.update(dict.fromkeys(kept))

    @torch.no_grad()
    def step(self) -> float:
        """Clip, step, clear the gradients; no step where the norm is not finite. Returns the norm
        over all shares before clipping.

        The clipping is the authors': DeepSpeed's own divides by norm + 1e-6.
        """
        gradients = [part for parts in self.zero.averaged_gradients.values() for part in parts]
        square = square_norm(gradients)
        torch.distributed.all_reduce(square)
        norm = float(square.sqrt())
        if norm > self.max_norm:
            torch._foreach_mul_(gradients, self.max_norm / norm)
        if math.isfinite(norm):
            self.engine.step()
        else:
            self.begin()
        self._gather_weights(None)
        return norm

    def gather(self, wanted: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Whole weights and moments, on the CPU, of all shares; empty where not wanted."""
        from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

        weights, moments = dict[str, Tensor](), dict[str, Tensor]()
        for name, parameter in self.engine.module.named_parameters():
            weight = {name: safe_get_full_fp32_param(parameter)}
            averages = {
                f"{moment}.{name}": safe_get_full_optimizer_state(parameter, moment)
                for moment in MOMENTS
            }
            if wanted:
                weights |= {key: value.cpu() for key, value in weight.items()}
                moments |= {key: value.cpu() for key, value in averages.items()}
        return weights, moments

    @torch.no_grad()
    def scatter(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], steps: int
    ) -> None:
        """Put whole weights and moments back into the shares, after so many steps."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        self.whole.close()
        self._gather_weights(0)
        for name, parameter in self.engine.module.named_parameters():
            parameter.copy_(weights[name])
        self.whole.close()
        for name, parameter in self.engine.module.named_parameters():
            safe_set_full_fp32_param(parameter, weights[name].to(self.flat[0].device))
            for moment in MOMENTS:
                safe_set_full_optimizer_state(
                    parameter, moments[f"{moment}.{name}"].to(self.flat[0].device), moment
                )
        for shard in self.flat:
            self.optimizer.state[shard]["step"].fill_(steps)
        self._gather_weights(None)

    def _gather_weights(self, source: int | None) -> None:
        """Have all weights in every process until `whole` is closed; what process `source`, if
        given, made of them then holds.
        """
        if self.stage == 3:
            import deepspeed

            self.whole.enter_context(
                deepspeed.zero.GatheredParameters(
                    list(self.engine.module.parameters()), modifier_rank=source
                )
            )
