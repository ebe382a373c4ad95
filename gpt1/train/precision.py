"""The arithmetic that a recipe's precision asks for: weights stay float32; in bf16, matrix products
take bfloat16 numbers.

Cores without bfloat16 products would need a hundred times as long for them in torch. There the same
numbers, rounded to bfloat16, are multiplied in float32: the same results but for the order of sums,
at float32's speed.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

EMULATED = "bf16 emulated"
PRODUCTS: set[Any] = {
    F.linear,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    F.scaled_dot_product_attention,
    torch.lstm,
}


def arithmetic(device: torch.device, precision: str) -> str:
    """What runs where: "fp32", "bf16", or "bf16 emulated" on cores that do not know it."""
    if precision == "fp32":
        return "fp32"
    return "bf16" if device.type != "cpu" or native_bf16() else EMULATED


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


def in_precision(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """A block whose matrix products are of a precision, "fp32" or "bf16"."""
    contexts: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "fp32": nullcontext,
        "bf16": lambda: torch.autocast(device.type, dtype=torch.bfloat16),
        EMULATED: Bf16Emulation,
    }
    return contexts[arithmetic(device, precision)]()


class Bf16Emulation(TorchFunctionMode):
    """Inside, operands and results of matrix products, and their gradients, are rounded to bfloat16
    and kept as float32.
    """

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: Iterable[Any] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        """Called by torch for each of its functions."""
        if function not in PRODUCTS:
            return function(*arguments, **(options or {}))
        return _rounded(function(*_rounded(tuple(arguments)), **(options or {})))


def _rounded(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.bfloat16().float() if value.dtype == torch.float32 else value
    return type(value)(map(_rounded, value)) if type(value) in (tuple, list) else value
