"""What makes a network fast on a machine and leaves its results alone: compiled blocks, fused
attention; by name, for the record.
"""

import os
import shutil

import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Network
from gpt1.params.schema import Optimization
from gpt1.train.launch import Machine
from gpt1.train.precision import arithmetic, native_amx

FLOP_A_PARAMETER = 6  # and token: forward and backward (Kaplan et al. 2020)
# From how much work on compiling pays: blocks take half a minute the first time, and save a quarter
# of the time where there is a unit for products of bfloat16 matrices, so that most of a step is
# what lies between them. Elsewhere compiled blocks take 1.3 to 1.5 times as long.
COMPILING_PAYS_FLOP = {"cpu": 1e14, "cuda": 2e16}


def speed_up(
    network: Network, recipe: Optimization, machine: Machine, tokens: int
) -> dict[str, str]:
    """Make the network ready to train on so many tokens in batches of one shape (0: of many shapes,
    for which it is not compiled).

    Returns what was chosen: arithmetic, compiled, attention. GPT1_COMPILE chooses otherwise.
    """
    products = arithmetic(torch.device(machine.device), recipe.precision)
    fused = machine.device == "cuda" and isinstance(network, Decoder)
    compiled = isinstance(network, Decoder) and worth_compiling(network, products, machine, tokens)
    if isinstance(network, Decoder):
        network.speed_up(compiled, fused)
    return {
        "arithmetic": products,
        "compiled": "blocks" if compiled else "no",
        "attention": "torch's fused" if fused else "plain",
    }


def worth_compiling(network: Decoder, products: str, machine: Machine, tokens: int) -> bool:
    """Whether to compile a decoder's blocks for so many tokens in this arithmetic."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not tokens or not compiler:
        return False
    if machine.compiled is not None:
        return machine.compiled
    # Compiling takes the same half minute for a short run as for a long one.
    flop = FLOP_A_PARAMETER * tokens * sum(part.numel() for part in network.parameters())
    pays = flop > COMPILING_PAYS_FLOP[machine.device] * machine.processes
    return pays and products == "bf16" and (machine.device == "cuda" or native_amx())
