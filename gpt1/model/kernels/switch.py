"""Whether our kernels can run here, and where they are: nothing of Triton is imported before they
are asked for, for it comes with torch's CUDA wheels alone.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

from torch import Tensor


class Kernels(NamedTuple):
    """Each one's file has its arguments and shapes: that of its name, or its name's beginning."""

    dropout_residual_norm: Callable[..., tuple[Tensor, Tensor]]
    attention: Callable[..., Tensor]
    softmax_losses: Callable[..., Tensor]


def lacks(device: str) -> str | None:
    """What our kernels lack on a device ("cpu", "cuda"); None where they run. Triton's interpreter
    runs them on a CPU, slowly: TRITON_INTERPRET=1, set before they are first asked for.
    """
    if find_spec("triton") is None:
        return "the package triton, which comes with torch's CUDA wheels"
    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return "an NVIDIA GPU"
    return None


def kernels() -> Kernels:
    """All of them."""
    from gpt1.model.kernels.attention import attention
    from gpt1.model.kernels.dropout_residual_norm import dropout_residual_norm
    from gpt1.model.kernels.softmax import softmax_losses

    return Kernels(dropout_residual_norm, attention, softmax_losses)
