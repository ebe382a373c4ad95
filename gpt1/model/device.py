"""Numbers on their way to a GPU, by memory that it reads itself: the host does not wait."""

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on a device."""
    source = tensor.pin_memory() if device.type == "cuda" else tensor
    return source.to(device, non_blocking=True)
