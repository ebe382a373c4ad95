"""The arithmetic that a recipe's precision asks for: weights, sums and softmax stay float32; in
bf16, matrix products take bfloat16 numbers on a device that multiplies them as fast.
"""

import torch


def arithmetic(device: torch.device, precision: str) -> str:
    """The precision that a device computes in, for the record: "bf16", or "fp32" where that was
    asked for or where the processor has no bfloat16 products (torch would take a hundred times as
    long).
    """
    return precision if device.type != "cpu" or native_bf16() else "fp32"


def native_bf16() -> bool:
    """Whether this processor multiplies bfloat16 numbers as fast as float32 ones or faster."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):  # a torch built without that library
        return False


def native_amx() -> bool:
    """Whether this processor has a unit for products of bfloat16 matrices (Intel's AMX)."""
    try:
        return bool(torch.cpu._is_amx_tile_supported())
    except (AttributeError, RuntimeError):
        return False


def in_precision(device: torch.device, precision: str) -> torch.autocast:
    """A block whose matrix products are of a precision, "fp32" or "bf16"."""
    # autocast casts the inputs of products alone; weights and their gradients stay float32.
    bf16 = arithmetic(device, precision) == "bf16"
    return torch.autocast(device.type, torch.bfloat16, bf16)
