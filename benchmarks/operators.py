"""For fake_cuda.py: what an operator costs a GPU: launches, operations, the memory it writes."""

from typing import Any, NamedTuple

import no_gpu  # noqa: F401  (before torch)
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# torch's kernels over lists of tensors (ATen/native/cuda/MultiTensorApply.cuh): numbers a block,
# blocks a launch, tensors a launch by how many lists there are
CHUNK, MOST_BLOCKS, MOST_TENSORS = 65_536, 320, (110, 64, 48, 36, 30)


class Kernel(NamedTuple):
    """Something the GPU is asked to do: its operator, how many launches, bytes of each memory read
    and written, operations of products, the type of its numbers, the sizes of its largest tensor;
    `aligned`: rows of all matrices begin at multiples of 16 bytes, as the fastest products want it.
    """

    name: str
    launches: int
    read: dict[int, int]
    written: dict[int, int]
    flops: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    aligned: bool


# products of half of a t x t matrix of scores that our attention's kernels make, and launches
OUR_ATTENTION = {"gpt1.attention.default": (2, 1), "gpt1.attention_backward.default": (7, 2)}


def flops_of(function: Any, arguments: Any, options: dict[str, Any], made: list[Tensor]) -> int:
    """Operations of a matrix product or of attention, causal ones half; 0 for all else."""
    if (name := str(function)) in OUR_ATTENTION:
        qkv_md, t = arguments[:2] if len(arguments) == 6 else arguments[1:3], arguments[-3]
        rows, width = qkv_md[0].shape
        return int(OUR_ATTENTION[name][0] * rows * t * width // 3)
    counted = flop_registry.get(function.overloadpacket)
    if not counted:
        return 0
    flops = counted(*arguments, **options, out_val=made[0] if len(made) == 1 else tuple(made))
    return int(flops) // (2 if "attention" in str(function) else 1)


def changed_by(function: Any, arguments: Any) -> list[Tensor]:
    """The arguments of an operator that it writes to."""
    named = zip(function._schema.arguments, arguments, strict=False)
    changed = [given for one, given in named if one.alias_info and one.alias_info.is_write]
    return [leaf for leaf in tree_leaves(changed) if isinstance(leaf, Tensor) and is_on_gpu(leaf)]


def is_on_gpu(tensor: Tensor) -> bool:
    """Whether a tensor says so; asking a fake one for its device would be an operator, too."""
    return isinstance(tensor, FakeTensor) and tensor.fake_device.type == "cuda"


def launches_of(name: str, arguments: Any) -> int:
    """How many kernels an operator launches: one, but for those over lists of tensors, and one of
    ours.
    """
    if name in OUR_ATTENTION:
        return OUR_ATTENTION[name][1]
    lists = [one for one in arguments if isinstance(one, list | tuple) and len(one)]
    if not name.startswith(("_foreach", "_fused")) or not lists:
        return 1
    most, launches, tensors, blocks = MOST_TENSORS[min(len(lists), 5) - 1], 0, 0, 0
    for tensor in lists[0]:
        tensors += 1
        chunks = -(-tensor.numel() // CHUNK)
        for chunk in range(1, chunks + 1):
            blocks += 1
            if blocks == MOST_BLOCKS or (tensors == most and chunk == chunks):
                launches, blocks, tensors = launches + 1, 0, int(chunk < chunks)
    return launches + bool(blocks)
