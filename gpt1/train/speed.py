"""What makes a network fast on a machine and leaves its results alone: compiled blocks, fused
attention; by name, for the record.
"""

import os
import shutil
import sys
from pathlib import Path

import torch

from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Network
from gpt1.params.schema import Optimization
from gpt1.train.launch import COMPILING_PAYS_FLOP, FLOP_A_PARAMETER, Machine
from gpt1.train.precision import EMULATED, arithmetic, native_amx, watch

WORTH_A_WARNING_FLOP = 1e13  # some minutes
NO_COMPILER = (
    "no C++ compiler is there, and pre-training runs slower than compiled: install g++ (Debian,"
    " Ubuntu: apt install g++), or have CXX name another"
)
NOT_COMPILED = "not compiled, for want of a compiler"  # stands in every line of a log
FUSED = "torch's fused, with its own dropout"
COMPILED_FOLDER = Path("~/.cache/gpt1/compiled")


def speed_up(
    network: Network, recipe: Optimization, machine: Machine, tokens: int
) -> dict[str, str]:
    """Make the network ready to train on so many tokens in batches of one shape (0: of many shapes,
    for which it is not compiled).

    Returns what was chosen: arithmetic (to which the first backward pass is held), compiled,
    attention. GPT1_COMPILE and GPT1_ATTENTION choose otherwise, but for emulated bf16, whose blocks
    are not compiled: the compiler would leave its rounding out. What lacks is said on stderr.
    """
    device = torch.device(machine.device)
    here, first = arithmetic(device, recipe.precision), machine.rank == 0
    chosen = {"arithmetic": here, "compiled": "no", "attention": "plain"}
    parameters = sum(parameter.numel() for parameter in network.parameters())
    work = FLOP_A_PARAMETER * parameters * tokens
    if here == EMULATED and work > WORTH_A_WARNING_FLOP and first:
        print(
            "this processor does not multiply bfloat16 numbers: precision bf16 is emulated, with"
            " the same rounding, at the speed of fp32",
            file=sys.stderr,
            flush=True,
        )
    if not isinstance(network, Decoder):
        watch(network, "recurrent.weight_hh_l0", recipe.precision)
        return chosen
    watch(network, "blocks.0.qkv.weight", recipe.precision)
    fused = machine.device == "cuda" and not machine.reference_attention
    wanted = worth_compiling(recipe, machine, parameters, tokens)
    lacks = wanted and compiler() is None
    if lacks and first:
        print(NO_COMPILER, file=sys.stderr, flush=True)
    wanted = wanted and not lacks
    if wanted:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(COMPILED_FOLDER.expanduser()))
    network.speed_up(wanted, fused)
    return chosen | {
        "compiled": NOT_COMPILED if lacks else "blocks" if wanted else "no",
        "attention": FUSED if fused else "plain",
    }


def worth_compiling(recipe: Optimization, machine: Machine, parameters: int, tokens: int) -> bool:
    """Whether to compile a decoder's blocks for so many tokens (0: see `speed_up`); see `compiler`
    for whether that can be done.
    """
    flop = FLOP_A_PARAMETER * parameters * tokens
    if not flop or machine.compiled is False:
        return False
    here = arithmetic(torch.device(machine.device), recipe.precision)
    if machine.compiled:
        return here in ("bf16", "fp32")
    pays = flop > COMPILING_PAYS_FLOP[machine.device] * machine.processes
    return pays and here == "bf16" and (machine.device == "cuda" or native_amx())


def compiler() -> str | None:
    """The C++ compiler that torch.compile would call; None where it is not there."""
    return shutil.which(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++"))
