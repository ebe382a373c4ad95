"""What makes training fast on a machine."""

import os
import shutil
import sysconfig
from pathlib import Path

import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.params.schema import Optimization
from gpt1.train.launch import Machine
from gpt1.train.losses import OTHER_BLOCKS

FLOP_A_PARAMETER = 6  # and token: forward and backward (Kaplan et al. 2020)
# From how much work on compiling pays: blocks take half a minute the first time, and save a quarter
# of the time where there is a unit for products of bfloat16 matrices, so that most of a step is
# what lies between them. Elsewhere compiled blocks take 1.3 to 1.5 times as long.
COMPILING_PAYS_FLOP = {"cpu": 1e14, "cuda": 2e16}
LSTM_BYTES = 40  # that a step keeps of a unit and token: ten numbers, by reading
TRAINED_BYTES, LOGIT_BYTES = 16, 10  # a parameter, its gradient, Adam's averages; bf16, fp32 twice
USABLE = 0.9  # of a GPU's memory: CUDA itself, and what lies unused between tensors


def speed_up(
    network: Network, recipe: Optimization, machine: Machine, tokens: int
) -> dict[str, str]:
    """Prepare a network to train on so many tokens in batches of one shape (0: of many), and return
    the choice of arithmetic, compiled and attention.
    """
    products = arithmetic(torch.device(machine.device), recipe.precision)
    compiled = fused = False
    if isinstance(network, Decoder):
        compiled = worth_compiling(network, products, machine, tokens)
        fused = machine.device == "cuda"
        network.speed_up(compiled, fused)
        # else a rate of dropout that changes, as evaluation's does, breaks a block into several
        if compiled:
            torch._dynamo.config.specialize_float = True
        # cuDNN's attention plans half a second for each shape: not for fine-tuning's many
        torch.backends.cuda.enable_cudnn_sdp(tokens > 0)
    torch.backends.cudnn.allow_tf32 = products == "bf16"  # of an LSTM: finer than bf16
    return {
        "arithmetic": products,  # in bf16 a GPU computes an LSTM's recurrent layer in TF32
        "compiled": "blocks" if compiled else "no",
        "attention": "torch's fused" if fused else "plain",
    }


def token_bytes(network: Network) -> int:
    """Return the bytes that a training step keeps of a token, in a row as long as the context, in
    bf16 with dropout.
    """
    if isinstance(network, Lstm):
        return LSTM_BYTES * network.recurrent.hidden_size
    # By torch's saved_tensors_hooks on a CPU 1.31 MB at the paper's sizes, .94 of them attention
    # written out. Fused kernels keep less, but no GPU has shown how much.
    sizes = network.sizes
    return sizes.layers * (
        30 * sizes.width + 4 * sizes.feed_forward + 12 * sizes.heads * sizes.context
    )


def rows_that_fit(network: Network, rows: int, row_tokens: int, memory_bytes: float) -> int:
    """Halve `rows` until a training step fits a GPU's memory."""
    size = sum(part.numel() for part in network.parameters())
    logits = OTHER_BLOCKS.rows * len(network.tokens)
    room = USABLE * memory_bytes - TRAINED_BYTES * size - LOGIT_BYTES * logits
    while rows > 1 and rows * row_tokens * token_bytes(network) > room:
        rows = -(-rows // 2)
    return rows


def worth_compiling(network: Decoder, products: str, machine: Machine, tokens: int) -> bool:
    """Return whether compiling a decoder's blocks pays for so many tokens."""
    header = Path(sysconfig.get_path("include"), "Python.h")  # which some systems ship apart
    if not (tokens and shutil.which(os.environ.get("CXX", "c++")) and header.is_file()):
        return False
    if machine.compiled is not None:
        return machine.compiled
    # Compiling takes the same half minute for a short run as for a long one.
    flop = FLOP_A_PARAMETER * tokens * sum(part.numel() for part in network.parameters())
    return (
        flop > COMPILING_PAYS_FLOP[machine.device] * machine.processes
        and products == "bf16"
        and (machine.device == "cuda" or torch.cpu._is_amx_tile_supported())
    )


def arithmetic(device: torch.device, precision: str) -> str:
    """Return the precision that a device computes in."""
    # fp32 where a processor has no bfloat16 products: torch's would take a hundred times as long
    return precision if device.type != "cpu" or native_bf16() else "fp32"


def native_bf16() -> bool:
    """Return whether this processor multiplies bfloat16 numbers fast."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):  # a torch built without that library
        return False


def in_precision(device: torch.device, precision: str) -> torch.autocast:
    """Return a context whose matrix products are of a precision, "fp32" or "bf16"."""
    # autocast casts the inputs of products alone; weights and their gradients stay float32.
    bf16 = arithmetic(device, precision) == "bf16"
    return torch.autocast(device.type, torch.bfloat16, bf16)
