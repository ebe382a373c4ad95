"""Numbers on their way between the host and a GPU, by memory that the GPU reads itself: neither
waits for the other.
"""

from typing import NamedTuple

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on a device."""
    source = tensor.pin_memory() if device.type == "cuda" else tensor
    return source.to(device, non_blocking=True)


class Copy(NamedTuple):
    """A copy in host memory, there once `arrived` has happened (None: it is there)."""

    values: Tensor
    arrived: torch.cuda.Event | None

    def read(self) -> list[float]:
        """The numbers, waiting for what was asked of the device before the copy, not after it."""
        if self.arrived is not None:
            self.arrived.synchronize()
        found: list[float] = self.values.tolist()
        return found


def to_host(tensor: Tensor) -> Copy:
    """Begin to copy a tensor of any device to the host."""
    if not tensor.is_cuda:
        return Copy(tensor, None)
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()
    return Copy(host, arrived)
