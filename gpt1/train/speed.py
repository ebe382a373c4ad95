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
from gpt1.train.launch import Machine
from gpt1.train.precision import EMULATED, arithmetic

# From how much work on compiling pays: blocks take half a minute the first time, and save a quarter
# of the time where a processor
# multiplies bfloat16 numbers by itself. On others (AVX2) products are so slow that what it saves
# besides them does not show, but
# for dropout's masks, whose bits stay the same.
COMPILING_PAYS_FLOP = {"cpu": 1e14, "cuda": 2e16}
WORTH_A_WARNING_FLOP = 1e13  # some minutes
FLOP_A_PARAMETER = 6  # and token: forward and backward (Kaplan et al. 2020)
FUSED = "torch's fused, with its own dropout"
COMPILED_FOLDER = Path("~/.cache/gpt1/compiled")


def speed_up(
    network: Network, recipe: Optimization, machine: Machine, tokens: int
) -> dict[str, str]:
    """Make the network ready to train on so many tokens in batches of one shape (0: of many shapes,
    for which it is never compiled).

    Returns what was chosen: arithmetic, compiled, attention. GPT1_COMPILE and GPT1_ATTENTION choose
    otherwise, but for emulated bf16, whose blocks are not compiled: the compiler would leave its
    rounding out.
    """
    device = torch.device(machine.device)
    chosen = {"arithmetic": arithmetic(device, recipe), "compiled": "no", "attention": "plain"}
    emulated = chosen["arithmetic"] == EMULATED
    flop = FLOP_A_PARAMETER * sum(parameter.numel() for parameter in network.parameters()) * tokens
    if emulated and flop > WORTH_A_WARNING_FLOP and machine.rank == 0:
        print(
            "this processor does not multiply bfloat16 numbers: precision bf16 is emulated, with"
            " the same rounding, at the speed of fp32",
            file=sys.stderr,
            flush=True,
        )
    if not isinstance(network, Decoder):
        return chosen
    fused = machine.device == "cuda" and not machine.reference_attention
    chosen |= {
        "compiled": _compiled(chosen["arithmetic"], recipe, machine, flop),
        "attention": FUSED if fused else "plain",
    }
    if chosen["compiled"] != "no":
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(COMPILED_FOLDER.expanduser()))
    network.speed_up(chosen["compiled"], fused)
    return chosen


def _compiled(arithmetic: str, recipe: Optimization, machine: Machine, flop: int) -> str:
    """What to compile for so much work (0: nothing): "no", "masks" or "blocks and masks"."""
    if not flop or machine.compiled is False or not can_compile():
        return "no"
    pays = flop > COMPILING_PAYS_FLOP[machine.device] * machine.processes
    if arithmetic != EMULATED and (machine.compiled or (pays and arithmetic == "bf16")):
        return "blocks and masks"
    return (
        "masks"
        if recipe.dropout and machine.device == "cpu" and (machine.compiled or pays)
        else "no"
    )


def can_compile() -> bool:
    """Whether there is a C++ compiler for torch.compile."""
    return (
        shutil.which(os.environ.get("CXX", "g++")) is not None
        or shutil.which("clang++") is not None
    )
