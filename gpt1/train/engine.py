"""How a step is taken: a plain engine for one CPU process, and its twin over DeepSpeed for several processes or a GPU.

Both take the same losses, clip alike and call the same authors' Adam, so they give the same numbers.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gpt1.config import Optimization
from gpt1.errors import UserError
from gpt1.model.gpt import Dropout
from gpt1.train import optim
from gpt1.train.launch import Machine, free_port


def autocast(device: torch.device, recipe: Optimization) -> torch.autocast:
    """The arithmetic that the recipe's precision asks for: weights stay float32, bf16 runs matrix products in bfloat16."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=recipe.precision == "bf16")


class PlainEngine:
    """One process, plain torch."""

    rank, processes = 0, 1

    def __init__(self, objective: nn.Module, recipe: Optimization) -> None:
        self.device = torch.device("cpu")
        self.objective = objective
        self.optimizer = optim.adam(objective, recipe)
        self.recipe = recipe

    def forward(self, batch: Any, dropout: Dropout) -> dict[str, Tensor]:
        """The objective's losses of one micro-batch."""
        with autocast(self.device, self.recipe):
            losses: dict[str, Tensor] = self.objective(batch, dropout)
        return losses

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of one micro-batch that makes up `share` of the global batch."""
        torch.autograd.backward(loss * share)

    def step(self, rates: optim.Rates) -> float:
        """Clip, step, clear the gradients. Returns the gradient's global norm before clipping."""
        norm = optim.clip_gradients(self.objective.parameters(), self.recipe.max_gradient_norm)
        optim.set_rates(self.optimizer, rates)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm

    def total(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        return values

    def leave(self) -> None:
        """There is nobody to take leave of."""


class DeepSpeedEngine:
    """One of several processes, or one with a GPU: DeepSpeed at stage 0 averages gradients and accumulates micro-batches."""

    def __init__(self, objective: nn.Module, recipe: Optimization, machine: Machine, micro_batches: int) -> None:
        for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"),
                            ("MASTER_PORT", str(free_port()))):
            os.environ.setdefault(name, value)
        os.environ["DS_ACCELERATOR"] = machine.device
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)  # its import sets a level of its own
        self.device = torch.device(machine.device, machine.local_rank) if machine.device == "cuda" else torch.device("cpu")
        self.rank, self.processes = machine.rank, machine.processes
        self.objective = objective.to(self.device)
        self.optimizer = optim.adam(objective, recipe)
        self.recipe = recipe
        settings = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": micro_batches, "zero_optimization": {"stage": 0},
                    "torch_autocast": {"enabled": recipe.precision == "bf16", "dtype": "bfloat16"}, "communication_data_type": "fp32",
                    "zero_allow_untested_optimizer": True, "gradient_clipping": 0.0}  # clipping is ours: it must be the authors'
        if machine.device == "cuda":
            torch.cuda.set_device(self.device)
        # Processes of a CPU would exchange by a module compiled at first use: no compiler, or a space in its path, and nothing would run.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(dist_backend="nccl" if machine.device == "cuda" else "gloo", verbose=False)
        self.engine, *_ = deepspeed.initialize(model=objective, optimizer=self.optimizer, config=settings)

    def forward(self, batch: Any, dropout: Dropout) -> dict[str, Tensor]:
        """The objective's losses of one micro-batch."""
        losses: dict[str, Tensor] = self.engine(batch, dropout)
        return losses

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of one micro-batch that makes up `share` of the global batch; DeepSpeed divides by the processes."""
        self.engine.backward(loss * (share * self.processes), scale_wrt_gas=False)
        if not self.engine.is_gradient_accumulation_boundary():
            self.engine.step()  # only counts the micro-batch

    def step(self, rates: optim.Rates) -> float:
        """Clip, step, clear the gradients. Returns the gradient's global norm before clipping."""
        norm = optim.clip_gradients(self.objective.parameters(), self.recipe.max_gradient_norm)
        optim.set_rates(self.optimizer, rates)
        self.engine.step()
        return norm

    def total(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.processes > 1:
            torch.distributed.all_reduce(values)
        return values

    def leave(self) -> None:
        """End the exchange before this process ends early, once all have come here: threads of it that are left could abort the exit."""
        total_floats(self, [0.0])
        torch.distributed.destroy_process_group()


Engine = PlainEngine | DeepSpeedEngine


def make_engine(objective: nn.Module, recipe: Optimization, machine: Machine, micro_batches: int) -> Engine:
    """The plain engine for one CPU process, DeepSpeed otherwise; `micro_batches` is how many each process takes in one update."""
    if machine.processes == 1 and machine.device == "cpu":
        return PlainEngine(objective, recipe)
    return DeepSpeedEngine(objective, recipe, machine, micro_batches)


def total_floats(engine: Engine, values: Sequence[float]) -> list[float]:
    """Sums of numbers over all processes, in float64."""
    return [float(value) for value in engine.total(torch.tensor(values, dtype=torch.float64, device=engine.device)).tolist()]


def finite(values: dict[str, float], update: int, place: str) -> dict[str, float]:
    """The values as they are. Raises UserError naming the update where one is not a finite number."""
    for name, value in values.items():
        if value != value or value in (float("inf"), float("-inf")):
            raise UserError(f"{place}: {name} is {value} at update {update}, expected a finite number; lower the learning rate, lengthen "
                            "the warm-up, or set precision to fp32 in params.yaml, and look at the curve before that update")
    return values
