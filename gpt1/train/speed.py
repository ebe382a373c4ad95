"""What makes a network fast on a machine and leaves its results alone: compiled blocks, fused
attention; by name, for the record.
"""

import os
import shutil
import sys

import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Network
from gpt1.params.schema import Optimization
from gpt1.train.launch import Machine
from gpt1.train.precision import EMULATED, arithmetic, native_amx

FLOP_A_PARAMETER = 6  # and token: forward and backward (Kaplan et al. 2020)
# From how much work on compiling pays: blocks take half a minute the first time, and save a quarter
# of the time where a processor has a unit for matrices, so that most of a step is what lies between
# products. Elsewhere on a CPU compiled blocks take 1.3 to 1.5 times as long as torch's operators.
COMPILING_PAYS_FLOP = {"cpu": 1e14, "cuda": 2e16}
WORTH_A_WARNING_FLOP = 1e13  # some minutes
NOT_COMPILED = "not compiled, for want of a compiler"  # stands in every line of a log


def speed_up(
    network: Network, recipe: Optimization, machine: Machine, tokens: int
) -> dict[str, str]:
    """Make the network ready to train on so many tokens in batches of one shape (0: of many shapes,
    for which it is not compiled).

    Returns what was chosen: arithmetic, compiled, attention. GPT1_COMPILE chooses otherwise, but
    for emulated bf16: the compiler would leave its rounding out. What lacks is said on stderr.
    """
    here = arithmetic(torch.device(machine.device), recipe.precision)
    flop = FLOP_A_PARAMETER * tokens * sum(part.numel() for part in network.parameters())
    if here == EMULATED and flop > WORTH_A_WARNING_FLOP and machine.rank == 0:
        print(
            "this processor does not multiply bfloat16 numbers: precision bf16 is emulated, with"
            " the same rounding, at the speed of fp32",
            file=sys.stderr,
            flush=True,
        )
    fused = machine.device == "cuda" and isinstance(network, Decoder)
    wanted = isinstance(network, Decoder) and worth_compiling(here, machine, flop)
    compiler = shutil.which(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++"))
    if wanted and not compiler and machine.rank == 0:
        print(
            "no C++ compiler is there, and pre-training runs slower than compiled: install g++"
            " (Debian, Ubuntu: apt install g++), or have CXX name another",
            file=sys.stderr,
            flush=True,
        )
    if isinstance(network, Decoder):
        network.speed_up(wanted and compiler is not None, fused)
    return {
        "arithmetic": here,
        "compiled": ("blocks" if compiler else NOT_COMPILED) if wanted else "no",
        "attention": "torch's fused" if fused else "plain",
    }


def worth_compiling(here: str, machine: Machine, flop: float) -> bool:
    """Whether to compile a decoder's blocks for so much work in this arithmetic."""
    if not flop or machine.compiled is False or here == EMULATED:
        return False
    pays = flop > COMPILING_PAYS_FLOP[machine.device] * machine.processes
    fast = here == "bf16" and (machine.device == "cuda" or native_amx())
    return machine.compiled or (pays and fast)
