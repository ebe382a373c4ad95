"""How a step is taken: a plain engine for one process, and its twin over DeepSpeed for several.

Both take the same losses, clip alike and call the same authors' Adam, so they give the same
numbers. Whether a step is taken is decided where the gradients lie: a GPU waits for nobody.
"""

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gpt1.base.cores import free_port
from gpt1.base.errors import UserError
from gpt1.model.device import Copy
from gpt1.params.schema import Optimization
from gpt1.train import optim
from gpt1.train.launch import Machine
from gpt1.train.zero import ShardedAdam

# gradients that are exchanged at once, at stage 1 while others are still to come
BUCKET_NUMBERS = 20_000_000


class PlainEngine:
    """One process, plain torch."""

    rank, processes, stage = 0, 1, 0

    def __init__(self, objective: nn.Module, recipe: Optimization) -> None:
        self.device = next(objective.parameters()).device
        self.objective, self.parameters = objective, list(objective.parameters())
        self.optimizer = optim.adam(objective, recipe)
        self.recipe = recipe

    def begin(self, _micro_batches: int) -> None:
        """Begin an update of so many micro-batches; gradients of one that was not finished are
        forgotten.
        """
        self.optimizer.zero_grad()

    def forward(self, batch: Any, dropout: float) -> dict[str, Tensor]:
        """The objective's losses of one micro-batch."""
        losses: dict[str, Tensor] = self.objective(batch, dropout)
        return losses

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of one micro-batch that makes up `share` of the global batch."""
        torch.autograd.backward(loss * share)

    def step(self, rates: optim.Rates, told_n: Tensor) -> Copy:
        """Clip, step, clear the gradients; no step where a number is not finite.

        Gives the sums of `told_n` (float64) over all processes, and after them the gradient's
        global norm before clipping.
        """
        gradients = optim.gradients_of(self.parameters)
        totals_n = torch.cat([told_n, optim.square_norm(gradients)[None]])
        found = optim.prepare_step(self.optimizer, gradients, totals_n, rates, self.recipe)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return found

    def state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights by name, and Adam's running averages as `<moment>.<name>`: the tensors
        themselves, where they lie.
        """
        return dict(self.objective.named_parameters()), optim.moments(
            self.objective, self.optimizer
        )

    def load(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], steps: int
    ) -> None:
        """Put back what `state` gave after so many steps."""
        optim.put_back(self.objective, self.optimizer, weights, moments, steps)

    def total(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        return values

    def leave(self) -> None:
        """There is nobody to take leave of."""

    def close(self) -> None:
        """Nothing holds this engine."""


class DeepSpeedEngine:
    """One of several processes: DeepSpeed averages gradients, and at ZeRO stage 1 does so while the
    backward pass goes on and shares out what Adam keeps.
    """

    def __init__(self, objective: nn.Module, recipe: Optimization, machine: Machine) -> None:
        # DeepSpeed takes the GPU of this number: 0 in a task that srun lets see but its own; and it
        # wants Open MPI's to be the same
        os.environ["LOCAL_RANK"] = str(machine.local_rank)
        if "OMPI_COMM_WORLD_LOCAL_RANK" in os.environ:
            os.environ["OMPI_COMM_WORLD_LOCAL_RANK"] = str(machine.local_rank)
        for name, value in (
            ("RANK", "0"),
            ("WORLD_SIZE", "1"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", str(free_port())),
        ):
            os.environ.setdefault(name, value)
        os.environ["DS_ACCELERATOR"] = machine.device
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)  # its import sets a level of its own
        self.device = (
            torch.device(machine.device, machine.local_rank)
            if machine.device == "cuda"
            else torch.device("cpu")
        )
        self.rank, self.processes = machine.rank, machine.processes
        self.objective = objective.to(self.device)
        self.optimizer = optim.adam(objective, recipe)
        self.recipe = recipe
        self.stage = zero_stage(machine)
        settings = settings_of(self.stage)
        check_settings(settings)
        if machine.device == "cuda":
            torch.cuda.set_device(self.device)
        # Processes of a CPU would exchange by a module compiled at first use: no compiler, or a
        # space in its path, and nothing would run.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(dist_backend=machine.backend, verbose=False)
        warnings.filterwarnings(
            "ignore", ".torch.distributed", FutureWarning
        )  # DeepSpeed calls what has a newer name
        self.engine, *_ = deepspeed.initialize(
            model=objective, optimizer=self.optimizer, config=settings
        )
        self.sharded = ShardedAdam(self.engine, self.optimizer) if self.stage else None

    def begin(self, micro_batches: int) -> None:
        """Begin an update of so many micro-batches; gradients of one that was not finished are
        forgotten.
        """
        self.micro_batches, self.taken = micro_batches, 0
        self.engine.zero_grad()
        if self.sharded:
            self.sharded.begin()

    def forward(self, batch: Any, dropout: float) -> dict[str, Tensor]:
        """The objective's losses of one micro-batch."""
        losses: dict[str, Tensor] = self.engine(batch, dropout)
        return losses

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of one micro-batch that makes up `share` of the global batch; DeepSpeed
        divides by the processes.
        """
        self.taken += 1
        self.engine.set_gradient_accumulation_boundary(self.taken == self.micro_batches)
        self.engine.backward(loss * (share * self.processes))

    def step(self, rates: optim.Rates, told_n: Tensor) -> Copy:
        """Clip, step, clear the gradients; no step where a number is not finite.

        Gives the sums of `told_n` (float64) over all processes, and after them the gradient's
        global norm before clipping. All that the processes tell one another beside gradients is
        this one message.
        """
        self.taken = 0
        gradients = (
            self.sharded.gradients()
            if self.sharded
            else optim.gradients_of(self.objective.parameters())
        )
        square = optim.square_norm(gradients)
        # at stage 0 all have all gradients: one tells of them
        own = square if self.sharded or self.rank == 0 else torch.zeros_like(square)
        totals_n = self.total(torch.cat([told_n, own[None]]))
        found = optim.prepare_step(self.optimizer, gradients, totals_n, rates, self.recipe)
        self.engine.step()
        self.engine.zero_grad()
        return found

    def state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights by name, and Adam's running averages as `<moment>.<name>`: the tensors
        themselves, where they lie.

        What several processes share is put together anew on rank 0, and nothing is given elsewhere;
        then all must call it.
        """
        if self.sharded:
            return self.sharded.gather(self.rank == 0)
        return dict(self.objective.named_parameters()), optim.moments(
            self.objective, self.optimizer
        )

    def load(
        self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], steps: int
    ) -> None:
        """Put back what `state` gave after so many steps, at any number of processes, at either
        stage; all must call it.
        """
        if self.sharded:
            self.sharded.scatter(weights, moments, steps)
        else:
            optim.put_back(self.objective, self.optimizer, weights, moments, steps)

    def total(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.processes > 1:
            torch.distributed.all_reduce(values)
        return values

    def leave(self) -> None:
        """End the exchange before this process ends early, once all have come here: threads of it
        that are left could abort the exit.
        """
        total_floats(self, [0.0])
        torch.distributed.destroy_process_group()

    def close(self) -> None:
        """Take off DeepSpeed's hooks, which from stage 1 on would hold engine and network for ever;
        the weights stay.
        """
        self.engine.destroy()


Engine = PlainEngine | DeepSpeedEngine


def make_engine(objective: nn.Module, recipe: Optimization, machine: Machine) -> Engine:
    """The plain engine for one process, unless DeepSpeed is asked for; DeepSpeed for several."""
    if machine.processes == 1 and not machine.deepspeed:
        return PlainEngine(objective.to(machine.device), recipe)
    return DeepSpeedEngine(objective, recipe, machine)


def zero_stage(machine: Machine) -> int:
    """GPT1_ZERO_STAGE, or 1 on several GPUs by NCCL, else 0.

    Both exchange as much. Stage 0 does so after the backward pass: eight H100 with 4,096 tokens
    each compute for some 8 ms and would then exchange for 3.
    """
    if machine.zero_stage is not None:
        return machine.zero_stage
    return int(machine.processes > 1 and machine.backend == "nccl")


def settings_of(stage: int) -> dict[str, Any]:
    """What DeepSpeed is told. Batches, precision and clipping are ours: they must be the
    authors'.
    """
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,  # `backward` says which is the last
        "zero_optimization": {
            "stage": stage,
            "overlap_comm": True,
            "reduce_bucket_size": BUCKET_NUMBERS,
            "compute_grad_norm": stage == 0,
        },
        "communication_data_type": "fp32",
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,
    }


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what this DeepSpeed does not know: it would pass over a key of the first level without
    a word. Raises UserError.
    """
    from deepspeed import version
    from deepspeed.runtime import constants
    from deepspeed.runtime.zero.config import ZERO_OPTIMIZATION

    known = {value for value in vars(constants).values() if isinstance(value, str)}
    if unknown := sorted(settings.keys() - known - {ZERO_OPTIMIZATION}):
        raise UserError(
            f"DeepSpeed: expected a version that knows its settings {', '.join(unknown)}, found"
            f" {version}; install that of constraints.txt"
        )


def total_floats(engine: Engine, values: Sequence[float]) -> list[float]:
    """Sums of numbers over all processes, in float64."""
    return [
        float(value)
        for value in engine.total(
            torch.tensor(values, dtype=torch.float64, device=engine.device)
        ).tolist()
    ]


def on_any(engine: Engine, flag: bool) -> bool:
    """Whether a flag is raised in any process; all must ask."""
    return total_floats(engine, [float(flag)])[0] > 0 if engine.processes > 1 else flag


def finite(values: dict[str, float], update: int, place: str) -> dict[str, float]:
    """The values as they are. Raises UserError naming the update where one is not a finite
    number.
    """
    for name, value in values.items():
        if value != value or value in (float("inf"), float("-inf")):
            raise UserError(
                f"{place}: {name} is {value} at update {update}, expected a finite number; lower"
                " the learning rate, lengthen the warm-up, or set precision to fp32 in"
                " params.yaml, and look at the curve before that update"
            )
    return values
