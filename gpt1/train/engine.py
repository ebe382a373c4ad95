"""One update, by plain torch in one process, by DeepSpeed in several, with the same numbers up to
rounding.
"""

import json
import logging
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn

from gpt1.base.errors import UserError
from gpt1.params.schema import Optimization
from gpt1.train import optim
from gpt1.train.launch import Machine
from gpt1.train.optim import MOMENTS

DEEPSPEED, AUTO = Path("conf/ds_config.json"), "auto"
NOT_THERE = (
    "train_batch_size",
    "optimizer",
    "scheduler",
    "bf16",
    "fp16",
)  # they follow from others


class Engine:
    """Computes updates with plain torch."""

    rank, processes = 0, 1

    def __init__(self, objective: nn.Module, recipe: Optimization) -> None:
        self.device = next(objective.parameters()).device
        self.objective, self.recipe = objective, recipe
        self.engine: Any = objective  # what a forward pass goes through
        self.optimizer = optim.adam(objective, recipe)

    def forward(self, batch: Any, dropout: float) -> dict[str, Tensor]:
        """Return the losses of one micro-batch."""
        losses: dict[str, Tensor] = self.engine(batch, dropout)
        return losses

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of a micro-batch that is `share` of the global batch."""
        # Shares of all micro-batches add up to 1, so the sum of gradients is that of the batch's
        # mean.
        torch.autograd.backward(loss * share)

    def step(self, rates: optim.Rates) -> Tensor:
        """Clip, step, clear the gradients. Returns their global norm before clipping."""
        gradients = optim.gradients_of(self.objective.parameters())
        # The order is the authors': clip, then Adam, whose decay does not pass through the
        # clipping.
        norm = optim.clip_gradients(gradients, self.recipe.max_gradient_norm)
        optim.set_rates(self.optimizer, rates)
        try:
            self.optimizer.step()
        except torch.OutOfMemoryError:  # smaller micro-batches would not help
            raise MemoryError("a GPU has no room for Adam's averages") from None
        self.optimizer.zero_grad()
        return norm

    def state(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Return weights by name, and averages as `<moment>.<name>`. All processes must call it."""
        weights = dict(self.objective.named_parameters())
        return weights, {
            f"{moment}.{name}": self.average(parameter, moment)
            for name, parameter in weights.items()
            for moment in MOMENTS
        }

    def average(self, parameter: nn.Parameter, moment: str) -> Tensor:
        """Return one of Adam's averages of a parameter."""
        average: Tensor = self.optimizer.state[parameter][moment]
        return average

    @torch.no_grad()
    def load(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], updates: int
    ) -> None:
        """Load what `state` gave after so many updates."""
        for name, parameter in self.objective.named_parameters():
            parameter.copy_(weights[name])
            self.optimizer.state[parameter] = {
                "step": torch.tensor(float(updates), device=self.device),
                **{moment: moments[f"{moment}.{name}"].to(self.device) for moment in MOMENTS},
            }

    def total(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes."""
        return values

    def leave(self) -> None:
        """Wait for the other processes, and leave their group."""

    def close(self) -> None:
        """Release what holds the objective."""


class DeepSpeedEngine(Engine):
    """One of several processes. DeepSpeed averages gradients, clips, and shards Adam's averages
    from ZeRO stage 1 on.
    """

    def __init__(
        self, objective: nn.Module, recipe: Optimization, machine: Machine, micro_batches: int
    ) -> None:
        os.environ["DS_ACCELERATOR"] = machine.device
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", ".torch.distributed", FutureWarning)
        if machine.device == "cuda":
            torch.cuda.set_device(machine.local_rank)
        else:  # it would compile a module of its own at first use, which needs a compiler
            deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed("nccl" if machine.device == "cuda" else "gloo", verbose=False)
        super().__init__(objective, recipe)
        self.rank, self.processes = machine.rank, machine.processes
        self.micro_batches = micro_batches
        config = deepspeed_config(recipe, micro_batches)
        try:
            self.engine, *_ = deepspeed.initialize(
                model=objective, optimizer=self.optimizer, config=config
            )
        except Exception as error:  # of every kind, each for another setting
            if isinstance(error, (RuntimeError, MemoryError)):
                raise
            raise UserError(f"{DEEPSPEED}: DeepSpeed refuses it ({error}); correct it") from None
        self.stage = self.engine.zero_optimization_stage()
        # of two groups of parameters DeepSpeed would find the first one's averages alone
        for group in self.optimizer.param_groups if self.stage else ():
            for shard in group["params"]:
                averages = {moment: torch.zeros_like(shard.detach()) for moment in MOMENTS}
                self.optimizer.state[shard] = {
                    "step": torch.zeros((), device=self.device)
                } | averages

    def backward(self, loss: Tensor, share: float) -> None:
        """Add a gradient, which DeepSpeed divides by processes and micro-batches."""
        self.engine.backward(loss * (share * self.processes * self.micro_batches))
        if not self.engine.is_gradient_accumulation_boundary():
            self.engine.step()

    def step(self, rates: optim.Rates) -> Tensor:
        """Clip, step, clear the gradients. Returns their global norm before clipping."""
        optim.set_rates(self.optimizer, rates)
        if self.stage:
            self.engine.step()
            return torch.as_tensor(self.engine.get_global_grad_norm())
        norm = optim.global_norm(optim.gradients_of(self.objective.parameters()))
        self.engine.step()
        return norm

    def average(self, parameter: nn.Parameter, moment: str) -> Tensor:
        """Collect one of Adam's averages from all processes."""
        from deepspeed.utils import safe_get_full_optimizer_state

        if not self.stage:
            return super().average(parameter, moment)
        average: Tensor = safe_get_full_optimizer_state(parameter, moment)
        return average

    def load(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], updates: int
    ) -> None:
        """Load what `state` gave, each process its shard."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        if not self.stage:
            super().load(weights, moments, updates)
            return
        # DeepSpeed finds the averages from the first step on: one of no length
        optim.set_rates(self.optimizer, optim.Rates(0.0, 1.0, 0.0))
        for _ in range(self.micro_batches):
            sums = [parameter.sum() for parameter in self.objective.parameters()]
            self.backward(torch.stack(sums).sum(), 0.0)
        self.engine.step()
        for name, parameter in self.objective.named_parameters():
            parameter.data.copy_(weights[name])
            safe_set_full_fp32_param(parameter, weights[name].to(self.device))
            for moment in MOMENTS:
                average = moments[f"{moment}.{name}"].to(self.device)
                safe_set_full_optimizer_state(parameter, average, moment)
        for state in self.optimizer.state.values():
            state["step"].fill_(updates)

    def total(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes."""
        distributed.all_reduce(values)
        return values

    def leave(self) -> None:
        """Leave the group together; its threads could abort an exit."""
        distributed.barrier()
        self.close()
        distributed.destroy_process_group()

    def close(self) -> None:
        """Remove DeepSpeed's hooks, which hold the objective."""
        if distributed.is_initialized():
            self.engine.destroy()


def make_engine(
    objective: nn.Module, recipe: Optimization, machine: Machine, micro_batches: int
) -> Engine:
    """Move the objective to its device, and return its engine."""
    device = "cpu" if machine.device == "cpu" else f"cuda:{machine.local_rank}"
    objective = objective.to(device)
    if machine.processes == 1:
        return Engine(objective, recipe)
    return DeepSpeedEngine(objective, recipe, machine, micro_batches)


def deepspeed_config(recipe: Optimization, micro_batches: int) -> dict[str, Any]:
    """Return conf/ds_config.json with "auto" filled in. Raises UserError where it is no JSON, or
    says what params.yaml or the machine says.
    """
    values = {
        "train_micro_batch_size_per_gpu": 1,  # rows are ours to count
        "gradient_accumulation_steps": micro_batches,
        "gradient_clipping": recipe.max_gradient_norm,
    }
    try:
        config = dict(json.loads(DEEPSPEED.read_text(encoding="utf-8")))
        stage = config.get("zero_optimization", {}).get("stage", 0)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{DEEPSPEED}: expected JSON ({error}); correct it") from None
    said = [name for name in NOT_THERE if name in config]
    said += [name for name, value in values.items() if config.get(name, value) not in (value, AUTO)]
    said += [f"zero_optimization.stage {stage!r}"] * (stage not in (0, 1, 2))
    if said:
        raise UserError(
            f"{DEEPSPEED}: expected ZeRO stage 0, 1 or 2, and nothing that params.yaml or the"
            f" machine says; found {', '.join(said)}: leave it out"
        )
    return config | values
