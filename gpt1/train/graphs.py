"""CUDA graphs of fine-tuning: what a GPU does with a micro-batch, forward and backward, is recorded
once for each shape of micro-batches and then launched as a whole.

A CPU has no graphs; there the same inputs are copied to the same places and computed as ever.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from gpt1.model.dropout import Dropout
from gpt1.params.schema import Optimization
from gpt1.train.engine import PlainEngine
from gpt1.train.objectives import Finetuning, Ready

LETTERS_OF_AN_ERROR = 120
Work = Callable[[Ready], tuple[dict[str, Tensor], tuple[Tensor, ...]]]


class Recording:
    """Losses and gradients of micro-batches of one shape: `losses` and `gradients` lie where they
    are until the next replay.
    """

    def __init__(self, work: Work, like: Ready, pool: Any) -> None:
        self.inputs: Ready = tree_map_only(Tensor, torch.clone, like)
        self.work, self.graph = work, None
        if like.tokens_bkt.is_cuda:
            self.graph = torch.cuda.CUDAGraph()
            # a thread that makes the next batch may go on meanwhile
            with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
                self.losses, self.gradients = work(self.inputs)

    def replay(self, ready: Ready) -> dict[str, Tensor]:
        """Compute those of a micro-batch; its losses."""
        for place, given in zip(tree_leaves(self.inputs), tree_leaves(ready), strict=True):
            if isinstance(given, Tensor):
                place.copy_(given)
        if self.graph is None:
            self.losses, self.gradients = self.work(self.inputs)
        else:
            self.graph.replay()
        return self.losses


class GraphEngine(PlainEngine):
    """The plain engine for fine-tuning by graphs. The first micro-batch of a shape goes operator by
    operator, which readies all that a recording may not; the second is recorded.

    Where recording fails or memory runs out, the training goes on without graphs: the same numbers.
    """

    def __init__(self, objective: Finetuning, recipe: Optimization) -> None:
        super().__init__(objective, recipe)
        self.finetuning = objective
        self.recordings: dict[Any, Recording | None] = {}  # by shape; None: met once
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self.replayed: Recording | None = None
        self.without = False

    def forward(self, batch: Any, dropout: Dropout) -> dict[str, Tensor]:
        """The objective's losses of one micro-batch."""
        self.replayed = None
        if self.without:
            return super().forward(batch, dropout)
        ready = self.finetuning.ready(batch, dropout, with_keys=True)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(dropout.seed())  # where attention draws dropout of its own
        shape = tuple((x.shape, x.dtype) for x in tree_leaves(ready) if isinstance(x, Tensor))
        if shape not in self.recordings:
            self.recordings[shape] = None
            return self.finetuning.losses_of(ready)
        try:
            recording = self.recordings[shape] or Recording(self._work, ready, self.pool)
        except RuntimeError as error:
            self.give_up(error)
            return super().forward(batch, dropout)
        self.recordings[shape] = self.replayed = recording
        return recording.replay(ready)

    def _work(self, ready: Ready) -> tuple[dict[str, Tensor], tuple[Tensor, ...]]:
        losses = self.finetuning.losses_of(ready)
        gradients = torch.autograd.grad(losses["loss"], self.parameters)
        return {name: loss.detach() for name, loss in losses.items()}, gradients

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradient of one micro-batch that makes up `share` of the global batch."""
        if self.replayed is None:
            super().backward(loss, share)
            return
        gradients = self.replayed.gradients
        if share < 1:  # out of the way of the next micro-batch's
            gradients = torch._foreach_mul(gradients, share)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)

    def give_up(self, error: BaseException) -> bool:
        """Go on without graphs, whose memory is free then; False where that is so already."""
        if self.without:
            return False
        self.without, self.replayed = True, None
        self.recordings.clear()
        found = f"{type(error).__name__}: {str(error)[:LETTERS_OF_AN_ERROR]}"
        print(f"fine-tuning goes on without CUDA graphs ({found})", file=sys.stderr, flush=True)
        return True
